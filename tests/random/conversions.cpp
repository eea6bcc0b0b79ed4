// Random tensors of integers, quantized from memory into parts of others, against the reference.
// SPDX-License-Identifier: BSD-3-Clause
#include "conversions.hpp"

using namespace qtensor;
using fuzz::quantize_memory;

TEST_CASE("conversions: integers") {
  fuzz::each_case(2000, [](fuzz::dice& dice) {
    fuzz::one_case_of(dice, &quantize_memory<int8_per_channel<0>, 2>, &quantize_memory<int8_per_tensor, 2, col_major>,
                      &quantize_memory<int8_per_tensor, 3, row_major, f16>,
                      &quantize_memory<uint8_per_channel<1>, 3, col_major, bf16>,
                      &quantize_memory<uint8_per_channel<1>, 2>, &quantize_memory<uint4_group<32>, 2, row_major, f16>,
                      &quantize_memory<int4_group<dynamic>, 2>, &quantize_memory<scheme<int8, per_axes<0, 2>>, 4>,
                      &quantize_memory<scheme<int2, group<24>>, 1>,
                      &quantize_memory<scheme<int4, block<dynamic, dynamic>>, 2, col_major>,
                      &quantize_memory<scheme<int16, per_channel<0>, zero_point<int32>>, 3>,
                      &quantize_memory<scheme<int32, per_channel<1>>, 2>, &quantize_memory<scheme<bf16, group<24>>, 2>,
                      &quantize_memory<with<uint4_group<32>, block_ignores>, 2>);
  });
}
