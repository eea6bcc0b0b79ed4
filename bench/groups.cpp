// Operations: integers in groups of 32; integers and FP8 in square blocks.
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
  using int8_block = qt::scheme<qt::int8, qt::block<16, 16>>;
  using int4_block = qt::scheme<qt::int4, qt::block<32, 32>>;
  add_quantize<f32, int8_block>(all, "int8 blocks of 16 x 16, dynamic");
  add_quantize<f32, int8_block, scales::given>(all, "int8 blocks of 16 x 16");
  add_quantize<f32, int4_block, scales::given>(all, "int4 blocks of 32 x 32");
  add_quantize<f32, qt::scheme<qt::uint8, qt::block<16, 16>, qt::zero_point<qt::uint8>>>(
      all, "uint8 blocks of 16 x 16, dynamic");
  add_quantize<f32, qt::fp8_block<128, 128>>(all, "e4m3 blocks of 128 x 128, dynamic");
  add_dequantize<int8_block, f32>(all, "int8 blocks of 16 x 16");
  add_dequantize<qt::int8_group<32>, f32>(all, "int8 groups");
  add_dequantize<qt::int8_group<32>, bf16>(all, "int8 groups");
  add_dequantize<qt::int4_group<32>, f32>(all, "int4 groups");
  add_dequantize<qt::int4_group<32>, bf16>(all, "int4 groups");
}

}  // namespace bench
