// A random matrix quantized and dequantized by whole-tensor operations, against the scalar reference.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "check.hpp"

namespace check {

/// Codes and values equal the reference.
template <quantization_scheme S, storage_order Order = row_major>
void check_matrix(index_t rows, index_t cols) {
  const matrix_extents shape(rows, cols);
  const std::vector<float> x = numbers(shape.size(), 21);
  const auto got = quantize<S, Order>(source(x.data(), shape));
  INFO(std::string(name<S>), " ", rows, " x ", cols);
  CHECK(same_bytes(got, expected<S, Order>(x, shape)));
  std::vector<float> values(x.size());
  dequantize_into(got.view(), values.data(), {cols, 1});
  bool same = true;
  for (index_t row = 0; row < rows; ++row)
    for (index_t col = 0; col < cols; ++col) {
      const float a = values[static_cast<std::size_t>(row * cols + col)], b = reference::value(got.view(), {row, col});
      same = same && (bits_of(a) == bits_of(b) || (is_nan(a) && is_nan(b)));
    }
  CHECK(same);
}

}  // namespace check
