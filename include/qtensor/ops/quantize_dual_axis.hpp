// Dual axis: two tensors of one source, groups along the rows in one and along the columns in the other, from one read.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>
#include <qtensor/ops/parallel.hpp>
#include <qtensor/simd/quantize_both_axes.hpp>
#include <qtensor/simd/statistics_columns.hpp>

namespace qtensor::inline QTENSOR_ABI {

/// Both quantizations of one source: `auto [rows, cols] = quantize_dual_axis<mxfp8_e4m3>(X)`.
template <quantization_scheme S, tensor_extents Extents = matrix_extents>
struct dual_axis {
  static_assert(
      Extents::rank >= 2,
      "qtensor: quantize_dual_axis quantizes along the last two axes; the source needs a rank of at least 2.");
  tensor<along<-1, S>, Extents> rows;  // groups along the last axis
  tensor<along<-2, S>, Extents> cols;  // groups along the axis before it, of the original numbers, not of `rows`
};

namespace ops {

/// Two tensors of one source, bands of rows at a time: a band is one group of `by_cols` high, and what lies in the
/// second-level cache of it is quantized along both axes.
template <tile_source X, quantization_scheme R, quantization_scheme C, tensor_extents E>
class dual_axis_quantizer {
  using from = source_elements<X>;
  using element = element_of<X>;
  using rows_type = row_quantizer<R, E, row_major, from>;
  using cols_type = row_quantizer<C, E, row_major, from>;
  using array = typename E::array;
  static constexpr std::size_t down = static_cast<std::size_t>(E::rank) - 2;
  static constexpr index_t group = simd::detail::static_group<typename R::granularity_type>;
  /// Statistics of both axes from one load, codes of both from another.
  static constexpr bool together = simd::encodes_both_axes<R, C, from> && simd::vector_scaled<R> &&
                                   simd::vector_scaled<C> && !leaves_out<R> && !leaves_out<C>;

 public:
  dual_axis_quantizer(const X& x, const tensor_span<R, E, row_major>& by_rows,
                      const tensor_span<C, E, row_major>& by_cols)
      : x_(x),
        by_rows_(by_rows, row_step(x).has_value()),
        by_cols_(by_cols, row_step(x).has_value()),
        height_(by_cols.granularity().size()),
        rows_(by_rows.extents()[static_cast<int>(down)]),
        step_(common_multiple(by_rows_.block_length(), common_multiple(byte_step<R>, byte_step<C>))) {}

  /// Whether one reading is enough, and faster: what else there is (a matrix of one row, very long groups) takes two,
  /// and short rows in memory do, as a call for each of them would take longer.
  bool fits() const {
    constexpr index_t short_row = 512;
    const bool is_narrow = x_.cols() < short_row && row_step(x_).has_value();
    return !is_narrow && step_ <= tile_floats && height_ <= box_floats / tile_floats && by_rows_.rows_are_panels() &&
           !by_cols_.is_flat() && by_cols_.block_length() == 1;
  }
  /// Bands of all matrices, and the elements of one.
  index_t band_count() const { return x_.rows() / rows_ * divide_up(rows_, height_); }
  index_t band_size() const { return height_ * x_.cols(); }

  /// Quantizes bands [first, first + count).
  void operator()(index_t first, index_t count) const {
    const index_t bands = divide_up(rows_, height_), cols = x_.cols(),
                  width = std::min(piece_length(step_, box_width), cols);
    workspace work(*this, {height_, width});
    for (index_t band = first; band < first + count; ++band) {
      const index_t above = band % bands * height_, start = band / bands * rows_ + above;
      const index_t rows = rows_ - above < height_ ? rows_ - above : height_;
      for (index_t col = 0; col < cols; col += width) {
        const index_t n = cols - col < width ? cols - col : width;
        const auto box = work.elements.read(start, rows, col, n);
        if constexpr (together)
          if (quantize_together(work, start, col, box)) continue;
        quantize_apart(work, start, col, box);
      }
    }
  }

