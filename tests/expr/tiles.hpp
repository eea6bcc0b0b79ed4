// What tests of sources of expressions share.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "check.hpp"

namespace check {

/// Tiles of a source, wherever they begin, are those of the matrix.
template <qtensor::tile_source Source>
void check_tiles(const Source& source, const Eigen::MatrixXf& rows_of_source) {
  const Eigen::Index rows = rows_of_source.rows(), cols = rows_of_source.cols();
  REQUIRE(source.rows() == rows);
  REQUIRE(source.cols() == cols);
  for (const auto& [row, col] : {std::pair<index_t, index_t>{0, 0}, {1, 0}, {0, 3}, {5, 7}, {rows - 1, cols - 1}}) {
    const index_t height = rows - row, width = cols - col, stride = width + 2;
    if (height <= 0 || width <= 0) continue;
    row_matrix tile = row_matrix::Constant(height, stride, 77.f);
    source.read(row, height, col, width, tile.data(), stride);
    REQUIRE(same(tile.leftCols(width), rows_of_source.bottomRightCorner(height, width)));
    REQUIRE((tile.rightCols(2).array() == 77.f).all());
    if constexpr (qtensor::ops::reads_columns<Source>) {
      const index_t apart = height + 2;
      row_matrix columns = row_matrix::Constant(width, apart, 77.f);
      source.read_columns(row, height, col, width, columns.data(), apart, true);
      REQUIRE(same(columns.leftCols(height).transpose(), rows_of_source.bottomRightCorner(height, width)));
      REQUIRE((columns.rightCols(2).array() == 77.f).all());
    }
    if (const float* here = source.direct(row, col))
      for (index_t c = 0; c < width; ++c) REQUIRE(here[c] == rows_of_source(row, col + c));
  }
}

/// One tile of a source is that of the matrix, which may be too large to be evaluated.
template <qtensor::tile_source Source, class Matrix>
void check_box(const Source& source, const Matrix& want, index_t row, index_t rows, index_t col, index_t cols) {
  row_matrix tile = row_matrix::Constant(rows, cols + 2, 77.f);
  source.read(row, rows, col, cols, tile.data(), cols + 2);
  CHECK(same(tile.leftCols(cols), want.block(row, col, rows, cols)));
  CHECK((tile.rightCols(2).array() == 77.f).all());
  if constexpr (qtensor::ops::reads_columns<Source>)
    for (const bool asks : {false, true}) {
      row_matrix columns = row_matrix::Constant(cols, rows + 2, 77.f);
      source.read_columns(row, rows, col, cols, columns.data(), rows + 2, asks);
      CHECK(same(columns.leftCols(rows).transpose(), want.block(row, col, rows, cols)));
      CHECK((columns.rightCols(2).array() == 77.f).all());
    }
}

}  // namespace check
