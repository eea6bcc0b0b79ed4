// Rows: how whole-tensor operations walk a tensor's memory and pull a source through a tile that stays in L1.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <qtensor/ops/source.hpp>
#include <qtensor/simd/abi.hpp>

namespace qtensor::inline QTENSOR_ABI::ops {

/// Floats of a tile: 16 KiB, a third to a half of every L1 data cache.
inline constexpr index_t tile_floats = 4096;
/// Rows of a tile when the source's own order runs across them: whole registers to transpose, whole lines to fetch.
inline constexpr index_t tile_rows = 16;

/// The index in storage order of the first element of a row, rows counted with the last of the leading axes fastest.
template <std::size_t Rank>
constexpr std::array<index_t, Rank> row_index(index_t row, const std::array<index_t, Rank>& storage_extents) {
  std::array<index_t, Rank> index{};
  for (std::size_t axis = Rank - 1; axis > 0; --axis) {
    index[axis - 1] = row % storage_extents[axis - 1];
    row /= storage_extents[axis - 1];
  }
  return index;
}

/// Calls visit(first_row, row_count) for the runs of consecutive rows that a box of the leading axes holds.
template <std::size_t Rank, class Visit>
void for_each_row_run(const std::array<index_t, Rank>& first, const std::array<index_t, Rank>& count,
                      const std::array<index_t, Rank>& storage_extents, Visit visit) {
  if constexpr (Rank == 1) {
    visit(index_t{0}, index_t{1});
  } else {
    // Boxes that reach over whole axes make longer runs: from the innermost leading axis outwards.
    std::array<index_t, Rank> outer = count;
    outer[Rank - 1] = 1;
    index_t run = 1;
    for (std::size_t axis = Rank - 1; axis > 0; --axis) {
      run *= count[axis - 1];
      outer[axis - 1] = 1;
      if (count[axis - 1] != storage_extents[axis - 1]) break;
    }
    std::array<index_t, Rank> start = first;
    start[Rank - 1] = 0;
    reference::for_each_index(start, outer, [&](const std::array<index_t, Rank>& at) {
      index_t row = 0;
      for (std::size_t axis = 0; axis + 1 < Rank; ++axis) row = row * storage_extents[axis] + at[axis];
      visit(row, run);
    });
  }
}

/// Pieces of a row: a multiple of `step` elements each (the last may be short), at most `most`, at least one step.
constexpr index_t piece_length(index_t step, index_t most) { return most / step > 0 ? most / step * step : step; }

/// Calls visit(row, col, count, floats) for every piece of rows [first_row, first_row + row_count) of a source, where a
/// piece starts at a multiple of `step`; `floats` are its `count` elements, in the source's own memory where it has
/// them in order, else in a tile. Needs step <= tile_floats.
template <tile_source X, class Visit>
void for_each_piece(const X& x, index_t first_row, index_t row_count, index_t step, Visit visit) {
  const index_t cols = x.cols();
  if (cols == 0) return;
  alignas(64) float tile[tile_floats];
  if (X::reads_rows || row_count == 1 || step > tile_floats / 2) {
    const index_t length = piece_length(step, tile_floats);
    for (index_t row = first_row; row < first_row + row_count; ++row)
      for (index_t col = 0; col < cols; col += length) {
        const index_t count = cols - col < length ? cols - col : length;
        const float* here = x.direct(row, col);
        if (here == nullptr) x.read(row, 1, col, count, tile, length);
        visit(row, col, count, here != nullptr ? here : tile);
      }
  } else {
    const index_t length = piece_length(step, tile_floats / tile_rows), rows_at_once = tile_floats / length;
    for (index_t row = first_row; row < first_row + row_count; row += rows_at_once) {
      const index_t rows = first_row + row_count - row < rows_at_once ? first_row + row_count - row : rows_at_once;
      for (index_t col = 0; col < cols; col += length) {
        const index_t count = cols - col < length ? cols - col : length;
        x.read(row, rows, col, count, tile, length);
        for (index_t r = 0; r < rows; ++r) visit(row + r, col, count, static_cast<const float*>(tile + r * length));
      }
    }
  }
}

}  // namespace qtensor::inline QTENSOR_ABI::ops
