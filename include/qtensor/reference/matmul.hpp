// The product whose bits do not depend on anything: each output is one chain of fused multiply-adds over ascending k.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cmath>
#include <qtensor/reference/quantize.hpp>

namespace qtensor::reference {

/// Element (row, column) of W * X in f32: acc = fma(W(row, k), X(k, column), acc) for k = 0 .. depth-1, starting at +0.
/// Both operands are callables that give an element as a float; a quantized one gives its dequantized value
/// (NUMERICS 5.3: scaled before the dot). Every kernel for float products equals this bit for bit.
template <class W, class X>
float dot(const W& w, const X& x, index_t row, index_t column, index_t depth) {
  float sum = 0.f;
  for (index_t k = 0; k < depth; ++k) sum = std::fma(w(row, k), x(k, column), sum);
  return sum;
}

/// W * X, element by element: calls sink(row, column, value).
template <class W, class X, class Sink>
void matmul(const W& w, const X& x, index_t rows, index_t columns, index_t depth, Sink sink) {
  for (index_t row = 0; row < rows; ++row)
    for (index_t column = 0; column < columns; ++column) sink(row, column, dot(w, x, row, column, depth));
}

}  // namespace qtensor::reference
