// Short rows: several at a time in a tile, each padded to whole blocks, so that kernels see one run of them.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstring>
#include <qtensor/ops/block_parameters.hpp>
#include <qtensor/ops/rows.hpp>

namespace qtensor::inline QTENSOR_ABI::ops {

/// Elements of a row that one block covers, padded so that kernels take it in whole vectors.
template <class S>
constexpr index_t padded_block(index_t elements) {
  constexpr index_t known = simd::detail::static_group<typename S::granularity_type>;
  constexpr index_t each = simd::lanes<simd::best_arch>;
  if (known >= elements && known < 2 * elements) return known;
  const index_t length = elements <= each ? each : elements <= 2 * each ? 2 * each : round_up(elements, 4 * each);
  return round_up(length, byte_step<S>);
}

/// Whether rows of n elements that share parameters are padded to whole bytes: short ones that end inside one.
template <class S>
constexpr bool ends_inside_bytes(index_t n) {
  constexpr index_t longest = 96;
  return n <= longest && n % byte_step<S> != 0;
}

/// How the rows of a tensor lie in such a tile.
struct padded_rows {
  static constexpr index_t rows = 1;  ///< that share parameters

  index_t cols;       ///< elements of a row
  index_t length;     ///< elements from one row of the tile to the next
  index_t block;      ///< elements of it that share a scale
  index_t blocks;     ///< along a row
  index_t most;       ///< rows of a tile, at most all
  index_t alike = 1;  ///< rows side by side that share parameters, which are only read where there are several

  /// Those of a tensor of several short rows, whose parameters follow each other from row to row; or, where they are
  /// `stored` already, of rows that end inside bytes, a few of which share theirs. Nothing else has a tile.
  template <tensor_view_type View>
  static std::optional<padded_rows> of(const View& w, bool stored = false) {
    using S = typename View::scheme_type;
    constexpr std::size_t last = static_cast<std::size_t>(View::rank) - 1;
    constexpr index_t longest = tile_floats / 8;  // longer rows take longer to copy than their ends would
    constexpr index_t few = 8;                    // more rows take longer one by one than as a panel of their own
    const auto extents = w.storage_extents();
    const auto& grid = w.scale_grid();
    const index_t cols = extents[last];
    if (cols == 0 || cols > longest || w.size() == cols) return {};
    const index_t blocks = divide_up(cols, grid.block[last]);
    const bool may_share = stored && blocks == 1 && ends_inside_bytes<S>(cols);
    index_t alike = 1;
    const auto have_tile = [&](const auto& entries) {
      if (rows_follow_each_other(entries, extents)) return true;
      if (last == 0 || !may_share || entries.stride[last - (last > 0)] != 1) return false;
      alike = entries.block[last - (last > 0)];
      return alike < few;
    };
    if (!have_tile(grid)) return {};
    if constexpr (S::has_zero_point)
      if (w.zero_grid().block != grid.block || !have_tile(w.zero_grid())) return {};
    const index_t block = blocks == 1 ? padded_block<S>(cols) : grid.block[last], length = blocks * block;
    if (length > longest || length % byte_step<S> != 0) return {};
    return padded_rows{cols, length, block, blocks, std::min(tile_floats / length, w.size() / cols), alike};
  }

  /// Whether rows are blocks that kernels take apart where these follow each other.
  bool ends_in_vectors() const {
    constexpr index_t long_row = 128;
    return blocks == 1 && length != cols && cols < long_row;
  }
  /// Parameters of all blocks of n rows from the one at an index on, by load(count, to), which reads `count` neighbours
  /// from its own on. Up to a batch behind them is written, too.
  template <class Index, class T, class Load>
  void load_entries(const Index& at, index_t n, T* to, const Load& load) const {
    if (alike == 1) return load(n * blocks, to);
    const index_t inside = at[at.size() - 2] % alike;
    T found[tile_floats];
    load(divide_up(inside + n, alike), found);
    simd::spread_entries<simd::best_arch>(found, alike, inside, n, to);
  }
  /// Code units from one row of the tile to the next.
  template <class S>
  index_t step() const {
    return unit_of_element<S>(length);
  }
};

/// Code units of a row of n elements.
template <class S>
constexpr index_t units_of_row(index_t n) {
  return is_packed<typename S::code_format> ? divide_up(n * S::code_format::bits, 8) : n;
}

/// Bits behind the codes of n elements each of some rows become 0, as tensors have them.
template <class S>
void clear_unused_bits(detail::code_unit_t<S>* codes, index_t step, index_t rows, index_t n) {
  using unit = detail::code_unit_t<S>;
  if constexpr (is_packed<typename S::code_format>)
    if (const index_t used = n * S::code_format::bits % 8; used != 0) {
      const int used_bits = simd::turns_codes<S> ? 0xff00 >> used : (1 << used) - 1;
      for (index_t r = 0; r < rows; ++r) codes[r * step + units_of_row<S>(n) - 1] &= static_cast<unit>(used_bits);
    }
}

/// Calls visit(row, n, at) for tiles of at most `most` rows, side by side along the axis before the last: all of a
/// tensor, the first of each at an index in storage order.
template <std::size_t Rank, class Visit>
void for_each_row_tile(const std::array<index_t, Rank>& extents, index_t most, Visit visit) {
  index_t rows = 1;
  for (std::size_t axis = 0; axis + 1 < Rank; ++axis) rows *= extents[axis];
  for (index_t row = 0, n; row < rows; row += n) {
    const auto at = row_index(row, extents);
    n = std::min(most, extents[Rank - 2] - at[Rank - 2]);
    visit(row, n, at);
  }
}

/// Rows of a tile, n elements of each, to rows of memory; past the caches where these follow each other without a gap,
/// which moves those of the tile together first.
template <class T>
void store_tile(T* tile, index_t length, index_t rows, index_t n, T* to, index_t to_step, bool streams) {
  if (!streams || to_step != n) return simd::copy_rows(tile, length, rows, n, to, to_step);
  for (index_t r = 1; r < rows; ++r)
    std::memmove(tile + r * n, tile + r * length, static_cast<std::size_t>(n) * sizeof(T));
  simd::stream_bytes(tile, rows * n * index_t{sizeof(T)}, to);
}

}  // namespace qtensor::inline QTENSOR_ABI::ops
