// Register tiles of integer products by products of sums, which take half the multiplications.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <qtensor/simd/gemm_taps.hpp>

// What sum_dot adds besides is taken where sums start: the weights' share in the start of a panel's columns, which is
// computed with the widened weights once for all rows, and each row's share from its own sums.
namespace qtensor::inline QTENSOR_ABI::simd {

/// Rows of a tile: two vectors of columns leave registers for no more.
inline constexpr index_t sum_tile_rows = 4;
/// Rows from which on a panel is worth widening, as measured.
inline constexpr index_t least_rows_of_sums = 32;

/// `quads` of a panel to wide[0, 4 * panel * quads); start[c] -= the products among the weights of column c, modulo
/// 2^32.
template <usable_arch A>
requires(sum_dot<A>::exists) void widen_panel(const std::int8_t* panel_codes, index_t quads,
                                              typename sum_dot<A>::unit* wide, std::int32_t* start) {
  using dot = sum_dot<A>;
  constexpr index_t vectors = int_tile<A>::vectors, step = lanes<A>;
  ints<A> products[vectors];
  for (auto& p : products) p = ints<A>(0);
  for (index_t q = 0; q < quads; ++q)
    detail::repeat<vectors>([&](auto v) QTENSOR_INLINE_LAMBDA {
      products[v] = dot::widen(panel_codes, wide, products[v]);
      panel_codes += 4 * step, wide += dot::wide_units;
    });
  detail::repeat<vectors>([&](auto v) QTENSOR_INLINE_LAMBDA {
    simd::store(start + v * step, simd::load<A>(start + v * step) - products[v]);
  });
}

/// The products among the units of a row, modulo 2^32.
template <usable_arch A>
requires(sum_dot<A>::exists) std::int32_t
    unit_products(const typename sum_dot<A>::unit* units, const tap_segments& taps) {
  using dot = sum_dot<A>;
  constexpr index_t step = dot::product_units;
  ints<A> products(0);
  for (index_t s = 0; s < taps.count; ++s) {
    const auto* from = units + taps.offsets[s];
    index_t k = 0;
    for (; k + step <= 4 * taps.quads; k += step) products = dot::unit_products(from + k, products);
    if (k < 4 * taps.quads) {
      typename dot::unit rest[step] = {};
      std::memcpy(rest, from + k, static_cast<std::size_t>(4 * taps.quads - k) * sizeof *rest);
      products = dot::unit_products(rest, products);
    }
  }
  return static_cast<std::int32_t>(simd::reduce_add(simd::bits_as<std::uint32_t>(products)));
}

namespace detail {

template <class A, index_t Rows, int LinesAhead>
[[gnu::noinline]] void dot_sums(const typename sum_dot<A>::unit* wide, const typename sum_dot<A>::unit* const* rows,
                                const tap_segments& taps, const std::int32_t* products, const std::int32_t* start,
                                std::int32_t* sums, reading_ahead ahead) {
  using dot = sum_dot<A>;
  constexpr index_t step = lanes<A>, vectors = int_tile<A>::vectors, width = int_tile<A>::panel;
  ints<A> sum[Rows][vectors];
  repeat<vectors>([&](auto v) QTENSOR_INLINE_LAMBDA {
    const ints<A> first = simd::load<A>(start + v * step);
    repeat<Rows>([&](auto r) QTENSOR_INLINE_LAMBDA { sum[r][v] = first - ints<A>(products[r]); });
  });
  const typename dot::unit* row[Rows];
  for (index_t s = 0; s < taps.count; ++s) {
    repeat<Rows>([&](auto r) QTENSOR_INLINE_LAMBDA { row[r] = rows[r] + taps.offsets[s]; });
    for (index_t q = 0; q < 4 * taps.quads; q += 4) {
      ask_for<LinesAhead>(ahead);
      typename dot::weights w[vectors];
      repeat<vectors>([&](auto v) QTENSOR_INLINE_LAMBDA { w[v] = dot::load(wide + v * dot::wide_units); });
      wide += vectors * dot::wide_units;
      repeat<Rows>([&](auto r) QTENSOR_INLINE_LAMBDA {
        const auto four = dot::broadcast(row[r] + q);
        repeat<vectors>([&](auto v) QTENSOR_INLINE_LAMBDA { sum[r][v] = dot::dot(sum[r][v], w[v], four); });
      });
    }
  }
  repeat<Rows>([&](auto r) QTENSOR_INLINE_LAMBDA {
    repeat<vectors>([&](auto v) QTENSOR_INLINE_LAMBDA { simd::store(sums + r * width + v * step, sum[r][v]); });
  });
}

}  // namespace detail

/// sums[r * panel + c] = start[c] - products[r] + sum over the quads of row r and column c of their products of sums,
/// for r < count <= sum_tile_rows and all columns c of a panel; modulo 2^32. Row r begins at rows[r], `wide` and
/// `start` come from widen_panel, products[r] from unit_products. `ahead` is memory that will be read next, at most 64
/// bytes a quad.
template <usable_arch A>
requires(sum_dot<A>::exists) void dot_sums_tile(const typename sum_dot<A>::unit* wide,
                                                const typename sum_dot<A>::unit* const* rows, index_t count,
                                                const tap_segments& taps, const std::int32_t* products,
                                                const std::int32_t* start, std::int32_t* sums,
                                                const reading_ahead& ahead = {}) {
  detail::with_count<sum_tile_rows>(
      count, [&]<index_t Rows>(std::integral_constant<index_t, Rows>) QTENSOR_INLINE_LAMBDA {
        if (ahead.from == nullptr) return detail::dot_sums<A, Rows, 0>(wide, rows, taps, products, start, sums, ahead);
        detail::dot_sums<A, Rows, 1>(wide, rows, taps, products, start, sums, ahead);
      });
}

}  // namespace qtensor::inline QTENSOR_ABI::simd
