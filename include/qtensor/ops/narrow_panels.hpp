// Narrow panels: several side by side in a tile, so that kernels see rows wide enough for their vectors.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <qtensor/ops/quantize_rows.hpp>

namespace qtensor::inline QTENSOR_ABI::ops {

/// How panels of a tensor, whose rows share scales, lie side by side in such a tile.
struct narrow_panels {
  index_t rows;    ///< of a panel
  index_t cols;    ///< elements of a row
  index_t width;   ///< elements from one panel of the tile to the next
  index_t block;   ///< elements of a row that share a scale
  index_t blocks;  ///< along a row
  index_t most;    ///< panels of a tile, at least two

  /// Parameters of all blocks of n panels: see padded_rows.
  template <class Index, class T, class Load>
  void load_entries(const Index&, index_t n, T* to, const Load& load) const {
    load(n * blocks, to);
  }

  /// Those of a tensor of several panels, one below the other, whose parameters follow each other from panel to panel;
  /// nothing else has a tile, nor panels that fill vectors by themselves.
  template <tensor_view_type View>
  static std::optional<narrow_panels> of(const View& w) {
    using S = typename View::scheme_type;
    constexpr index_t narrow = 64, wide = 256;  // columns of a tile
    if constexpr (View::rank < 2) {
      return {};
    } else {
      constexpr std::size_t last = static_cast<std::size_t>(View::rank) - 1;
      const auto extents = w.storage_extents();
      const auto& grid = w.scale_grid();
      const index_t rows = grid.block[last - 1], cols = extents[last];
      if (rows <= 1 || 2 * rows > extents[last - 1] || !panels_follow_each_other(grid, extents)) return {};
      if constexpr (S::has_zero_point)
        if (w.zero_grid().block != grid.block || !panels_follow_each_other(w.zero_grid(), extents)) return {};
      const index_t blocks = divide_up(cols, grid.block[last]);
      const index_t block = grid.block[last] < cols ? grid.block[last] : cols > 1 ? round_up(cols, byte_step<S>) : 1;
      const index_t width = round_up(blocks * block, byte_step<S>);
      const index_t most = std::clamp(tile_floats / rows, narrow, wide) / std::max(width, index_t{1});
      if (most < 2 || rows * most * width > 4 * tile_floats || blocks * block != width) return {};
      return narrow_panels{rows, cols, width, block, blocks, std::min(most, extents[last - 1] / rows)};
    }
  }

 private:
  /// Whether panels reach over one axis, and their parameters lie side by side, those of the next one behind them.
  template <class Grid, class Array>
  static bool panels_follow_each_other(const Grid& grid, const Array& extents) {
    constexpr std::size_t last = std::tuple_size_v<Array> - 1;
    for (std::size_t axis = 0; axis + 1 < last; ++axis)
      if (grid.block[axis] != 1 && extents[axis] != 1) return false;
    return grid.stride[last] == 1 && grid.stride[last - 1] == divide_up(extents[last], grid.block[last]);
  }
};

/// Quantizes narrow panels, a tile of them at a time: numbers are copied side by side, their codes back.
template <tile_source X, class Quantizer>
class narrow_panel_quantizer {
  using S = typename Quantizer::scheme_type;
  using From = source_elements<X>;
  using element = element_of<X>;
  using unit = detail::code_unit_t<S>;
  using index_array = typename Quantizer::index_array;

 public:
  narrow_panel_quantizer(const X& x, const Quantizer& q, const narrow_panels& tile)
      : x_(x),
        q_(q),
        tile_(tile),
        numbers_(tile.rows * step()),
        codes_(line_array<unit>::for_overwrite(tile.rows * code_step())),
        in_order_(line_array<unit>::for_overwrite(q.streams() ? tile.rows * code_step() : 0)),
        divisors_(line_array<float>::for_overwrite(Quantizer::columns_type::memory_for(step()))),
        parameters_(tile.most * tile.blocks),
        of_columns_(step() + simd::lanes<simd::best_arch>) {}

  /// Scales and codes of all panels.
  void quantize() {
    statistics_memory<S> statistics(tile_.most * tile_.blocks);
    const statistics_view seen = statistics.view();
    const parameters_view p = parameters_.view();
    for_each_tile([&](const index_array& at, index_t n, const narrow_panels& tile) {
      seen.clear(n * tile.blocks);
      join_box<S, From>(0, box(n, tile), tile.block, seen);
      const simd::blocks_are blocks = q_.finish_tile(at, n, tile, seen, p);
      encode(at, n, tile, blocks);
      if (blocks == simd::blocks_are::special) mend(at, n, tile, seen);
    });
  }

