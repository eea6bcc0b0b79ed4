// Sources: whatever can fill a tile with floats. Everything that is quantized or multiplied comes in through one.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <qtensor/reference/quantize.hpp>

#include <concepts>

namespace qtensor {

/// A matrix of floats as a kernel wants to see it: rows that will be contiguous in the destination. For a tensor of higher
/// rank the leading axes are flattened into rows; for a col_major tensor rows are its columns.
///   rows(), cols()                              its size
///   read(row, rows, col, cols, tile, stride)    writes element (row + r, col + c) to tile[r * stride + c]
///   direct(row, col)                            those elements of one row in memory already, or nullptr
///   reads_rows                                  one row at a time is as cheap as a tile of rows (same storage order)
///   reads_twice                                 cheap enough to be read a second time instead of being kept
template <class X>
concept tile_source = requires(const X x, index_t i, float* tile) {
  { x.rows() } -> std::convertible_to<index_t>;
  { x.cols() } -> std::convertible_to<index_t>;
  x.read(i, i, i, i, tile, i);
  { x.direct(i, i) } -> std::convertible_to<const float*>;
  { X::reads_rows } -> std::convertible_to<bool>;
  { X::reads_twice } -> std::convertible_to<bool>;
};

/// Floats in memory with any strides; `matrix_ref<float>` is also what products write to.
template <class T>
struct matrix_ref {
  T* data;
  index_t row_count, col_count, row_stride, col_stride;
  static constexpr bool reads_rows = true;
  static constexpr bool reads_twice = true;

  index_t rows() const { return row_count; }
  index_t cols() const { return col_count; }
  T& operator()(index_t row, index_t col) const { return data[row * row_stride + col * col_stride]; }
  matrix_ref transposed() const { return {data, col_count, row_count, col_stride, row_stride}; }
  const T* direct(index_t row, index_t col) const { return col_stride == 1 ? data + row * row_stride + col : nullptr; }
  void read(index_t row, index_t rows, index_t col, index_t cols, float* tile, index_t stride) const {
    for (index_t r = 0; r < rows; ++r)
      for (index_t c = 0; c < cols; ++c) tile[r * stride + c] = (*this)(row + r, col + c);
  }
};

}  // namespace qtensor
