// Largest magnitudes and ranges of runs, blocks and columns: the statistics every dynamic scale starts from.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <qtensor/core/support.hpp>
#include <qtensor/simd/arch.hpp>
#include <qtensor/simd/ops.hpp>

// Magnitudes are f32 bit patterns without the sign, compared as integers: NaN > infinity > finite. Results are exact
// and do not depend on order or on Arch; `result > infinity_bits` means "saw a NaN". Source is from_f32, from_bf16 or
// from_f16.
namespace qtensor::inline QTENSOR_ABI::simd {

namespace detail {

template <class A>
QTENSOR_INLINE words<A> magnitude_words(const floats<A>& x) {
  return simd::bits_as<std::uint32_t>(x) & words<A>(magnitude_bits);
}

// The range of the elements of each lane, and the largest magnitude.
template <class A>
struct lane_ranges {
  floats<A> low = floats<A>(infinity), high = floats<A>(-infinity);
  words<A> largest = words<A>(0u);

  /// All elements count: right when none is infinite or NaN, which `largest` tells.
  QTENSOR_INLINE void include(const floats<A>& x) {
    const floats<A> v = simd::rounded(x);  // in a register: g++ would read memory again for each use
    low = simd::min(low, v);
    high = simd::max(high, v);
    largest = simd::max(largest, magnitude_words(v));
  }
  /// Only finite elements count; leaves `largest` alone.
  QTENSOR_INLINE void include_finite(const floats<A>& x) {
    const floats<A> v = simd::rounded(x);
    const auto finite = simd::mask_as<float>(simd::below(magnitude_words(v), words<A>(infinity_bits)));
    low = simd::min(low, simd::select(finite, v, floats<A>(infinity)));
    high = simd::max(high, simd::select(finite, v, floats<A>(-infinity)));
  }
};

// Calls include(even or odd, batch) for all of x[0, n); lanes beyond the end repeat an element (zeros would count).
template <class A, class Source, class Include>
QTENSOR_INLINE void for_each_batch(const typename Source::type* x, index_t n, lane_ranges<A>& even, lane_ranges<A>& odd,
                                   Include include) {
  constexpr index_t step = lanes<A>;
  index_t i = 0;
  for (; i + 2 * step <= n; i += 2 * step) {
    include(even, Source::template load<A>(x + i));
    include(odd, Source::template load<A>(x + i + step));
  }
  if (i + step <= n) {
    include(even, Source::template load<A>(x + i));
    i += step;
  }
  if (i < n) {
    alignas(64) float lane[static_cast<std::size_t>(step)];
    simd::store(lane, Source::template load_n<A>(x + i, n - i));
    include(odd, simd::load_n<A>(lane, n - i, lane[0]));
  }
}

}  // namespace detail

/// Bit pattern of max |x[i]| over i < n; 0 when n is 0.
///
/// Reads x[0, n) and nothing else. Cost: 2 operations per batch of floats, 4 independent chains.
template <usable_arch A, float_source Source = from_f32>
std::uint32_t amax_bits(const typename Source::type* x, index_t n) {
  constexpr index_t step = lanes<A>, chains = 4;
  words<A> best[chains] = {words<A>(0u), words<A>(0u), words<A>(0u), words<A>(0u)};
  index_t i = 0;
  for (; i + chains * step <= n; i += chains * step) {
#pragma GCC unroll 4
    for (index_t c = 0; c < chains; ++c)
      best[c] = simd::max(best[c], detail::magnitude_words(Source::template load<A>(x + i + c * step)));
  }
  words<A> all = simd::max(simd::max(best[0], best[1]), simd::max(best[2], best[3]));
  for (; i + step <= n; i += step) all = simd::max(all, detail::magnitude_words(Source::template load<A>(x + i)));
  if (i < n) all = simd::max(all, detail::magnitude_words(Source::template load_n<A>(x + i, n - i)));
  return simd::reduce_max(all);
}

/// What min_max found. A zero is always +0. Without finite elements (n = 0 too) min = +inf and max = -inf.
struct range {
  float min;        ///< smallest finite element
  float max;        ///< largest finite element
  bool all_finite;  ///< no infinity, no NaN
};

/// The range of the finite elements of x[0, n); infinities and NaN are left out and reported.
///
/// Reads x[0, n), a second time when something there is not finite. Cost: 4 operations per batch of floats, else 10.
template <usable_arch A, float_source Source = from_f32>
range min_max(const typename Source::type* x, index_t n) {
  detail::lane_ranges<A> even, odd;
  detail::for_each_batch<A, Source>(x, n, even, odd,
                                    [](auto& r, const floats<A>& v) QTENSOR_INLINE_LAMBDA { r.include(v); });
  const bool all_finite = simd::reduce_max(simd::max(even.largest, odd.largest)) < infinity_bits;
  if (!all_finite) {
    even = odd = detail::lane_ranges<A>();
    detail::for_each_batch<A, Source>(x, n, even, odd,
                                      [](auto& r, const floats<A>& v) QTENSOR_INLINE_LAMBDA { r.include_finite(v); });
  }
  float min = infinity, max = -infinity;
  alignas(64) float lane[static_cast<std::size_t>(lanes<A>)];
  simd::store(lane, simd::min(even.low, odd.low));
  for (float v : lane) min = v < min ? v : min;
  simd::store(lane, simd::max(even.high, odd.high));
  for (float v : lane) max = v > max ? v : max;
  return {min + 0.0f, max + 0.0f, all_finite};
}

/// best[b] = amax_bits of block b, x[b * length, (b + 1) * length), for b < blocks. length >= 1.
///
/// Reads x[0, blocks * length), writes best[0, blocks). Cost: 2 operations per batch, and 3 per block (AVX-512) where
/// length is a multiple of `lanes` and `lanes` blocks are left; else a reduction for each block.
template <usable_arch A, float_source Source = from_f32>
void amax_blocks(const typename Source::type* x, index_t blocks, index_t length, std::uint32_t* best) {
  constexpr index_t step = lanes<A>;
  index_t b = 0;
  if (length % step == 0) {
    for (; b + step <= blocks; b += step) {
      const auto* first = x + b * length;
      const auto row = [&](index_t k) QTENSOR_INLINE_LAMBDA {
        const auto* block = first + k * length;
        words<A> m = detail::magnitude_words(Source::template load<A>(block));
        for (index_t i = step; i < length; i += step)
          m = simd::max(m, detail::magnitude_words(Source::template load<A>(block + i)));
        return m;
      };
      simd::store(best + b, simd::reduce_max_each<A>(row));
    }
  }
  for (; b < blocks; ++b) best[b] = amax_bits<A, Source>(x + b * length, length);
}

/// The same with a length known at compile time: the loop over a block unrolls.
template <usable_arch A, index_t Length, float_source Source = from_f32>
void amax_blocks_of(const typename Source::type* x, index_t blocks, std::uint32_t* best) {
  constexpr index_t step = lanes<A>;
  static_assert(Length >= 1);
  index_t b = 0;
  if constexpr (Length % step == 0) {
    for (; b + step <= blocks; b += step) {
      const auto* first = x + b * Length;
      const auto row = [&](index_t k) QTENSOR_INLINE_LAMBDA {
        const auto* block = first + k * Length;
        words<A> m = detail::magnitude_words(Source::template load<A>(block));
#pragma GCC unroll 8
        for (index_t i = step; i < Length; i += step)
          m = simd::max(m, detail::magnitude_words(Source::template load<A>(block + i)));
        return m;
      };
      simd::store(best + b, simd::reduce_max_each<A>(row));
    }
  }
  for (; b < blocks; ++b) best[b] = amax_bits<A, Source>(x + b * Length, Length);
}

/// Extremes with 0 of blocks: low[b] = min(0, block) as the bits of its magnitude, high[b] = max(0, block) as bits, for
/// b < blocks. `max(low[b], high[b]) >= infinity_bits` means "saw a NaN or an infinity". length >= 1.
///
/// Reads x[0, blocks * length), writes low and high [0, blocks). Cost: 2 operations per batch, and 9 per block
/// (AVX-512) where length is a multiple of `lanes` and `lanes` blocks are left; else a reduction for each block.
template <usable_arch A>
void range_blocks(const float* x, index_t blocks, index_t length, std::uint32_t* low, std::uint32_t* high) {
  constexpr index_t step = lanes<A>;
  // Positive numbers are the largest integers; negative ones the largest words, if there are any.
  const auto included = []<class T>(const xsimd::batch<T, A>& m, const floats<A>& v)
                            QTENSOR_INLINE_LAMBDA { return simd::max(m, simd::bits_as<T>(v)); };
  const auto magnitude = [](const words<A>& negative) QTENSOR_INLINE_LAMBDA {
    const ints<A> flipped = simd::bits_as<std::int32_t>(negative ^ words<A>(sign_bit));
    return simd::bits_as<std::uint32_t>(simd::max(flipped, ints<A>(0)));
  };
  index_t b = 0;
  if (length % step == 0) {
    for (; b + step <= blocks; b += step) {
      const auto largest = [&]<class T>(T none) QTENSOR_INLINE_LAMBDA {
        return simd::reduce_max_each<A>([&](index_t k) QTENSOR_INLINE_LAMBDA {
          const float* block = x + (b + k) * length;
          xsimd::batch<T, A> m(none);
          for (index_t i = 0; i < length; i += step) m = included(m, simd::load<A>(block + i));
          return simd::bits_as<std::uint32_t>(m);
        });
      };
      simd::store(high + b, largest(std::int32_t{0}));
      simd::store(low + b, magnitude(largest(std::uint32_t{0})));
    }
  }
  for (; b < blocks; ++b) {
    ints<A> positive(0);
    words<A> negative(0u);
    for (index_t i = 0; i < length; i += step) {  // lanes beyond the end are 0
      const floats<A> v = simd::load_n<A>(x + b * length + i, length - i < step ? length - i : step);
      positive = included(positive, v);
      negative = included(negative, v);
    }
    high[b] = simd::reduce_max(simd::bits_as<std::uint32_t>(positive));
    low[b] = simd::reduce_max(magnitude(negative));
  }
}

/// best[i] = max(best[i], magnitude of x[i]) for i < n: one row of a statistic along columns. Start from zeros.
///
/// Reads x[0, n), updates best[0, n). Cost: 4 operations per batch.
template <usable_arch A, float_source Source = from_f32>
void accumulate_amax_bits(const typename Source::type* x, index_t n, std::uint32_t* best) {
  constexpr index_t step = lanes<A>;
  index_t i = 0;
  for (; i + step <= n; i += step) {
    const words<A> m = detail::magnitude_words(Source::template load<A>(x + i));
    simd::store(best + i, simd::max(load<A>(best + i), m));
  }
  if (i < n) {
    const words<A> m = detail::magnitude_words(Source::template load_n<A>(x + i, n - i));
    simd::store_n(best + i, n - i, simd::max(simd::load_n<A>(best + i, n - i), m));
  }
}

/// Two rows at once, which halves the traffic of best: x and x + stride. Cost: 6 operations per 2 batches.
template <usable_arch A, float_source Source = from_f32>
void accumulate_amax_bits_2(const typename Source::type* x, index_t stride, index_t n, std::uint32_t* best) {
  constexpr index_t step = lanes<A>;
  const auto* y = x + stride;
  index_t i = 0;
  for (; i + step <= n; i += step) {
    const words<A> m = simd::max(detail::magnitude_words(Source::template load<A>(x + i)),
                                 detail::magnitude_words(Source::template load<A>(y + i)));
    simd::store(best + i, simd::max(load<A>(best + i), m));
  }
  if (i < n) {
    const words<A> m = simd::max(detail::magnitude_words(Source::template load_n<A>(x + i, n - i)),
                                 detail::magnitude_words(Source::template load_n<A>(y + i, n - i)));
    simd::store_n(best + i, n - i, simd::max(simd::load_n<A>(best + i, n - i), m));
  }
}

}  // namespace qtensor::inline QTENSOR_ABI::simd
