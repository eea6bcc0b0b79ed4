// Random tensors quantized under scales and zero points that are stored already, against the reference.
// SPDX-License-Identifier: BSD-3-Clause
#include "conversions.hpp"

using namespace qtensor;
using fuzz::quantize_static;

TEST_CASE("conversions: given scales") {
  fuzz::each_case(2000, [](fuzz::dice& dice) {
    fuzz::one_case_of(dice, &quantize_static<int8_per_tensor, 2>, &quantize_static<int8_per_channel<1>, 2, col_major>,
                      &quantize_static<uint8_per_channel<0>, 3, row_major, bf16>,
                      &quantize_static<scheme<uint4, group<32>, zero_point<uint4, per_channel<0>>>, 2>,
                      &quantize_static<scheme<int8, per_channel<1>, zero_point<int32>, zp_before_round, reciprocal>, 2,
                                       row_major, f16>,
                      &quantize_static<scheme<int4, group<dynamic>>, 3>,
                      &quantize_static<scheme<e4m3, mx_group<32>, scale_as<e8m0>, static_only>, 2>,
                      &quantize_static<mxfp6_e2m3, 2, col_major, f16>,
                      &quantize_static<with<nvfp4, tensor_scale<f32>>, 2>, &quantize_static<hif8_block<4, 64>, 3>,
                      &quantize_static<scheme<uint8, block<dynamic, dynamic>, zero_point<uint8, per_tensor>>, 2>,
                      &quantize_static<scheme<e2m1, per_axes<0, 2>, scale_as<bf16>>, 4>);
  });
}
