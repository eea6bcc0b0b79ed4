// Largest magnitudes and ranges along columns of numbers, and along both axes at once.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <qtensor/simd/statistics.hpp>

namespace qtensor::inline QTENSOR_ABI::simd {

/// best[i] = max(best[i], magnitudes[i]) for i < n.
///
/// Reads magnitudes[0, n), updates best[0, n). Cost: 1 operation per batch.
template <usable_arch A>
void join_maxima(const std::uint32_t* magnitudes, index_t n, std::uint32_t* best) {
  index_t i = 0;
  for (; i + lanes<A> <= n; i += lanes<A>)
    simd::store(best + i, simd::max(simd::load<A>(best + i), simd::load<A>(magnitudes + i)));
  for (; i < n; ++i) best[i] = std::max(best[i], magnitudes[i]);
}

namespace detail {

/// How many rows of n elements are read together: eight, as those at powers of two fill the ways of a cache, or one
/// where the CPU likes that and they are long.
inline index_t rows_read_together(index_t n) {
  constexpr index_t long_row = 2048;
  return n >= long_row && best_requests().rows == 1 ? 1 : 8;
}

/// The registers that 4 * lanes magnitudes of elements take, and these joined to best[0, 4 * lanes).
template <class A, class Source>
inline constexpr int registers_of_four = 4 * lanes<A> / static_cast<int>(magnitudes<Source, A>::size);
template <class A, class Source>
QTENSOR_INLINE void join_four(const std::array<magnitudes<Source, A>, registers_of_four<A, Source>>& most,
                              std::uint32_t* best) {
  constexpr index_t step = lanes<A>;
  const auto join = [&](index_t k, const words<A>& m) QTENSOR_INLINE_LAMBDA {
    simd::store(best + k * step, simd::max(simd::load<A>(best + k * step), m));
  };
  if constexpr (registers_of_four<A, Source> == 4) {
#pragma GCC unroll 4
    for (index_t k = 0; k < 4; ++k) join(k, most[static_cast<std::size_t>(k)]);
  } else {
    alignas(64) std::uint16_t lane[4 * step];
    simd::store(lane, most[0]);
    simd::store(lane + 2 * step, most[1]);
#pragma GCC unroll 4
    for (index_t k = 0; k < 4; ++k) join(k, magnitude_bits_at<A, Source>(lane + k * step));
  }
}

}  // namespace detail

/// best[i] = max(best[i], magnitude of element i) over rows at x + r * stride, r < rows, for i < n: a statistic along
/// columns. Start from zeros. `fetches`: how far rows further on are asked for.
///
/// Reads the rows, updates best[0, n). Cost: 2 operations per register of elements, and 2 for every eight rows, or for
/// each of long ones where the CPU likes to read them one by one (best_requests).
template <usable_arch A, float_source Source = from_f32>
void accumulate_amax_bits(const typename Source::type* x, index_t stride, index_t rows, index_t n, std::uint32_t* best,
                          fetch fetches = fetch::nothing) {
  using batch = detail::magnitudes<Source, A>;
  constexpr index_t step = lanes<A>, size = static_cast<index_t>(batch::size);
  constexpr int parts = detail::registers_of_four<A, Source>;
  const index_t at_once = detail::rows_read_together(n);
  for (index_t row = 0; row < rows; row += at_once, x += at_once * stride) {
    const index_t count = rows - row < at_once ? rows - row : at_once;
    index_t i = 0;
    for (; i + 4 * step <= n; i += 4 * step) {
      std::array<batch, parts> most;
#pragma GCC unroll 4
      for (int k = 0; k < parts; ++k) most[k] = detail::load_magnitudes<Source, A>(x + i + k * size);
      for (index_t r = 1; r < count; ++r)
#pragma GCC unroll 4
        for (int k = 0; k < parts; ++k)
          most[k] = simd::max(most[k], detail::load_magnitudes<Source, A>(x + r * stride + i + k * size));
      if (fetches != fetch::nothing)
        for (index_t r = at_once; r < 2 * at_once; ++r) fetch_lines<4 * step * sizeof(*x)>(x + r * stride + i, fetches);
      detail::join_four<A, Source>(most, best + i);
    }
    for (; i < n; i += step) {
      const index_t left = n - i < step ? n - i : step;
      words<A> most = simd::load_n<A>(best + i, left);
      for (index_t r = 0; r < count; ++r)
        most = simd::max(most, detail::magnitude_words(Source::template load_n<A>(x + r * stride + i, left)));
      simd::store_n(best + i, left, most);
    }
  }
}

/// The same of one row.
template <usable_arch A, float_source Source = from_f32>
void accumulate_amax_bits(const typename Source::type* x, index_t n, std::uint32_t* best) {
  accumulate_amax_bits<A, Source>(x, 0, 1, n, best);
}

/// best[b] = max(best[b], the largest of block b of `magnitudes`), for b < blocks of `length` >= 1 words each: from the
/// largest magnitudes of columns, those of blocks of them.
///
/// Reads magnitudes[0, blocks * length), updates best[0, blocks). Cost: 1 operation per batch, and 5 per block where
/// length is a multiple of `lanes`; else one per word.
template <usable_arch A>
void join_block_maxima(const std::uint32_t* magnitudes, index_t blocks, index_t length, std::uint32_t* best) {
  constexpr index_t step = lanes<A>;
  if (length % step != 0) {
    for (index_t b = 0; b < blocks; ++b, magnitudes += length)
      for (index_t i = 0; i < length; ++i) best[b] = std::max(best[b], magnitudes[i]);
    return;
  }
  for (index_t b = 0; b < blocks; b += step) {
    const index_t count = std::min(step, blocks - b);
    const auto block = [&](index_t k) QTENSOR_INLINE_LAMBDA {
      const std::uint32_t* words_of_block = magnitudes + (b + (k < count ? k : 0)) * length;
      words<A> most = simd::load<A>(words_of_block);
      for (index_t i = step; i < length; i += step) most = simd::max(most, simd::load<A>(words_of_block + i));
      return most;
    };
    const words<A> found = simd::reduce_max_each<A>(block);
    simd::store_n(best + b, count, simd::max(found, simd::load_n<A>(best + b, count)));
  }
}

/// low[i] = max(low[i], magnitude of element i where it is negative) and high[i] likewise where it is positive, over
/// rows at x + r * stride, r < rows, for i < n: range_bits along columns. Start from zeros. `fetches`: how far rows
/// further on are asked for.
///
/// Reads the rows, updates low and high [0, n). Cost: 2 operations per batch, and 5 for every eight rows, or for each
/// of long ones where the CPU likes to read them one by one (best_requests).
template <usable_arch A, float_source Source = from_f32>
void accumulate_range_bits(const typename Source::type* x, index_t stride, index_t rows, index_t n, std::uint32_t* low,
                           std::uint32_t* high, fetch fetches = fetch::nothing) {
  using extremes = detail::extremes<Source, A>;
  constexpr index_t step = lanes<A>, size = static_cast<index_t>(extremes::batch::size);
  constexpr int parts = detail::registers_of_four<A, Source>;
  const index_t at_once = detail::rows_read_together(n);
  for (index_t row = 0; row < rows; row += at_once, x += at_once * stride) {
    const index_t count = std::min(at_once, rows - row);
    index_t i = 0;
    for (; i + 4 * step <= n; i += 4 * step) {
      std::array<extremes, parts> found;
      for (index_t r = 0; r < count; ++r)
#pragma GCC unroll 4
        for (int k = 0; k < parts; ++k) found[k].include(x + r * stride + i + k * size);
      if (fetches != fetch::nothing)
        for (index_t r = at_once; r < 2 * at_once; ++r) fetch_lines<4 * step * sizeof(*x)>(x + r * stride + i, fetches);
      std::array<typename extremes::batch, parts> of_low, of_high;
#pragma GCC unroll 4
      for (int k = 0; k < parts; ++k) of_low[k] = found[k].low(), of_high[k] = found[k].high();
      detail::join_four<A, Source>(of_low, low + i);
      detail::join_four<A, Source>(of_high, high + i);
    }
    const auto join = [&](std::uint32_t* best, index_t left, const words<A>& m) QTENSOR_INLINE_LAMBDA {
      simd::store_n(best + i, left, simd::max(simd::load_n<A>(best + i, left), m));
    };
    for (; i < n; i += step) {
      const index_t left = std::min(step, n - i);
      detail::extremes<from_f32, A> found;
      for (index_t r = 0; r < count; ++r)
        found.include(simd::bits_as<std::uint32_t>(Source::template load_n<A>(x + r * stride + i, left)));
      join(low, left, found.low());
      join(high, left, found.high());
    }
  }
}

/// low[i] = min(low[i], element i) and high[i] = max(high[i], element i), all as in_order has them, over rows at
/// x + r * stride, r < rows, for i < n: extremes_in_order along columns.
///
/// Reads the rows, updates low and high [0, n). Cost: 5 operations per batch, and 4 for every eight rows.
template <usable_arch A, float_source Source = from_f32>
void accumulate_extremes(const typename Source::type* x, index_t stride, index_t rows, index_t n, std::uint32_t* low,
                         std::uint32_t* high) {
  constexpr index_t step = lanes<A>, at_once = 8;
  for (index_t row = 0; row < rows; row += at_once, x += at_once * stride) {
    const index_t count = std::min(at_once, rows - row);
    for (index_t i = 0; i < n; i += step) {
      const index_t left = std::min(step, n - i);
      words<A> least = simd::load_n<A>(low + i, left), most = simd::load_n<A>(high + i, left);
      for (index_t r = 0; r < count; ++r) {
        const auto* from = x + r * stride + i;
        const floats<A> v = left < step ? Source::template load_n<A>(from, left) : Source::template load<A>(from);
        const words<A> place = in_order(simd::bits_as<std::uint32_t>(v));
        least = simd::min(least, place), most = simd::max(most, place);
      }
      simd::store_n(low + i, left, least);
      simd::store_n(high + i, left, most);
    }
  }
}

/// Both at once, of rows at x + r * stride, r < rows, n elements each: amax_bits of the blocks of row r, of which the
/// last may be short, to of_blocks + r * divide_up(n, Length), and the largest magnitudes of the columns to
/// of_columns[0, n).
///
/// Reads the rows once where blocks fill registers. Cost: amax_blocks_of, and 2 operations per register of elements.
template <usable_arch A, index_t Length, float_source Source = from_f32>
void amax_both_axes(const typename Source::type* x, index_t stride, index_t rows, index_t n, std::uint32_t* of_blocks,
                    std::uint32_t* of_columns) {
  using batch = detail::magnitudes<Source, A>;
  constexpr index_t strip = lanes<A> * Length;
  const index_t blocks = divide_up(n, Length), whole = Length % batch::size == 0 ? n / Length * Length : 0;
  for (index_t first = 0; first < whole; first += strip) {
    const index_t width = whole - first < strip ? whole - first : strip;
    alignas(64) typename batch::value_type most[strip] = {};
    const auto include = [&](index_t i, const batch& m)
                             QTENSOR_INLINE_LAMBDA { simd::store(most + i, simd::max(simd::load<A>(most + i), m)); };
    for (index_t r = 0; r < rows; ++r)
      detail::store_maxima<A, Source, detail::left_blocks::together>(x + r * stride + first, width / Length, Length,
                                                                     of_blocks + r * blocks + first / Length, include);
    for (index_t i = 0; i < width; i += lanes<A>)
      simd::store(of_columns + first + i, detail::magnitude_bits_at<A, Source>(most + i));
  }
  const index_t left = n - whole, left_blocks = left / Length;
  if (left == 0) return;
  std::fill(of_columns + whole, of_columns + n, 0u);
  accumulate_amax_bits<A, Source>(x + whole, stride, rows, left, of_columns + whole);
  for (index_t r = 0; r < rows; ++r) {
    const auto* row = x + r * stride + whole;
    std::uint32_t* best = of_blocks + r * blocks + whole / Length;
    amax_blocks_of<A, Length, Source>(row, left_blocks, best);
    if (left % Length != 0) best[left_blocks] = amax_bits<A, Source>(row + left_blocks * Length, left % Length);
  }
}

}  // namespace qtensor::inline QTENSOR_ABI::simd
