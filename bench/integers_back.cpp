// Operations: integers to numbers.
// SPDX-License-Identifier: BSD-3-Clause
#include "operation.hpp"

namespace bench {

void add_integers_back(operations& all) {
  using qt::bf16, qt::f16, qt::f32;
  add_dequantize<qt::int8_per_tensor, f32>(all, "int8 tensor");
  add_dequantize<qt::int8_per_tensor, bf16>(all, "int8 tensor");
  add_dequantize<qt::int8_per_tensor, f16>(all, "int8 tensor");
  add_dequantize<qt::uint8_per_tensor, f32>(all, "uint8 tensor");
  add_dequantize<qt::uint8_per_tensor, bf16>(all, "uint8 tensor");
  add_dequantize<qt::int8_per_channel<0>, f32>(all, "int8 row");
  add_dequantize<qt::int8_per_channel<0>, bf16>(all, "int8 row");
  add_dequantize<qt::int8_per_channel<1>, f32>(all, "int8 column");
  add_dequantize<qt::int8_per_channel<1>, bf16>(all, "int8 column");
  add_dequantize<qt::scheme<qt::int4, qt::per_tensor>, f32>(all, "int4 tensor");
}

}  // namespace bench
