// Register tiles of convolutions: rows are pixels anywhere in memory, the depth comes in segments of taps.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <qtensor/simd/gemm_int8.hpp>

// Row r of a tile is one output pixel. Its terms are runs of units at offsets that all pixels share: unit k of segment
// s is rows[r][offsets[s] + k]. Weights follow each other segment by segment, in the layout of dot_tile.
namespace qtensor::inline QTENSOR_ABI::simd {

/// Where the terms of a pixel lie.
struct tap_segments {
  const index_t* offsets;
  index_t count;
  index_t quads;  ///< of each segment
};

/// Pixels of a tile of dot_row_tile at most, and taps of one of its runs.
inline constexpr index_t row_tile_pixels = 14, row_tile_taps = 3;
/// Whether it is worth its code, as measured: where registers are many and wide.
template <usable_arch A>
inline constexpr bool has_row_tiles = lanes<A> == 16;

namespace detail {

template <class A, index_t Rows, index_t Vectors>
[[gnu::noinline]] void dot_taps_registers(const std::int8_t* panel, const typename quad_dot<A>::unit* const* rows,
                                          const tap_segments& taps, const std::int32_t* start, std::int32_t* sums) {
  using dot = quad_dot<A>;
  constexpr index_t step = lanes<A>, vectors = Vectors, width = int_tile<A>::panel;
  ints<A> sum[Rows][vectors];
  repeat<vectors>([&](auto v) QTENSOR_INLINE_LAMBDA {
    const ints<A> first = simd::load<A>(start + v * step);
    repeat<Rows>([&](auto r) QTENSOR_INLINE_LAMBDA { sum[r][v] = first; });
  });
  const typename dot::unit* row[Rows];
  for (index_t s = 0; s < taps.count; ++s) {
    repeat<Rows>([&](auto r) QTENSOR_INLINE_LAMBDA { row[r] = rows[r] + taps.offsets[s]; });
    for (index_t q = 0; q < 4 * taps.quads; q += 4) {
      add_quad<A, Rows, vectors>(sum, panel, [&](auto r) QTENSOR_INLINE_LAMBDA { return row[r] + q; });
      panel += width * 4;
    }
  }
  repeat<Rows>([&](auto r) QTENSOR_INLINE_LAMBDA {
    repeat<vectors>([&](auto v) QTENSOR_INLINE_LAMBDA { simd::store(sums + r * width + v * step, sum[r][v]); });
  });
}

template <class A, index_t Rows, index_t Vectors>
[[gnu::noinline]] void dot_taps_squares(const std::int8_t* panel, const typename quad_dot<A>::unit* const* rows,
                                        const tap_segments& taps, const std::int32_t* start, std::int32_t* sums) {
  constexpr index_t quad_bytes = 4 * int_tile<A>::panel;
  square_sums<A, Rows, Vectors> all(start);
  for (index_t s = 0; s < taps.count; ++s, panel += taps.quads * quad_bytes) {
    index_t q = 0;
    const auto row = [&](index_t r) QTENSOR_INLINE_LAMBDA { return rows[r] + taps.offsets[s] + 4 * q; };
    for (; q + 2 <= taps.quads; q += 2) all.template add<2>(panel + q * quad_bytes, row);
    if (q < taps.quads) all.template add<1>(panel + q * quad_bytes, row);
  }
  all.store(sums);
}

template <class A, index_t Vectors>
void dot_taps_rows(index_t count, const std::int8_t* panel, const typename quad_dot<A>::unit* const* rows,
                   const tap_segments& taps, const std::int32_t* start, std::int32_t* sums) {
  with_count<int_tile<A>::max_rows>(count,
                                    [&]<index_t Rows>(std::integral_constant<index_t, Rows>) QTENSOR_INLINE_LAMBDA {
                                      if constexpr (square_dot<A>::exists && Rows >= square_rows)
                                        dot_taps_squares<A, Rows, Vectors>(panel, rows, taps, start, sums);
                                      else
                                        dot_taps_registers<A, Rows, Vectors>(panel, rows, taps, start, sums);
                                    });
}

/// Pixels side by side for a vector of columns: the units of a place are read once for all taps that meet it.
template <class A, index_t Pixels>
[[gnu::noinline]] void dot_row_registers(const std::int8_t* panel, const typename quad_dot<A>::unit* first,
                                         index_t place_step, const tap_segments& runs, const std::int32_t* start,
                                         std::int32_t* sums) {
  using dot = quad_dot<A>;
  constexpr index_t taps = row_tile_taps, quad_bytes = 4 * int_tile<A>::panel;
  ints<A> sum[Pixels];
  const ints<A> begin = simd::load<A>(start);
  repeat<Pixels>([&](auto p) QTENSOR_INLINE_LAMBDA { sum[p] = begin; });
  for (index_t s = 0; s < runs.count; ++s, panel += taps * runs.quads * quad_bytes)
    for (index_t q = 0; q < runs.quads; ++q) {
      typename dot::weights w[taps];
      repeat<taps>([&](auto t) QTENSOR_INLINE_LAMBDA { w[t] = dot::load(panel + (t * runs.quads + q) * quad_bytes); });
      const auto* place = first + runs.offsets[s] + 4 * q;
      repeat<Pixels + taps - 1>([&](auto i) QTENSOR_INLINE_LAMBDA {
        const auto four = dot::broadcast(place);
        place += place_step;
        repeat<taps>([&](auto t) QTENSOR_INLINE_LAMBDA {
          constexpr index_t p = index_t{i} - index_t{t};
          if constexpr (p >= 0 && p < Pixels) sum[p] = dot::dot(sum[p], w[t], four);
        });
      });
    }
  repeat<Pixels>([&](auto p) QTENSOR_INLINE_LAMBDA { simd::store(sums + p * int_tile<A>::panel, sum[p]); });
}

/// Quads whose weights stay in registers while all rows pass.
template <class A>
inline constexpr index_t most_held_quads = int_tile<A>::many_registers ? 8 : 3;

/// What the sums of a row begin with: `start`, or what they have come to.
enum class sums_from { start, sums };

template <class A, sums_from From, index_t Quads>
[[gnu::noinline]] void dot_lanes_held(const std::int8_t* panel, const std::uint8_t* rows, index_t row_step,
                                      index_t count, const index_t* offsets, const std::int32_t* start,
                                      std::int32_t* sums, index_t columns) {
  using dot = quad_dot<A>;
  constexpr index_t step = lanes<A>, width = 4 * step;
  for (index_t c = 0; c < columns; c += step) {
    const ints<A> first = simd::load<A>(start + c);
    typename dot::weights w[std::max(Quads, index_t{1})];
    const std::uint8_t* row[std::max(Quads, index_t{1})];
    repeat<Quads>([&](auto q) QTENSOR_INLINE_LAMBDA {
      w[q] = dot::load(panel + (q * width + c) * 4);
      row[q] = rows + offsets[q] + 4 * c;
    });
    std::int32_t* to = sums + c;
    for (index_t r = 0; r < count; ++r, to += width) {
      ints<A> sum = first;
      if constexpr (From == sums_from::sums) sum = simd::load<A>(to);
      repeat<Quads>([&](auto q) QTENSOR_INLINE_LAMBDA {
        sum = dot::dot(sum, w[q], dot::load_row(row[q]));
        row[q] += row_step;
      });
      simd::store(to, sum);
    }
  }
}

template <class A, class Step, index_t Rows>
[[gnu::noinline]] void fma_taps_registers(const float* weights, const float* const* rows, const index_t* offsets,
                                          index_t taps, index_t columns, float* sums) {
  constexpr index_t step = lanes<A>, vectors = 4, width = vectors * step;
  for (index_t v = 0; v < columns; v += 2 * step) {
    floats<A> sum[Rows][2];
    repeat<Rows>([&](auto r) QTENSOR_INLINE_LAMBDA { sum[r][0] = sum[r][1] = floats<A>(0.f); });
    for (index_t t = 0; t < taps; ++t) {
      const floats<A> w0 = simd::load<A>(weights + t * width + v), w1 = simd::load<A>(weights + t * width + v + step);
      const index_t at = offsets[t] + v;
      repeat<Rows>([&](auto r) QTENSOR_INLINE_LAMBDA {
        sum[r][0] = Step::template add<A>(sum[r][0], simd::load<A>(rows[r] + at), w0);
        sum[r][1] = Step::template add<A>(sum[r][1], simd::load<A>(rows[r] + at + step), w1);
      });
    }
    repeat<Rows>([&](auto r) QTENSOR_INLINE_LAMBDA {
      simd::store(sums + r * width + v, sum[r][0]);
      simd::store(sums + r * width + v + step, sum[r][1]);
    });
  }
}

}  // namespace detail

/// sums[r * panel + c] = start[c] + sum over the units of row r times the weights of column c, for r < count <=
/// int_tile<A>::max_rows and c < columns; modulo 2^32. Row r begins at rows[r]; weight i of quad q, the quads of all
/// segments counted through, and column c is panel_codes[(q * panel + c) * 4 + i]. Columns from `columns` to the panel
/// may be computed or left.
template <usable_arch A>
void dot_taps_tile(const std::int8_t* panel_codes, const typename quad_dot<A>::unit* const* rows, index_t count,
                   const tap_segments& taps, const std::int32_t* start, std::int32_t* sums,
                   index_t columns = int_tile<A>::panel) {
  constexpr index_t vectors = int_tile<A>::vectors;
  if (columns <= lanes<A>) return detail::dot_taps_rows<A, 1>(count, panel_codes, rows, taps, start, sums);
  if constexpr (vectors > 2)
    if (columns <= 2 * lanes<A>) return detail::dot_taps_rows<A, 2>(count, panel_codes, rows, taps, start, sums);
  detail::dot_taps_rows<A, vectors>(count, panel_codes, rows, taps, start, sums);
}

/// sums[p * panel + c] = start[c] + sum over the units of pixel p times the weights of column c, for p < count <=
/// row_tile_pixels and the columns of the first vector; modulo 2^32. Pixels lie side by side, `place_step` units from
/// each other, and so do the taps of a run, row_tile_taps each of runs.quads quads: unit k of tap t of run s and pixel
/// p is first[(p + t) * place_step + runs.offsets[s] + k]. Weights follow each other run by run, tap by tap. Few
/// columns leave dot_taps_tile waiting for units: here each is read once for all taps of a run.
template <usable_arch A>
void dot_row_tile(const std::int8_t* panel_codes, const typename quad_dot<A>::unit* first, index_t place_step,
                  index_t count, const tap_segments& runs, const std::int32_t* start, std::int32_t* sums) {
  detail::with_count<row_tile_pixels>(
      count, [&]<index_t Pixels>(std::integral_constant<index_t, Pixels>) QTENSOR_INLINE_LAMBDA {
        detail::dot_row_registers<A, Pixels>(panel_codes, first, place_step, runs, start, sums);
      });
}

/// Lanes of a tile that keeps channels apart, and rows of one.
template <usable_arch A>
inline constexpr index_t channel_panel = 4 * lanes<A>;
inline constexpr index_t channel_rows = 4;

/// sums[r * channel_panel + c] = start[c] + sum over q < quads and i < 4 of weight i of quad q and lane c,
/// panel_codes[(q * channel_panel + c) * 4 + i], times unit i of this lane, rows[r * row_step + offsets[q] + 4 * c +
/// i], a byte of quad_dot::load_row: every lane has its own factors, as depthwise convolutions want it. Modulo 2^32; r
/// < count and c < columns. Columns from `columns` to the panel may be computed or left.
template <usable_arch A>
void dot_lanes_tile(const std::int8_t* panel_codes, const std::uint8_t* rows, index_t row_step, index_t count,
                    const index_t* offsets, index_t quads, const std::int32_t* start, std::int32_t* sums,
                    index_t columns = channel_panel<A>) {
  using detail::sums_from;
  constexpr index_t most = detail::most_held_quads<A>;
  const auto add = [&]<sums_from From>(index_t first, index_t some) QTENSOR_INLINE_LAMBDA {
    detail::with_count<most, 0>(some, [&]<index_t Quads>(std::integral_constant<index_t, Quads>) QTENSOR_INLINE_LAMBDA {
      detail::dot_lanes_held<A, From, Quads>(panel_codes + first * 4 * channel_panel<A>, rows, row_step, count,
                                             offsets + first, start, sums, columns);
    });
  };
  const index_t each = divide_up(quads, std::max(divide_up(quads, most), index_t{1}));
  add.template operator()<sums_from::start>(0, each);
  for (index_t q = each; q < quads; q += each) add.template operator()<sums_from::sums>(q, std::min(each, quads - q));
}

/// sums[r * channel_panel + c] = the chain over t < taps of rows[r][offsets[t] + c] times weights[t * channel_panel +
/// c] from +0: the same in floats. count is 1 to channel_rows. Lanes from `columns` to the panel may be computed or
/// left.
template <usable_arch A, class Step>
void fma_taps_tile(const float* weights, const float* const* rows, index_t count, const index_t* offsets, index_t taps,
                   float* sums, index_t columns = channel_panel<A>) {
  if (count == channel_rows)
    return detail::fma_taps_registers<A, Step, channel_rows>(weights, rows, offsets, taps, columns, sums);
  for (index_t r = 0; r < count; ++r)
    detail::fma_taps_registers<A, Step, 1>(weights, rows + r, offsets, taps, columns, sums + r * channel_panel<A>);
}

}  // namespace qtensor::inline QTENSOR_ABI::simd
