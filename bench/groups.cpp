// Operations: integers in groups of 32.
// SPDX-License-Identifier: BSD-3-Clause
#include "operation.hpp"

namespace bench {

void add_groups(operations& all) {
  using qt::bf16, qt::f32;
  add_quantize<f32, qt::int8_group<32>>(all, "int8 groups, dynamic");
  add_quantize<bf16, qt::int8_group<32>>(all, "int8 groups, dynamic");
  add_quantize<f32, qt::int8_group<32>, scales::given>(all, "int8 groups");
  add_quantize<f32, qt::int4_group<32>>(all, "int4 groups, dynamic");
  add_quantize<bf16, qt::int4_group<32>>(all, "int4 groups, dynamic");
  add_quantize<f32, qt::int4_group<32>, scales::given>(all, "int4 groups");
  add_quantize<f32, qt::uint4_group<32>>(all, "uint4 groups, dynamic");
  add_dequantize<qt::int8_group<32>, f32>(all, "int8 groups");
  add_dequantize<qt::int8_group<32>, bf16>(all, "int8 groups");
  add_dequantize<qt::int4_group<32>, f32>(all, "int4 groups");
  add_dequantize<qt::int4_group<32>, bf16>(all, "int4 groups");
}

}  // namespace bench
