// Statistics and scales of the short groups of interleaved blocks, side by side, for rules with a sign or an offset.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <bit>
#include <qtensor/simd/memory.hpp>
#include <qtensor/simd/scales.hpp>
#include <qtensor/simd/statistics.hpp>

// Groups have a size known at compile time, a multiple of `lanes`; `lanes` of them are always done at once.
namespace qtensor::inline QTENSOR_ABI::simd::detail {

// ---- Statistics: one or two words a group, as the rule asks for -----------------------------------------------------

/// Absolute maximum: `a` is the largest magnitude.
template <class Statistics, index_t Group, class A, class From = from_f32>
struct group_statistics {
  static constexpr bool enabled = std::same_as<Statistics, absolute_maximum>;
  static void find(const typename From::type* x, index_t groups, std::uint32_t* a, std::uint32_t*) {
    amax_blocks_of<A, Group, From>(x, groups, a);
  }
};

/// Peak: `a` is the first number of the largest magnitude, with its sign.
template <index_t Group, class A, class From>
struct group_statistics<peak, Group, A, From> {
  static constexpr bool enabled = true;
  /// One of these numbers: a negative one where there are both.
  static void find_either(const typename From::type* x, index_t groups, std::uint32_t* a) {
    for (index_t g = 0; g < groups; g += lanes<A>) {
      const words<A> most = simd::reduce_max_each<A>([&](index_t k) QTENSOR_INLINE_LAMBDA {
        const auto* from = x + (g + k) * Group;
        words<A> m(0u);
#pragma GCC unroll 8
        for (index_t i = 0; i < Group; i += lanes<A>)
          m = simd::max(m, simd::sign_last(simd::bits_as<std::uint32_t>(From::template load<A>(from + i))));
        return m;
      });
      const words<A> magnitude = most >> 1, sign = most << 31;
      simd::store(a + g, simd::select(magnitude == words<A>(0u), magnitude, magnitude | sign));
    }
  }
  static void find(const typename From::type* x, index_t groups, std::uint32_t* a, std::uint32_t*) {
    for (index_t g = 0; g < groups; g += lanes<A>) {
      alignas(64) std::uint32_t of_low[static_cast<std::size_t>(lanes<A>)], of_high[static_cast<std::size_t>(lanes<A>)];
      range_blocks_of<A, Group, From>(x + g * Group, lanes<A>, of_low, of_high);
      const words<A> up = simd::load<A>(of_high), down = simd::load<A>(of_low), sign(sign_bit);
      simd::store(a + g, simd::select(simd::below(up, down), down | sign, up));
      for (auto ties = simd::mask_bits((up == down) & simd::below(words<A>(0u), up)); ties != 0; ties &= ties - 1) {
        const index_t k = g + std::countr_zero(ties);
        a[k] = first_of(x + k * Group, a[k]);
      }
    }
  }
  static std::uint32_t first_of(const typename From::type* x, std::uint32_t number) {
    const words<A> magnitude(number & magnitude_bits);
    for (index_t i = 0; i < Group; i += lanes<A>)
      if (const std::uint32_t found = simd::mask_bits(magnitude_words(From::template load<A>(x + i)) == magnitude);
          found != 0)
        return bits_of(simd::number<From>(x[i + std::countr_zero(found)]));
    return number;
  }
};

/// Own extremes: `a` is the smallest number, `b` the largest one; of zeros the first.
template <index_t Group, class A, class From>
struct group_statistics<own_extremes, Group, A, From> {
  static constexpr bool enabled = true;
  static void find(const typename From::type* x, index_t groups, std::uint32_t* a, std::uint32_t* b) {
    for (index_t g = 0; g < groups; g += lanes<A>) {
      words<A> least[static_cast<std::size_t>(lanes<A>)], most[static_cast<std::size_t>(lanes<A>)];
      for (index_t k = 0; k < lanes<A>; ++k) {
        const auto* from = x + (g + k) * Group;
        words<A> up(0u), down(~0u);
#pragma GCC unroll 8
        for (index_t i = 0; i < Group; i += lanes<A>) {
          const words<A> v = in_order(simd::bits_as<std::uint32_t>(From::template load<A>(from + i)));
          up = simd::max(up, v), down = simd::min(down, v);
        }
        most[k] = up, least[k] = ~down;
      }
      const words<A> low =
          bits_in_order(~simd::reduce_max_each<A>([&](index_t k) QTENSOR_INLINE_LAMBDA { return least[k]; }));
      simd::store(a + g, low);
      simd::store(b + g,
                  bits_in_order(simd::reduce_max_each<A>([&](index_t k) QTENSOR_INLINE_LAMBDA { return most[k]; })));
      if (simd::any(low == words<A>(sign_bit)))
        for (index_t k = 0; k < lanes<A>; ++k)
          if (a[g + k] == sign_bit) a[g + k] = group_statistics<peak, Group, A, From>::first_of(x + (g + k) * Group, 0);
    }
  }
};

// ---- Scales ---------------------------------------------------------------------------------------------------------

/// Scales (and offsets) before storing, from statistics. A rule that vectors do not know is asked block by block.
template <class Rule, class S, class A>
struct block_rule {
  static constexpr bool enabled = vector_rule<Rule, S, A>::enabled;
  static QTENSOR_INLINE floats<A> scale(const words<A>& a, const words<A>&) {
    return vector_rule<Rule, S, A>::scale(a, 1.f);
  }
};
template <index_t N, index_t D, class S, class A>
struct block_rule<bounded_amax<N, D>, S, A> {
  static constexpr bool enabled = true;
  static QTENSOR_INLINE floats<A> scale(const words<A>& a, const words<A>&) {
    const floats<A> s = simd::div(simd::bits_as<float>(a), floats<A>(S::codes.high));
    if constexpr (N == 0) return s;
    return simd::min(s, floats<A>(1.f / (static_cast<float>(N) / static_cast<float>(D))));
  }
};
template <class S, class A>
struct block_rule<peak_scale, S, A> {
  static constexpr bool enabled = true;
  static QTENSOR_INLINE floats<A> scale(const words<A>& a, const words<A>&) {
    return simd::div(simd::bits_as<float>(a), floats<A>(S::codes.low));
  }
};
template <class S, class A>
struct block_rule<offset_min_max, S, A> {
  static constexpr bool enabled = true;
  static QTENSOR_INLINE floats<A> scale(const words<A>& a, const words<A>& b) {
    return simd::div(simd::sub(simd::bits_as<float>(b), simd::bits_as<float>(a)),
                     floats<A>(S::codes.high - S::codes.low));
  }
  static QTENSOR_INLINE floats<A> offset(const words<A>& a) { return simd::bits_as<float>(a); }
};

/// Rules whose scales vectors compute and store.
template <class S, class A>
inline constexpr bool scales_by_vectors =
    block_rule<typename S::rule, S, A>::enabled&& one_of<typename S::scale_format, f32, bf16, f16>&& one_of<
        typename S::offset_format, none, f32, bf16, f16>&& std::same_as<typename S::subnormal_amax, subnormal_exact>;

}  // namespace qtensor::inline QTENSOR_ABI::simd::detail
