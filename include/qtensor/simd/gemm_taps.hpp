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

template <class A, index_t Rows, index_t Vectors>
void dot_taps_rows(index_t count, const std::int8_t* panel, const typename quad_dot<A>::unit* const* rows,
                   const tap_segments& taps, const std::int32_t* start, std::int32_t* sums) {
  if constexpr (Rows > 1)
    if (count < Rows) return dot_taps_rows<A, Rows - 1, Vectors>(count, panel, rows, taps, start, sums);
  if constexpr (square_dot<A>::exists && Rows >= square_rows)
    dot_taps_squares<A, Rows, Vectors>(panel, rows, taps, start, sums);
  else
    dot_taps_registers<A, Rows, Vectors>(panel, rows, taps, start, sums);
}

template <class A, index_t Rows>
[[gnu::noinline]] void dot_lanes_registers(const std::int8_t* panel, const std::uint8_t* rows, index_t row_step,
                                           const index_t* offsets, index_t quads, const std::int32_t* start,
                                           std::int32_t* sums, index_t columns) {
  using dot = quad_dot<A>;
  constexpr index_t step = lanes<A>, width = 4 * step, vectors = 2;
  for (index_t c = 0; c < columns; c += vectors * step) {
    ints<A> sum[Rows][vectors];
    repeat<vectors>([&](auto v) QTENSOR_INLINE_LAMBDA {
      const ints<A> first = simd::load<A>(start + c + v * step);
      repeat<Rows>([&](auto r) QTENSOR_INLINE_LAMBDA { sum[r][v] = first; });
    });
    for (index_t q = 0; q < quads; ++q) {
      typename dot::weights w[vectors];
      repeat<vectors>([&](auto v) QTENSOR_INLINE_LAMBDA { w[v] = dot::load(panel + (q * width + c + v * step) * 4); });
      const std::uint8_t* const at = rows + offsets[q] + 4 * c;
      repeat<Rows>([&](auto r) QTENSOR_INLINE_LAMBDA {
        repeat<vectors>([&](auto v) QTENSOR_INLINE_LAMBDA {
          sum[r][v] = dot::dot(sum[r][v], w[v], dot::load_row(at + r * row_step + 4 * v * step));
        });
      });
    }
    repeat<Rows>([&](auto r) QTENSOR_INLINE_LAMBDA {
      repeat<vectors>([&](auto v) QTENSOR_INLINE_LAMBDA { simd::store(sums + r * width + c + v * step, sum[r][v]); });
    });
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
  constexpr index_t height = int_tile<A>::max_rows, vectors = int_tile<A>::vectors;
  if (columns <= lanes<A>) return detail::dot_taps_rows<A, height, 1>(count, panel_codes, rows, taps, start, sums);
  if constexpr (vectors > 2)
    if (columns <= 2 * lanes<A>)
      return detail::dot_taps_rows<A, height, 2>(count, panel_codes, rows, taps, start, sums);
  detail::dot_taps_rows<A, height, vectors>(count, panel_codes, rows, taps, start, sums);
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
  constexpr index_t most = channel_rows, width = channel_panel<A>;
  index_t r = 0;
  for (; r + most <= count; r += most)
    detail::dot_lanes_registers<A, most>(panel_codes, rows + r * row_step, row_step, offsets, quads, start,
                                         sums + r * width, columns);
  // Counted so that g++ 12 -O3 sees an end to it: it warns of loops that would leave memory if they had none.
  for (index_t left = count % most; left > 0; --left, ++r)
    detail::dot_lanes_registers<A, 1>(panel_codes, rows + r * row_step, row_step, offsets, quads, start,
                                      sums + r * width, columns);
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
