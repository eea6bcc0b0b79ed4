// Dual axis: two tensors of one source, groups along the rows in one and along the columns in the other, from one read.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <qtensor/ops/parallel.hpp>

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
  using rows_type = row_quantizer<R, E, row_major, from>;
  using cols_type = row_quantizer<C, E, row_major, from>;
  static constexpr std::size_t down = static_cast<std::size_t>(E::rank) - 2;

 public:
  dual_axis_quantizer(const X& x, const tensor_span<R, E, row_major>& by_rows,
                      const tensor_span<C, E, row_major>& by_cols)
      : x_(x),
        by_rows_(by_rows, row_step(x).has_value()),
        by_cols_(by_cols, row_step(x).has_value()),
        height_(by_cols.granularity().size()),
        rows_(by_rows.extents()[static_cast<int>(down)]),
        step_(common_multiple(by_rows_.block_length(), common_multiple(byte_step<R>, byte_step<C>))) {}

  /// Whether one reading is enough; what else there is (a matrix of one row, very long groups) takes two.
  bool fits() const {
    return step_ <= tile_floats && height_ <= box_floats / tile_floats && by_rows_.rows_are_panels() &&
           !by_cols_.is_flat() && by_cols_.block_length() == 1;
  }
  /// Bands of all matrices, and the elements of one.
  index_t band_count() const { return x_.rows() / rows_ * divide_up(rows_, height_); }
  index_t band_size() const { return height_ * x_.cols(); }

  /// Quantizes bands [first, first + count).
  void operator()(index_t first, index_t count) const {
    const index_t bands = divide_up(rows_, height_), cols = x_.cols(), width = piece_length(step_, tile_floats);
    piece_quantizer<rows_type> quantize_piece(by_rows_);
    panel_quantizer<cols_type> quantize_panel(by_cols_, cols, step_);
    box_reader<X> elements(x_, {height_, width});
    for (index_t band = first; band < first + count; ++band) {
      const index_t above = band % bands * height_, start = band / bands * rows_ + above;
      auto size = by_cols_.index_of_row(0);
      for (auto& extent : size) extent = 1;
      size[down] = rows_ - above < height_ ? rows_ - above : height_;
      for (index_t col = 0; col < cols; col += width) {
        const index_t n = cols - col < width ? cols - col : width;
        const auto box = elements.read(start, size[down], col, n);
        quantize_panel(elements, by_cols_.index_of_row(start), size, col, n);
        if (by_rows_.is_flat() && box.row_stride == n) {  // the band is one long run
          for (index_t at = 0; at < box.rows() * n; at += width)
            quantize_piece(by_rows_.index_of_row(0), start * cols + at,
                           box.rows() * n - at < width ? box.rows() * n - at : width, box.data + at);
        } else {
          for (index_t r = 0; r < box.rows(); ++r)
            quantize_piece(by_rows_.index_of_row(start + r), (by_rows_.is_flat() ? (start + r) * cols : 0) + col, n,
                           box.data + r * box.row_stride);
        }
      }
    }
  }

 private:
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
    decltype(auto) elements = ops::source_for<R>(x);
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
  dual_axis<S, Extents> out{ops::tensor_to_fill<along<-1, S>, Extents, row_major>(extents),
                            ops::tensor_to_fill<along<-2, S>, Extents, row_major>(extents)};
  quantize_dual_axis_into(x, out.rows.span(), out.cols.span(), on);
  return out;
}

/// The same for memory of any rank from 2: `quantize_dual_axis<mxfp8_e4m3>(source(ptr, extents(m, n)), on(openmp()))`.
template <quantization_scheme S, format F, tensor_extents Extents, executor By = serial>
dual_axis<S, Extents> quantize_dual_axis(const memory_source<F, Extents>& x, const execution<By>& on = {}) {
  return make_dual_axis<S>(typename memory_source<F, Extents>::template in_order<row_major>(x), x.extents, on);
}

}  // namespace qtensor::inline QTENSOR_ABI
