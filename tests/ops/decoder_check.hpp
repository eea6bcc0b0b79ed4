// Tensors of codes for the tests of decoders, and what the reference says of them.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <qtensor/simd/memory.hpp>

#include "check.hpp"

namespace check {

/// Numbers of a matrix, quantized.
template <class S>
qtensor::tensor<S> quantized_matrix(index_t height, index_t width) {
  std::vector<float> x(static_cast<std::size_t>(height * width));
  std::uint32_t state = 9;
  for (float& f : x) {
    state = state * 1664525u + 1013904223u;
    f = static_cast<float>(static_cast<std::int32_t>(state)) * 0x1p-28f;
  }
  return expected<S, qtensor::row_major>(x, qtensor::extents(height, width));
}

/// An element as a number of F.
template <class F, class View>
qtensor::storage_t<F> number_at(const View& w, index_t row, index_t col) {
  return qtensor::simd::round_to<F>(qtensor::reference::storage_value(w, {row, col}));
}

}  // namespace check
