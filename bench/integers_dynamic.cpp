// Operations: numbers to integers with scales of the data.
// SPDX-License-Identifier: BSD-3-Clause
#include "operation.hpp"

namespace bench {

void add_integers_dynamic(operations& all) {
  using qt::bf16, qt::f16, qt::f32;
  add_quantize<f32, qt::int8_per_tensor>(all, "int8 tensor, dynamic");
  add_quantize<bf16, qt::int8_per_tensor>(all, "int8 tensor, dynamic");
  add_quantize<f32, qt::uint8_per_tensor>(all, "uint8 tensor, dynamic");
  add_quantize<f32, qt::int8_per_channel<0>>(all, "int8 row, dynamic");
  add_quantize<bf16, qt::int8_per_channel<0>>(all, "int8 row, dynamic");
  add_quantize<f16, qt::int8_per_channel<0>>(all, "int8 row, dynamic");
  add_quantize<f32, qt::uint8_per_channel<0>>(all, "uint8 row, dynamic");
  add_quantize<bf16, qt::uint8_per_channel<0>>(all, "uint8 row, dynamic");
  add_quantize<f32, qt::int8_per_channel<1>>(all, "int8 column, dynamic");
  add_quantize<bf16, qt::int8_per_channel<1>>(all, "int8 column, dynamic");
  add_quantize<f32, qt::uint8_per_channel<1>>(all, "uint8 column, dynamic");
}

}  // namespace bench