  /// Codes of all panels under scales (and zero points) that are stored.
  void encode() {
    for_each_tile([&](const index_array& at, index_t n, const narrow_panels& tile) {
      q_.load_tile(at, n, tile, parameters_.view());
      encode(at, n, tile, simd::blocks_are::ordinary);
    });
  }

 private:
  /// From one row of a tile to the next.
  index_t step() const { return tile_.most * tile_.width; }
  index_t code_step() const { return unit_of_element<S>(step()); }

  matrix_ref<const element> box(index_t n, const narrow_panels& tile) const {
    return {numbers_.data(), tile.rows, n * tile.width, step(), 1};
  }

  /// Calls visit(at, n, tile) for tiles of n panels, the first at an index; a short panel comes alone. Their numbers
  /// are in the tile then.
  template <class Visit>
  void for_each_tile(Visit visit) {
    constexpr std::size_t down = static_cast<std::size_t>(Quantizer::rank) - 2;
    const index_t height = q_.extents()[down];
    for (index_t row = 0; row < x_.rows(); row += height)
      for (index_t begin = 0, rows; begin < height; begin += rows) {
        narrow_panels tile = tile_;
        tile.rows = std::min(tile_.rows, height - begin);
        const index_t n = std::clamp((height - begin) / tile_.rows, index_t{1}, tile_.most);
        rows = n * tile.rows;
        for (index_t k = 0; k < n; ++k) read(row + begin + k * tile.rows, tile.rows, numbers_.data() + k * tile.width);
        visit(q_.index_of_row(row + begin), n, tile);
      }
  }
  void read(index_t row, index_t rows, element* to) const {
    if (const auto from_step = row_step(x_))
      simd::copy_rows(x_.direct(row, 0), *from_step, rows, tile_.cols, to, step());
    else
      x_.read(row, rows, 0, tile_.cols, to, step());
  }

  void encode(const index_array& at, index_t n, const narrow_panels& tile, simd::blocks_are blocks) {
    const index_t cols = n * tile.width;
    const parameters_view p = parameters_.view(), own = tile.block > 1 ? of_columns(p, cols) : p;
    const auto columns = q_.column_encoder(own, cols, divisors_.data(), blocks, {p.scales, tile.block});
    columns.encode(numbers_.data(), step(), tile.rows, 0, cols, codes_.data(), code_step());
    store(q_.codes(at, 0), n, tile);
  }
  /// Codes of a tile to their rows in memory; past the caches where these follow each other without a gap.
  void store(unit* to, index_t n, const narrow_panels& tile) {
    const index_t units = units_of_row<S>(tile.cols), to_step = q_.code_step();
    const bool streams = q_.streams() && to_step == units;
    for (index_t k = 0; k < n; ++k) {
      unit* from = codes_.data() + unit_of_element<S>(k * tile.width);
      clear_unused_bits<S>(from, code_step(), tile.rows, tile.cols);
      simd::copy_rows(from, code_step(), tile.rows, units, (streams ? in_order_.data() : to) + k * tile.rows * to_step,
                      to_step);
    }
    if (streams) simd::stream_bytes(in_order_.data(), n * tile.rows * units * index_t{sizeof(unit)}, to);
  }
  /// The parameters of columns from those of their blocks.
  parameters_view of_columns(const parameters_view& p, index_t cols) {
    using arch = simd::best_arch;
    const parameters_view to = of_columns_.view();
    simd::spread_entries<arch>(p.scales, tile_.block, 0, cols, to.scales);
    if (p.zero_points != nullptr) simd::spread_entries<arch>(p.zero_points, tile_.block, 0, cols, to.zero_points);
    return to;
  }

  /// The codes of special blocks again, by the reference.
  void mend(index_array at, index_t n, const narrow_panels& tile, const statistics_view& seen) const {
    const std::size_t last = at.size() - 1;
    for (index_t k = 0; k < n; ++k)
      for (index_t r = 0; r < tile.rows; ++r, ++at[last - 1])
        for (index_t b = 0; b < tile.blocks; ++b) {
          at[last] = b * tile.block;
          const element* x = numbers_.data() + r * step() + k * tile.width + at[last];
          q_.mend_block(at, std::min(tile.block, tile.cols - at[last]), x, seen[k * tile.blocks + b]);
        }
  }

  const X& x_;
  const Quantizer& q_;
  narrow_panels tile_;
  line_array<element> numbers_;  // zeros between panels, which no statistics see
  line_array<unit> codes_, in_order_;
  line_array<float> divisors_;
  parameters_memory<S> parameters_, of_columns_;
};

}  // namespace qtensor::inline QTENSOR_ABI::ops
