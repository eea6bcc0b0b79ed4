// Dual axis: two tensors of one source, groups along the rows in one and along the columns in the other, from one read.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <qtensor/ops/quantize.hpp>

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

/// A tensor of any rank, cut to one index on each of its leading axes but the last two.
template <int Axis = 0, class Span, std::size_t Rank>
auto at_leading(const Span& span, const std::array<index_t, Rank>& index) {
  if constexpr (Axis + 2 >= Span::rank)
    return span;
  else
    return at_leading<Axis + 1>(span.template slice<Axis>(index[static_cast<std::size_t>(Axis)], 1), index);
}

}  // namespace ops

/// Quantizes a row-major source along both of its last axes, into tensors whose extents it has (NUMERICS 3: CANN
/// DynamicMxQuantWithDualAxis): groups along the last axis into `by_rows`, along the one before it into `by_cols`. A
/// tile is one group high; it is read once and quantized twice while it is in L1.
template <tile_source X, quantization_scheme R, quantization_scheme C, tensor_extents E>
void quantize_dual_axis_into(const X& source, const tensor_span<R, E, row_major>& by_rows,
                             const tensor_span<C, E, row_major>& by_cols) {
  static_assert(!R::has_tensor_scale && !C::has_tensor_scale,
                "qtensor: quantize_dual_axis reads its source once; a tensor scale needs a read of its own.");
  static_assert(
      E::rank >= 2,
      "qtensor: quantize_dual_axis quantizes along the last two axes; the source needs a rank of at least 2.");
  const auto& x = as_floats(source);
  constexpr int down = E::rank - 2, across = E::rank - 1;
  const auto extents = by_rows.extents();
  require(by_cols.extents().to_array() == extents.to_array(),
          "quantize_dual_axis_into is given two tensors of different extents; both have those of the source.");
  ops::check_source(x, by_rows);
  if (extents.size() == 0) return;

  const index_t group = by_rows.granularity().size(), height_of_group = by_cols.granularity().size();
  const index_t rows = extents[down], cols = extents[across];
  // Whole rows where they fit, which are one long run of codes; small enough for half a second-level cache.
  const index_t width =
      ops::piece_length(ops::common_multiple(group, ops::byte_step<R>), 12 * ops::tile_floats / height_of_group + 1);
  const std::optional<index_t> step = ops::row_step(x);  // rows that lie in memory are read where they are
  std::vector<float> tile(step ? 0 : static_cast<std::size_t>(height_of_group * width));
  auto leading = extents.to_array();
  leading[static_cast<std::size_t>(down)] = leading[static_cast<std::size_t>(across)] = 1;
  index_t first_row = 0;  // of the matrix at this leading index, in rows of x
  reference::for_each_index(typename E::array{}, leading, [&](const typename E::array& index) {
    const auto row_span = ops::at_leading(by_rows, index);
    const auto col_span = ops::at_leading(by_cols, index);
    for (index_t row = 0; row < rows; row += height_of_group) {
      const index_t height = rows - row < height_of_group ? rows - row : height_of_group;
      for (index_t col = 0; col < cols; col += width) {
        const index_t count = cols - col < width ? cols - col : width;
        const float* floats = tile.data();
        if (step)
          floats = x.direct(first_row + row, col);
        else
          x.read(first_row + row, height, col, count, tile.data(), width);
        const matrix_ref<const float> here{floats, height, count, step.value_or(width), 1};
        quantize_into(here, row_span.template slice<down>(row, height).template slice<across>(col, count));
        quantize_into(here, col_span.template slice<down>(row, height).template slice<across>(col, count));
      }
    }
    first_row += rows;
  });
}

/// The same into new tensors.
template <quantization_scheme S, tile_source X, tensor_extents Extents>
dual_axis<S, Extents> make_dual_axis(const X& x, const Extents& extents) {
  dual_axis<S, Extents> out{tensor<along<-1, S>, Extents>(extents), tensor<along<-2, S>, Extents>(extents)};
  quantize_dual_axis_into(x, out.rows.span(), out.cols.span());
  return out;
}

/// The same for memory of any rank from 2.
template <quantization_scheme S, format F, tensor_extents Extents>
dual_axis<S, Extents> quantize_dual_axis(const memory_source<F, Extents>& x) {
  return make_dual_axis<S>(typename memory_source<F, Extents>::template in_order<row_major>(x), x.extents);
}

}  // namespace qtensor::inline QTENSOR_ABI
