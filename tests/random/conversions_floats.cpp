// Random tensors of FP8, FP6, FP4 and HiF8, quantized from memory into parts of others, against the reference.
// SPDX-License-Identifier: BSD-3-Clause
#include "conversions.hpp"

using namespace qtensor;
using fuzz::quantize_memory;

TEST_CASE("conversions: floats") {
  fuzz::each_case(2000, [](fuzz::dice& dice) {
    fuzz::one_case_of(dice, &quantize_memory<mxfp8_e4m3, 2>, &quantize_memory<mxfp8_e5m2, 2, col_major, bf16>,
                      &quantize_memory<along<0, mxfp4>, 2>, &quantize_memory<along<-2, mxfp8_e4m3>, 3, row_major, f16>,
                      &quantize_memory<mxfp6_e2m3, 3>, &quantize_memory<mxfp4, 2, row_major, bf16>,
                      &quantize_memory<nvfp4, 2, col_major>, &quantize_memory<with<nvfp4, tensor_scale<f32>>, 3>,
                      &quantize_memory<fp8_block<16, 128>, 2>,
                      &quantize_memory<scheme<e4m3, block<2, 32>, bounded_amax<>, block_literal, nan_to_zero>, 2>,
                      &quantize_memory<hif8_block<4, 64>, 3, row_major, bf16>,
                      &quantize_memory<scheme<e5m2, block<whole, 16>>, 2, col_major>);
  });
}
