// Numbers less the offsets that a tensor stores for them: what is left to its scales, for kernels that know no offsets.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <qtensor/ops/block_parameters.hpp>
#include <qtensor/ops/rows.hpp>

namespace qtensor::inline QTENSOR_ABI::ops {

/// A source with the rows of a tensor, each element less its offset, rounded once (reference: quantize_element). Floats
/// in tiles, whatever the elements of x are.
template <tile_source X, tensor_view_type View>
requires(View::scheme_type::has_offset) class less_offsets {
 public:
  static constexpr bool reads_rows = X::reads_rows, reads_twice = X::reads_twice;

  /// Keeps both.
  less_offsets(const X& x, const View& offsets_of) : x_(x), w_(offsets_of) {}
  index_t rows() const { return x_.rows(); }
  index_t cols() const { return x_.cols(); }
  const float* direct(index_t, index_t) const { return nullptr; }
  bool reads_by_rows(index_t row) const { return ops::reads_by_rows(x_, row); }
  void read(index_t row, index_t rows, index_t col, index_t cols, float* tile, index_t stride) const {
    const bool in_place = x_.direct(row, col) != nullptr;
    if (!in_place) x_.read(row, rows, col, cols, tile, stride);
    constexpr index_t most = 512;
    alignas(64) float offsets[most];
    for (index_t r = 0; r < rows; ++r) {
      const auto at = row_index(row + r, w_.storage_extents());
      float* const to = tile + r * stride;
      const auto* here = in_place ? x_.direct(row + r, col) : nullptr;
      if (in_place && here == nullptr) x_.read(row + r, 1, col, cols, to, stride);
      for (index_t c = 0; c < cols; c += most) {
        const index_t n = std::min(most, cols - c);
        load_offsets(w_, at, col + c, n, 1, offsets);
        if (here != nullptr)
          subtract<source_elements<X>>(here + c, offsets, n, to + c);
        else
          subtract<simd::from_f32>(to + c, offsets, n, to + c);
      }
    }
  }

 private:
  template <simd::float_source From>
  static void subtract(const typename From::type* x, const float* offsets, index_t n, float* to) {
    using A = simd::best_arch;
    constexpr index_t step = simd::lanes<A>;
    index_t i = 0;
    for (; i + step <= n; i += step)
      simd::store(to + i, simd::sub(From::template load<A>(x + i), simd::load<A>(offsets + i)));
    for (; i < n; ++i) to[i] = rounded(simd::number<From>(x[i]) - offsets[i]);
  }

  const X& x_;
  const View& w_;
};

/// S as whoever has taken the offsets off its numbers sees it: scales are given.
template <quantization_scheme S>
using without_offsets = typename detail::other_form<detail::basic_scheme_of<S>, no_offset, static_only>::type;

/// The same tensor as one of that scheme: its codes and scales.
template <quantization_scheme S, tensor_extents E, storage_order O>
requires(S::has_offset &&
         !S::is_interleaved) tensor_span<without_offsets<S>, E, O> span_without_offsets(const tensor_span<S, E, O>& w) {
  const auto& m = w.memory();
  return {{w.extents(), w.granularity(), w.zero_granularity()},
          {m.codes, m.scales, m.zero_points, {}, m.tensor_scale},
          w.row_strides(),
          w.scale_grid(),
          w.zero_grid()};
}

}  // namespace qtensor::inline QTENSOR_ABI::ops
