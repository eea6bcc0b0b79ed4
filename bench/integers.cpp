// Operations: numbers to integers with given scales.
// SPDX-License-Identifier: BSD-3-Clause
#include "operation.hpp"

namespace bench {

void add_integers(operations& all) {
  using qt::bf16, qt::f16, qt::f32;
  using fast_tensor = qt::with<qt::int8_per_tensor, qt::reciprocal>;
  using fast_row = qt::with<qt::int8_per_channel<0>, qt::reciprocal>;
  using fast_column = qt::with<qt::int8_per_channel<1>, qt::reciprocal>;
  add_quantize<f32, qt::int8_per_tensor, scales::given>(all, "int8 tensor");
  add_quantize<f32, fast_tensor, scales::given>(all, "int8 tensor, reciprocal");
  add_quantize<bf16, qt::int8_per_tensor, scales::given>(all, "int8 tensor");
  add_quantize<f16, qt::int8_per_tensor, scales::given>(all, "int8 tensor");
  add_quantize<f32, qt::uint8_per_tensor, scales::given>(all, "uint8 tensor");
  add_quantize<bf16, qt::uint8_per_tensor, scales::given>(all, "uint8 tensor");
  add_quantize<f32, qt::int8_per_channel<0>, scales::given>(all, "int8 row");
  add_quantize<f32, fast_row, scales::given>(all, "int8 row, reciprocal");
  add_quantize<bf16, qt::int8_per_channel<0>, scales::given>(all, "int8 row");
  add_quantize<f32, qt::int8_per_channel<1>, scales::given>(all, "int8 column");
  add_quantize<f32, fast_column, scales::given>(all, "int8 column, reciprocal");
  add_quantize<bf16, qt::int8_per_channel<1>, scales::given>(all, "int8 column");
  add_quantize<f32, qt::uint8_per_channel<1>, scales::given>(all, "uint8 column");
  add_quantize<bf16, qt::uint8_per_channel<1>, scales::given>(all, "uint8 column");
  add_quantize<f32, qt::scheme<qt::int4, qt::per_tensor>, scales::given>(all, "int4 tensor");
}

}  // namespace bench