 private:
  static constexpr index_t box_width = 1024;
  using box_type = typename box_reader<X>::box_type;

  struct workspace {
    workspace(const dual_axis_quantizer& q, const box_shape& box)
        : quantize_piece(q.by_rows_),
          elements(q.x_, box),
          row_statistics(box.rows * divide_up(box.cols, q.by_rows_.block_length())),
          column_statistics(box.cols),
          row_parameters(box.rows * divide_up(box.cols, q.by_rows_.block_length())),
          column_parameters(box.cols),
          memory(line_array<float>::for_overwrite(cols_type::columns_type::memory_for(box.cols))) {}
    piece_quantizer<rows_type> quantize_piece;
    std::optional<panel_quantizer<cols_type>> quantize_panel;  // made when it is asked for
    box_reader<X> elements;
    statistics_memory<R> row_statistics;
    statistics_memory<C> column_statistics;
    parameters_memory<R> row_parameters;
    parameters_memory<C> column_parameters;
    line_array<float> memory;
  };

  /// The index of a row of the source in `by_rows`, and the column of its element `col`.
  std::pair<array, index_t> place_in_rows(index_t row, index_t col) const {
    return {by_rows_.index_of_row(row), by_rows_.is_flat() ? row * x_.cols() + col : col};
  }

  /// False, with nothing of use written, where a block is special or does not fit its scale.
  bool quantize_together(workspace& work, index_t start, index_t col, const box_type& box) const {
    const index_t rows = box.rows(), n = box.cols(), blocks = divide_up(n, group);
    const statistics_view of_rows = work.row_statistics.view(), of_columns = work.column_statistics.view();
    const parameters_view p = work.row_parameters.view(), q = work.column_parameters.view();
    simd::amax_both_axes<simd::best_arch, group, from>(box.data, box.row_stride, rows, n, of_rows.amax,
                                                       of_columns.amax);
    const auto first = by_cols_.index_of_row(start);
    if (by_cols_.finish(first, col, n, of_columns, q) != simd::blocks_are::fitting) return false;
    for (index_t r = 0; r < rows; ++r) {
      const auto [row, at] = place_in_rows(start + r, col);
      if (by_rows_.finish(row, at / by_rows_.block_length(), blocks, of_rows.from(r * blocks), p.from(r * blocks)) !=
          simd::blocks_are::fitting)
        return false;
    }
    const auto columns = by_cols_.column_encoder(q, n, work.memory.data(), simd::blocks_are::fitting);
    // Tensors that go past the caches come from memory: what is asked for is the next box, of this band or the next.
    const bool asks = by_rows_.streams() && work.elements.is_direct();
    const index_t ahead = col + n < x_.cols() ? n : height_ * box.row_stride - col;
    for (index_t r = 0; r < rows; ++r) {
      const auto [row, at] = place_in_rows(start + r, col);
      const element* x = box.data + r * box.row_stride;
      if (!simd::encode_both_axes<R, C, from>(x, n, p.scales + r * blocks, nullptr, columns, 0, by_rows_.codes(row, at),
                                              by_cols_.codes(by_cols_.index_of_row(start + r), col), by_rows_.streams(),
                                              asks ? x + ahead : nullptr))
        return false;
    }
    return true;
  }

  /// One axis after the other.
  void quantize_apart(workspace& work, index_t start, index_t col, const box_type& box) const {
    const index_t n = box.cols(), width = work.elements.shape().cols;
    array size = by_cols_.index_of_row(0);
    for (auto& extent : size) extent = 1;
    size[down] = box.rows();
    if (!work.quantize_panel) work.quantize_panel.emplace(by_cols_, x_.cols(), width, step_);
    (*work.quantize_panel)(work.elements, by_cols_.index_of_row(start), size, col, n);
    if (by_rows_.is_flat() && box.row_stride == n) {  // the band is one long run
      for (index_t at = 0; at < box.rows() * n; at += width)
        work.quantize_piece(by_rows_.index_of_row(0), start * x_.cols() + at,
                            box.rows() * n - at < width ? box.rows() * n - at : width, box.data + at);
    } else {
      for (index_t r = 0; r < box.rows(); ++r) {
        const auto [row, at] = place_in_rows(start + r, col);
        work.quantize_piece(row, at, n, box.data + r * box.row_stride);
      }
    }
  }

