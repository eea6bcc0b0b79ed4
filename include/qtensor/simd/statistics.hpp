// Largest magnitudes and ranges of runs and blocks: the statistics every dynamic scale starts from.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstdint>
#include <qtensor/core/support.hpp>
#include <qtensor/simd/arch.hpp>
#include <qtensor/simd/memory.hpp>
#include <qtensor/simd/ops.hpp>
#include <qtensor/simd/ops_columns.hpp>

// Magnitudes are f32 bit patterns without the sign, compared as integers: NaN > infinity > finite. Results are exact
// and do not depend on order or on Arch; `result > infinity_bits` means "saw a NaN". Source is from_f32, from_bf16 or
// from_f16.
namespace qtensor::inline QTENSOR_ABI::simd {

namespace detail {

template <class A>
QTENSOR_INLINE words<A> magnitude_words(const floats<A>& x) {
  return simd::bits_as<std::uint32_t>(x) & words<A>(magnitude_bits);
}

// Magnitudes of elements as unsigned integers of their size, whose order is that of the numbers, f16's too: twice the
// lanes for 16 bits. The largest ones become bits of floats in the end.
template <class Source, class A>
using magnitudes = std::conditional_t<sizeof(typename Source::type) == 2, halves<A>, words<A>>;

template <class Source, class A>
QTENSOR_INLINE magnitudes<Source, A> load_magnitudes(const typename Source::type* p) {
  if constexpr (sizeof(*p) == 2)
    return simd::load<A>(p) & halves<A>(std::uint16_t{0x7fff});
  else
    return magnitude_words(Source::template load<A>(p));
}
template <class Source, class A>
QTENSOR_INLINE magnitudes<Source, A> load_magnitudes_n(const typename Source::type* p, index_t n) {
  if constexpr (sizeof(*p) == 2)
    return simd::load_n<A>(p, n) & halves<A>(std::uint16_t{0x7fff});
  else
    return magnitude_words(Source::template load_n<A>(p, n));
}
/// Bits of floats from magnitudes, one a word.
template <class Source, class A>
QTENSOR_INLINE words<A> magnitude_bits_of(const words<A>& m) {
  if constexpr (sizeof(typename Source::type) == 2)
    return simd::bits_as<std::uint32_t>(Source::template widen<A>(m));
  else
    return m;
}
template <class Source, class A>
QTENSOR_INLINE std::uint32_t largest_of(const magnitudes<Source, A>& m) {
  if constexpr (sizeof(typename Source::type) == 2) {
    const words<A> both = simd::bits_as<std::uint32_t>(m);
    return simd::reduce_max(magnitude_bits_of<Source, A>(simd::max(both & words<A>(0xffffu), both >> 16)));
  } else {
    return simd::reduce_max(m);
  }
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

/// Calls take(x + i) for all whole steps of x[0, n), while numbers further on are asked for; returns the end of them.
template <index_t Step, class T, class Take>
QTENSOR_INLINE index_t for_each_step(const T* x, index_t n, fetch fetches, Take take) {
  index_t i = 0;
  if (fetches == fetch::nothing) {
    for (; i + Step <= n; i += Step) take(x + i);
  } else {
    const traffic t{fetches};
    for (; i + Step <= n; i += Step) {
      fetch_ahead<Step * index_t{sizeof(T)}>(x + i, t);
      take(x + i);
    }
  }
  return i;
}

}  // namespace detail

/// Bit pattern of max |x[i]| over i < n; 0 when n is 0. `fetches`: how far numbers further on are asked for.
///
/// Reads x[0, n) and nothing else. Cost: 2 operations per register of elements, 4 independent chains.
template <usable_arch A, float_source Source = from_f32>
std::uint32_t amax_bits(const typename Source::type* x, index_t n, fetch fetches = fetch::nothing) {
  using batch = detail::magnitudes<Source, A>;
  constexpr index_t step = static_cast<index_t>(batch::size), chains = 4;
  const batch none(0);
  batch best[chains] = {none, none, none, none};
  index_t i = detail::for_each_step<chains * step>(x, n, fetches, [&](const auto* from) QTENSOR_INLINE_LAMBDA {
#pragma GCC unroll 4
    for (index_t c = 0; c < chains; ++c)
      best[c] = simd::max(best[c], detail::load_magnitudes<Source, A>(from + c * step));
  });
  batch all = simd::max(simd::max(best[0], best[1]), simd::max(best[2], best[3]));
  for (; i + step <= n; i += step) all = simd::max(all, detail::load_magnitudes<Source, A>(x + i));
  if (i < n) all = simd::max(all, detail::load_magnitudes_n<Source, A>(x + i, n - i));
  return detail::largest_of<Source, A>(all);
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

/// The ranges of blocks as min_max finds them: those of block b, x[b * length, (b + 1) * length), to low[b] and high[b]
/// for b < blocks. length >= 1.
///
/// Reads x[0, blocks * length), writes low and high [0, blocks). Cost: 7 operations per batch and load_columns for four
/// where blocks are short and `lanes` of them are left; else min_max for each.
template <usable_arch A>
void min_max_blocks(const float* x, index_t blocks, index_t length, float* low, float* high) {
  constexpr index_t step = lanes<A>, longest = 8 * step;
  const index_t wide = std::min(length, index_t{4}), beyond = 4 - wide;  // columns of a step, and what it reads behind
  index_t b = 0;
  for (; length <= longest && (b + step) * length + beyond <= blocks * length; b += step) {
    detail::lane_ranges<A> of_blocks;
    for (index_t i = 0; i < length; i += wide) {  // the last step begins early: columns may count twice
      const auto columns = simd::load_columns<A>(x + b * length + std::min(i, length - wide), length);
      for (index_t c = 0; c < wide; ++c) of_blocks.include_finite(columns[static_cast<std::size_t>(c)]);
    }
    simd::store(low + b, simd::add(of_blocks.low, floats<A>(0.f)));
    simd::store(high + b, simd::add(of_blocks.high, floats<A>(0.f)));
  }
  for (; b < blocks; ++b) {
    const range r = min_max<A>(x + b * length, length);
    low[b] = r.min, high[b] = r.max;
  }
}

namespace detail {

/// Fewer than `lanes` blocks: a reduction for each, or the way of whole batches, which short blocks should take.
enum class left_blocks { each, together };

/// amax_blocks. Blocks that registers fill are also shown to also(first element, magnitudes), a register at a time.
template <class A, class Source, left_blocks Left, class Also>
QTENSOR_INLINE void store_maxima(const typename Source::type* x, index_t blocks, index_t length, std::uint32_t* best,
                                 Also also) {
  constexpr index_t step = lanes<A>, size = static_cast<index_t>(magnitudes<Source, A>::size);
  index_t b = 0;
  const auto block = [&](index_t k) QTENSOR_INLINE_LAMBDA {
    const auto* from = x + (b + k) * length;
    const auto load = [&](index_t i) QTENSOR_INLINE_LAMBDA {
      const auto m = load_magnitudes<Source, A>(from + i);
      also((b + k) * length + i, m);
      return m;
    };
    auto m = load(0);
    if constexpr (Left == left_blocks::together) {
#pragma GCC unroll 8
      for (index_t i = size; i < length; i += size) m = simd::max(m, load(i));
    } else {
#pragma GCC unroll 2
      for (index_t i = size; i < length; i += size) m = simd::max(m, load(i));
    }
    return m;
  };
  // The maxima of `count` blocks from b on, then anything.
  const auto maxima = [&](index_t count) QTENSOR_INLINE_LAMBDA {
    const auto row = [&](index_t k) QTENSOR_INLINE_LAMBDA { return block(k < count ? k : 0); };
    if constexpr (size == step)
      return simd::reduce_max_each<A>(row);
    else
      return magnitude_bits_of<Source, A>(simd::reduce_max_each_half<A>(row));
  };
  if (length % size == 0) {
    for (; b + step <= blocks; b += step) simd::store(best + b, maxima(step));
    if (Left == left_blocks::together && b + 1 < blocks) {
      simd::store_n(best + b, blocks - b, maxima(blocks - b));
      return;
    }
  } else if constexpr (size == 2 * step) {
    const auto two_blocks = [&](index_t k)
                                QTENSOR_INLINE_LAMBDA { return load_magnitudes<Source, A>(x + (b + 2 * k) * length); };
    if (length == step)
      for (; b + step <= blocks; b += step)
        simd::store(best + b, magnitude_bits_of<Source, A>(simd::reduce_max_each_half<A, 2>(two_blocks)));
  }
  for (; b < blocks; ++b)
    best[b] = Left == left_blocks::together && length % size == 0 ? largest_of<Source, A>(block(0))
                                                                  : amax_bits<A, Source>(x + b * length, length);
}

/// amax_blocks, with elements further on asked for.
template <class A, class Source, left_blocks Left>
QTENSOR_INLINE void amax_blocks_ahead(const typename Source::type* x, index_t blocks, index_t length,
                                      std::uint32_t* best, fetch fetches) {
  constexpr index_t bytes = static_cast<index_t>(sizeof(magnitudes<Source, A>));
  if (fetches == fetch::nothing)
    store_maxima<A, Source, Left>(x, blocks, length, best, [](index_t, const auto&) {});
  else
    store_maxima<A, Source, Left>(x, blocks, length, best, [&](index_t i, const auto&) QTENSOR_INLINE_LAMBDA {
      fetch_ahead<bytes>(x + i, traffic{fetches});
    });
}

/// The bits of floats that `lanes` magnitudes are, in order.
template <class A, class Source>
QTENSOR_INLINE words<A> magnitude_bits_at(const typename magnitudes<Source, A>::value_type* m) {
  if constexpr (sizeof(*m) == 2)
    return simd::bits_as<std::uint32_t>(Source::template load<A>(m));
  else
    return simd::load<A>(m);
}

}  // namespace detail

/// best[b] = amax_bits of block b, x[b * length, (b + 1) * length), for b < blocks. length >= 1.
///
/// Reads x[0, blocks * length), writes best[0, blocks). Cost: 2 operations per register of elements, and 3 per block
/// (AVX-512) where blocks fill registers (16 bits: or half of one) and `lanes` blocks are left; 2 per register where
/// they are single elements; else a reduction for each block. `fetches`: how far elements further on are asked for,
/// where blocks fill registers.
template <usable_arch A, float_source Source = from_f32>
void amax_blocks(const typename Source::type* x, index_t blocks, index_t length, std::uint32_t* best,
                 fetch fetches = fetch::nothing) {
  if (length == 1)  // magnitudes themselves
    for (index_t b = 0; b < blocks; b += lanes<A>) {
      const index_t n = std::min(lanes<A>, blocks - b);
      simd::store_n(best + b, n, detail::magnitude_words(Source::template load_n<A>(x + b, n)));
    }
  else
    detail::amax_blocks_ahead<A, Source, detail::left_blocks::each>(x, blocks, length, best, fetches);
}

/// The same with a length known at compile time: the loop over a block unrolls, and fewer than `lanes` blocks take the
/// way of whole batches too.
template <usable_arch A, index_t Length, float_source Source = from_f32>
void amax_blocks_of(const typename Source::type* x, index_t blocks, std::uint32_t* best,
                    fetch fetches = fetch::nothing) {
  static_assert(Length >= 1);
  detail::amax_blocks_ahead<A, Source, detail::left_blocks::together>(x, blocks, Length, best, fetches);
}

/// The bits of a number as an integer in the order of the numbers: -NaN, -infinity, ..., -0, +0, ..., infinity, NaN.
constexpr std::uint32_t in_order(std::uint32_t bits) { return bits ^ ((bits >> 31) != 0 ? ~0u : sign_bit); }
/// And back.
constexpr std::uint32_t bits_in_order(std::uint32_t place) { return place ^ ((place >> 31) != 0 ? sign_bit : ~0u); }
/// The same of batches. Cost: 3 each.
template <class A>
QTENSOR_INLINE words<A> in_order(const words<A>& bits) {
  return bits ^ (simd::bits_as<std::uint32_t>(simd::bits_as<std::int32_t>(bits) >> 31) | words<A>(sign_bit));
}
template <class A>
QTENSOR_INLINE words<A> bits_in_order(const words<A>& place) {
  return place ^ (simd::bits_as<std::uint32_t>(simd::bits_as<std::int32_t>(~place) >> 31) | words<A>(sign_bit));
}

/// The least and the largest number of a run, as in_order has them; NaNs lie beyond the infinities. Of nothing: the
/// largest one first.
struct ordered_extremes {
  std::uint32_t low = ~0u, high = 0u;
  constexpr void include(std::uint32_t least, std::uint32_t most) {
    low = std::min(low, least), high = std::max(high, most);
  }
};

/// Those of x[0, n).
///
/// Reads x[0, n), the last ones twice. Cost: 5 operations per batch, 2 independent chains.
template <usable_arch A, float_source Source = from_f32>
ordered_extremes extremes_in_order(const typename Source::type* x, index_t n) {
  constexpr index_t step = lanes<A>;
  ordered_extremes found;
  if (n < step) {
    for (index_t i = 0; i < n; ++i) {
      const std::uint32_t place = in_order(bits_of(simd::number<Source>(x[i])));
      found.include(place, place);
    }
    return found;
  }
  words<A> low[2] = {words<A>(~0u), words<A>(~0u)}, high[2] = {words<A>(0u), words<A>(0u)};
  const auto include = [&](index_t c, const auto* from) QTENSOR_INLINE_LAMBDA {
    const words<A> place = in_order(simd::bits_as<std::uint32_t>(Source::template load<A>(from)));
    low[c] = simd::min(low[c], place), high[c] = simd::max(high[c], place);
  };
  index_t i = 0;
  for (; i + 2 * step <= n; i += 2 * step) include(0, x + i), include(1, x + i + step);
  if (i + step <= n) include(0, x + i);
  include(1, x + n - step);
  found.include(~simd::reduce_max(~simd::min(low[0], low[1])), simd::reduce_max(simd::max(high[0], high[1])));
  return found;
}

namespace detail {

/// The largest word as the magnitude of the negative number that it is, 0 where it is none: the sign is bit Sign.
template <int Sign = 31, class A>
QTENSOR_INLINE words<A> magnitude_of_negative(const words<A>& largest) {
  const ints<A> magnitude = simd::bits_as<std::int32_t>(largest - words<A>(1u << Sign));
  return simd::bits_as<std::uint32_t>(simd::max(magnitude, ints<A>(0)));
}

/// The extremes with 0 of what lanes have seen, by their magnitudes, all of elements as they are stored. Positive
/// numbers are the largest integers; negative ones the largest words, if there are any.
template <class Source, class A>
class extremes {
 public:
  using batch = magnitudes<Source, A>;
  using word = typename batch::value_type;
  using number = std::make_signed_t<word>;
  using numbers = xsimd::batch<number, A>;

  QTENSOR_INLINE void include(const batch& v) {
    positive_ = simd::max(positive_, simd::bits_as<number>(v));
    negative_ = simd::max(negative_, v);
  }
  QTENSOR_INLINE void include(const typename Source::type* p) {
    if constexpr (sizeof(*p) == 2)
      include(simd::load<A>(p));
    else  // rounded: in a register; g++ would read memory again for each use
      include(simd::bits_as<std::uint32_t>(simd::rounded(Source::template load<A>(p))));
  }
  /// The first n elements of a batch; others are 0.
  QTENSOR_INLINE void include_n(const typename Source::type* p, index_t n) {
    if constexpr (sizeof(*p) == 2)
      include(simd::load_n<A>(p, n));
    else
      include(simd::bits_as<std::uint32_t>(simd::rounded(Source::template load_n<A>(p, n))));
  }
  QTENSOR_INLINE void join(const extremes& other) {
    positive_ = simd::max(positive_, other.positive_), negative_ = simd::max(negative_, other.negative_);
  }
  QTENSOR_INLINE batch low() const {
    constexpr word sign = word{1} << (8 * sizeof(word) - 1);
    return simd::bits_as<word>(simd::max(simd::bits_as<number>(negative_ - batch(sign)), numbers(number{0})));
  }
  QTENSOR_INLINE batch high() const { return simd::bits_as<word>(positive_); }

 private:
  numbers positive_ = numbers(number{0});
  batch negative_ = batch(word{0});
};

}  // namespace detail

/// Extremes with 0 of a run as the bits of their magnitudes: low of min(0, run), high of max(0, run). One that is at
/// least infinity_bits means "saw a NaN or an infinity".
struct range_magnitudes {
  std::uint32_t low, high;
};

/// Those of x[0, n). `fetches`: how far numbers further on are asked for.
///
/// Reads x[0, n). Cost: 2 operations per register of elements, 2 independent chains each.
template <usable_arch A, float_source Source = from_f32>
range_magnitudes range_bits(const typename Source::type* x, index_t n, fetch fetches = fetch::nothing) {
  using extremes = detail::extremes<Source, A>;
  constexpr index_t step = static_cast<index_t>(extremes::batch::size);
  extremes found, beside;
  index_t i = detail::for_each_step<2 * step>(x, n, fetches, [&](const auto* from) QTENSOR_INLINE_LAMBDA {
    found.include(from);
    beside.include(from + step);
  });
  for (; i < n; i += step) found.include_n(x + i, std::min(step, n - i));
  found.join(beside);
  return {detail::largest_of<Source, A>(found.low()), detail::largest_of<Source, A>(found.high())};
}

namespace detail {

/// The same of blocks from `b` on, of `lanes` at a time, which fill registers of floats, or of 16-bit numbers as they
/// are; also(numbers) before each of those is read. Returns the first block that is left.
template <class A, class Source, bool ByHalves, class Also>
QTENSOR_INLINE index_t store_ranges_together(const typename Source::type* x, index_t b, index_t blocks, index_t length,
                                             std::uint32_t* low, std::uint32_t* high, Also also) {
  constexpr index_t size = (ByHalves ? 2 : 1) * lanes<A>;
  for (; b + lanes<A> <= blocks; b += lanes<A>) {
    const auto largest = [&]<class T>(T none) QTENSOR_INLINE_LAMBDA {
      const auto of_block = [&](index_t k) QTENSOR_INLINE_LAMBDA {
        const auto* block = x + (b + k) * length;
        const auto load = [&](index_t i) QTENSOR_INLINE_LAMBDA {
          if constexpr (std::is_signed_v<T>) also(block + i);  // of two readings the first
          if constexpr (ByHalves)
            return simd::bits_as<T>(simd::load<A>(block + i));
          else
            return simd::bits_as<T>(Source::template load<A>(block + i));
        };
        xsimd::batch<T, A> m = load(0);
        if constexpr (std::is_signed_v<T>) m = simd::max(m, xsimd::batch<T, A>(none));
#pragma GCC unroll 8
        for (index_t i = size; i < length; i += size) m = simd::max(m, load(i));
        return simd::bits_as<std::make_unsigned_t<T>>(m);
      };
      if constexpr (ByHalves)
        return simd::reduce_max_each_half<A>(of_block);
      else
        return simd::reduce_max_each<A>(of_block);
    };
    if constexpr (ByHalves) {
      simd::store(high + b, magnitude_bits_of<Source, A>(largest(std::int16_t{0})));
      simd::store(low + b, magnitude_bits_of<Source, A>(magnitude_of_negative<15>(largest(std::uint16_t{0}))));
    } else {
      simd::store(high + b, largest(std::int32_t{0}));
      simd::store(low + b, magnitude_of_negative(largest(std::uint32_t{0})));
    }
  }
  return b;
}

/// range_blocks; also(numbers) before each register of short blocks is read.
template <class A, class Source, class Also>
QTENSOR_INLINE void store_ranges(const typename Source::type* x, index_t blocks, index_t length, std::uint32_t* low,
                                 std::uint32_t* high, Also also) {
  constexpr index_t step = lanes<A>, short_block = 8 * step;
  index_t b = 0;
  if constexpr (sizeof(*x) == 2)
    if (length % (2 * step) == 0 && length <= 2 * short_block)
      b = store_ranges_together<A, Source, true>(x, b, blocks, length, low, high, also);
  if (length % step == 0 && length <= short_block)
    b = store_ranges_together<A, Source, false>(x, b, blocks, length, low, high, also);
  for (; b < blocks; ++b) {
    const range_magnitudes r = range_bits<A, Source>(x + b * length, length);
    low[b] = r.low, high[b] = r.high;
  }
}

/// store_ranges, with elements further on asked for.
template <class A, class Source>
QTENSOR_INLINE void store_ranges_ahead(const typename Source::type* x, index_t blocks, index_t length,
                                       std::uint32_t* low, std::uint32_t* high, fetch fetches) {
  constexpr index_t bytes = lanes<A> * index_t{sizeof(*x)};
  if (fetches == fetch::nothing)
    store_ranges<A, Source>(x, blocks, length, low, high, [](const auto*) {});
  else
    store_ranges<A, Source>(x, blocks, length, low, high, [&](const auto* numbers) QTENSOR_INLINE_LAMBDA {
      fetch_ahead<bytes>(numbers, traffic{fetches});
    });
}

}  // namespace detail

/// The same of blocks, to low[b] and high[b] for b < blocks. length >= 1.
///
/// Reads x[0, blocks * length), writes low and high [0, blocks). Cost: 2 operations per batch (of 16-bit numbers as
/// they are, where blocks fill their registers), and 9 per block (AVX-512) where length is a multiple of `lanes` and
/// `lanes` blocks are left; else a reduction for each block. `fetches`: how far elements further on are asked for,
/// where blocks fill registers.
template <usable_arch A, float_source Source = from_f32>
void range_blocks(const typename Source::type* x, index_t blocks, index_t length, std::uint32_t* low,
                  std::uint32_t* high, fetch fetches = fetch::nothing) {
  detail::store_ranges_ahead<A, Source>(x, blocks, length, low, high, fetches);
}

/// The same with a length known at compile time: the loop over a block unrolls.
template <usable_arch A, index_t Length, float_source Source = from_f32>
void range_blocks_of(const typename Source::type* x, index_t blocks, std::uint32_t* low, std::uint32_t* high,
                     fetch fetches = fetch::nothing) {
  static_assert(Length >= 1);
  detail::store_ranges_ahead<A, Source>(x, blocks, Length, low, high, fetches);
}

/// Extremes with 0 of n blocks from the magnitudes that range_blocks gives: the largest magnitude of each, as bits, to
/// amax[0, n), the smallest number to low, the largest one to high. Returns the largest magnitude of all, 0 without
/// blocks.
///
/// Reads and writes n entries each. Cost: 4 operations per `lanes` blocks.
template <usable_arch A>
std::uint32_t ranges_of_magnitudes(const std::uint32_t* of_low, const std::uint32_t* of_high, index_t n,
                                   std::uint32_t* amax, float* low, float* high) {
  words<A> largest(0u);
  for (index_t i = 0; i < n; i += lanes<A>) {
    const index_t count = std::min(lanes<A>, n - i);
    const words<A> below = simd::load_n<A>(of_low + i, count), above = simd::load_n<A>(of_high + i, count);
    const words<A> most = simd::max(below, above);
    largest = simd::max(largest, most);
    simd::store_n(amax + i, count, most);
    simd::store_n(low + i, count, simd::sub(floats<A>(0.f), simd::bits_as<float>(below)));  // +0 where none is below 0
    simd::store_n(high + i, count, simd::bits_as<float>(above));
  }
  return simd::reduce_max(largest);
}

/// Whether one of x[0, n) is not 0 and smaller than `least`, a normal number; NaN is not.
///
/// Reads x[0, n). Cost: 4 operations per batch.
template <usable_arch A>
bool has_magnitudes_below(const float* x, index_t n, float least) {
  constexpr index_t step = lanes<A>;
  const words<A> magnitude(magnitude_bits), one(1u);
  words<A> smallest = magnitude;  // of magnitudes less one: then 0 is the largest
  for (index_t i = 0; i < n; i += step) {
    const floats<A> v = simd::load_n<A>(x + i, std::min(step, n - i));
    smallest = simd::min(smallest, ((simd::bits_as<std::uint32_t>(v) & magnitude) - one) & magnitude);
  }
  return simd::any(simd::below(smallest, words<A>(bits_of(least) - 1)));
}

}  // namespace qtensor::inline QTENSOR_ABI::simd