  const X& x_;
  rows_type by_rows_;
  cols_type by_cols_;
  index_t height_, rows_, step_;
};

}  // namespace ops

/// Quantizes a row-major source along both of its last axes, into tensors whose extents it has (NUMERICS 3: CANN
/// DynamicMxQuantWithDualAxis): groups along the last axis into `by_rows`, along the one before it into `by_cols`.
/// Reads the source once where a group's rows fit the second-level cache, on any executor; the bits do not depend on
/// it.
template <tile_source X, quantization_scheme R, quantization_scheme C, tensor_extents E, executor By = serial>
void quantize_dual_axis_into(const X& x, const tensor_span<R, E, row_major>& by_rows,
                             const tensor_span<C, E, row_major>& by_cols, const execution<By>& on = {}) {
  static_assert(!R::has_tensor_scale && !C::has_tensor_scale,
                "qtensor: quantize_dual_axis reads its source once; a tensor scale needs a read of its own.");
  static_assert(
      E::rank >= 2,
      "qtensor: quantize_dual_axis quantizes along the last two axes; the source needs a rank of at least 2.");
  require(by_cols.extents().to_array() == by_rows.extents().to_array(),
          "quantize_dual_axis_into is given two tensors of different extents; both have those of the source.");
  ops::check_source(x, by_rows);
  if (by_rows.size() == 0) return;
  if constexpr (ops::walks_rows<R> && ops::walks_rows<C>) {
    decltype(auto) for_rows = ops::source_for<R>(x);
    decltype(auto) elements = ops::source_for<C>(for_rows);
    const ops::dual_axis_quantizer quantizer(elements, by_rows, by_cols);
    if (quantizer.fits()) {
      const index_t bands = quantizer.band_count();
      const index_t parts =
          ops::reads_in_parts<X>() ? detail::part_count(on.by, bands, 1, quantizer.band_size()) : index_t{1};
      return detail::for_ranges(on.by, parts, bands, 1,
                                [&](index_t, index_t first, index_t count) { quantizer(first, count); });
    }
  }
  const auto twice = [&](const auto& source) {
    quantize_into(source, by_rows, on);
    quantize_into(source, by_cols, on);
  };
  if constexpr (X::reads_twice)
    twice(x);
  else
    twice(ops::kept_source<X>(x).ref());
}

/// The same into new tensors.
template <quantization_scheme S, tile_source X, tensor_extents Extents, executor By = serial>
dual_axis<S, Extents> make_dual_axis(const X& x, const Extents& extents, const execution<By>& on = {}) {
  using by_rows = along<-1, S>;
  using by_cols = along<-2, S>;
  dual_axis<S, Extents> out{
      ops::tensor_to_fill<by_rows, Extents, row_major>(extents, ops::granularity_among<by_rows>()),
      ops::tensor_to_fill<by_cols, Extents, row_major>(extents, ops::granularity_among<by_cols>())};
  quantize_dual_axis_into(x, out.rows.span(), out.cols.span(), on);
  return out;
}

/// The same for memory of any rank from 2: `quantize_dual_axis<mxfp8_e4m3>(source(ptr, extents(m, n)), on(openmp()))`.
template <quantization_scheme S, format F, tensor_extents Extents, executor By = serial>
dual_axis<S, Extents> quantize_dual_axis(const memory_source<F, Extents>& x, const execution<By>& on = {}) {
  return make_dual_axis<S>(typename memory_source<F, Extents>::template in_order<row_major>(x), x.extents, on);
}

}  // namespace qtensor::inline QTENSOR_ABI
