// Codes that are searched for: those of the nearest values, ties toward zero, for formats of four bits.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <concepts>
#include <cstdint>
#include <qtensor/simd/encode_minifloat.hpp>

// A number takes the upper one of two values if it lies beyond their middle times the scale. Where there is an
// instruction for tables of 128 bytes numbers are divided and looked up, else they are compared with the middles.
namespace qtensor::inline QTENSOR_ABI::simd::detail {

/// Codes that are searched for: those of positive values first, ascending from 0, then the same with a sign.
template <class S>
inline constexpr bool searches = std::same_as<ordinary_division<S>, least_distance>;

/// Rules that say the code of a scale themselves, `code(peak)`, and look at no sign.
template <class Rule>
concept knows_codes = requires(float peak) {
  { Rule::code(peak) } -> std::same_as<std::uint32_t>;
};

/// The middles between neighbouring values.
template <class F>
inline constexpr auto middles = [] {
  constexpr std::size_t half = std::size_t{1} << (F::bits - 1);
  std::array<float, half> m{};  // and a 0, to be read as a register
  for (std::size_t i = 0; i + 1 < half; ++i) m[i] = (decode_table<F>[i] + decode_table<F>[i + 1]) * 0.5f;
  return m;
}();

/// Whether they say the nearest code: where products with the scale are exact, neighbours are no further apart than
/// twice, and x is at most twice the largest product, the differences that decide are exact (Sterbenz), and all others
/// are larger by more than a rounding.
template <class F, class Scale>
constexpr bool can_search() {
  if constexpr (F::bits != 4 || Scale::bits > 8) {
    return false;
  } else {
    constexpr auto& v = decode_table<F>;
    if (v[0] != 0.f || v[8] != 0.f) return false;
    for (std::size_t i = 1; i < 8; ++i)
      if (!(v[i - 1] < v[i]) || v[i + 8] != -v[i] || (i > 1 && v[i] > 2.f * v[i - 1]) || v[i] > 64.f * v[1])
        return false;
    const auto exact = [](float a, float b) {
      const double product = static_cast<double>(a) * static_cast<double>(b);
      return product >= 0x1p127 || static_cast<double>(static_cast<float>(product)) == product;
    };
    for (const float s : decode_table<Scale>)
      for (std::size_t i = 0; i < 7; ++i)
        if (!exact(v[i + 1], s) || !exact(middles<F>[i], s)) return false;
    return true;
  }
}

// ---- By comparing ---------------------------------------------------------------------------------------------------

/// Codes of F by the limits between them, a scale times the middles.
template <class F, class Scale, class A>
struct limit_search {
  /// What the numbers of groups with these maxima (as bits) and scales are searched by; NaN: not so.
  static QTENSOR_INLINE floats<A> divisor(const words<A>& amax, const floats<A>& scale) {
    // No scale: every product is 0, and no limit is passed; nor is one by zeros, which small scales would only slow.
    const auto none = simd::mask_as<float>(amax == words<A>(0u)) | (scale == floats<A>(0.f));
    const floats<A> largest = simd::mul(scale, floats<A>(decode_table<F>[7]));
    const auto reached =
        (simd::mul(simd::bits_as<float>(amax), floats<A>(0.5f)) <= largest) & (largest < floats<A>(infinity));
    return simd::select(none, floats<A>(infinity), simd::select(reached, scale, floats<A>(quiet_nan)));
  }

  /// Codes of four batches, of which `Together` share a divisor.
  template <index_t Together>
  static QTENSOR_INLINE bytes<A> codes(const std::array<floats<A>, 4>& v, const float* by) {
    std::array<ints<A>, 4> r;
#pragma GCC unroll 4
    for (std::size_t k = 0; k < 4; k += Together) {
      const simd::seven_limits<A> limits(middles<F>.data(), by[k / Together]);
#pragma GCC unroll 4
      for (std::size_t m = k; m < k + Together; ++m)
        r[m] = simd::bits_as<std::int32_t>(limits.below(simd::bits_as<std::uint32_t>(v[m]) & words<A>(magnitude_bits)));
    }
    const bytes<A> c = simd::narrow_u8(r[0], r[1], r[2], r[3]), zero(std::uint8_t{0});
    return simd::select(c == zero, zero, c | sign_codes<F>(v));
  }
};

// ---- By looking up --------------------------------------------------------------------------------------------------

/// Between which middles a magnitude lies is known by the interval of its upper half, as an integer: each middle begins
/// one, and interval 0 lies below all. Codes of positive numbers stand in the upper half of the table.
template <class F>
struct middle_intervals {
  static constexpr int count = 64;
  static constexpr std::uint32_t lower_half = low_bits(16);
  static constexpr int shift = [] {
    int least = 15;
    for (std::size_t i = 0; i < 7; ++i) least = std::min(least, std::countr_zero(bits_of(middles<F>[i]) >> 16));
    return least;
  }();
  static constexpr int begin = static_cast<int>(bits_of(middles<F>[0]) >> 16) - (1 << shift);
  static constexpr int interval_of(float v) { return (static_cast<int>(bits_of(v) >> 16) - begin) >> shift; }
  static constexpr bool possible = std::none_of(middles<F>.begin(), middles<F>.end(),
                                                [](float v) { return (bits_of(v) & lower_half) != 0; }) &&
                                   begin > 0 && interval_of(middles<F>[6]) < count;

  alignas(64) std::array<std::uint8_t, 2 * count> code;
  constexpr middle_intervals() : code{} {
    for (std::size_t i = 0; i < count; ++i) {
      std::uint8_t c = 0;
      while (c < 7 && interval_of(middles<F>[c]) <= static_cast<int>(i)) ++c;
      code[count + i] = c;
      code[i] = c == 0 ? c : static_cast<std::uint8_t>(c | 8);
    }
  }
};

/// Codes of F by the interval that a number over the scale lies in. Middles times scales have eight significant bits at
/// most, so that of a number only so many count, of its neighbour toward zero: a number lies beyond such a product if
/// its neighbour does not lie below.
template <class F, class Scale, class A>
struct interval_search {
  using in = middle_intervals<F>;
  /// Scales whose products have neighbours that come from a multiplication, and inverses.
  static constexpr float least = 0x1p-124f / middles<F>[0], most = 0x1p120f;
  static constexpr bool possible =
      in::possible && std::all_of(decode_table<Scale>.begin(), decode_table<Scale>.end(), [](float s) {
        const auto is_short = [s](float middle) { return (bits_of(middle * s) & in::lower_half) == 0; };
        return !(least < s && s < most) || std::all_of(middles<F>.begin(), middles<F>.end(), is_short);
      });
  /// Whether those are powers of two: quotients are exact, and numbers need not be cut to eight bits first.
  static constexpr bool is_exact = std::all_of(decode_table<Scale>.begin(), decode_table<Scale>.end(), [](float s) {
    return !(least < s && s < most) || (bits_of(s) & low_bits(23)) == 0;
  });
  /// What is multiplied by is a little more than an inverse that is not exact: 2^-12 is more than all that is rounded,
  /// and less than how far numbers of eight bits are apart.
  static constexpr float one = is_exact ? 1.f : 1.f + 0x1p-12f;

  static QTENSOR_INLINE floats<A> divisor(const words<A>& amax, const floats<A>& scale) {
    const auto none = simd::mask_as<float>(amax == words<A>(0u)) | (scale == floats<A>(0.f));
    const floats<A> by = simd::div(floats<A>(one), scale);
    const auto reached = (simd::mul(simd::bits_as<float>(amax), by) <= floats<A>(2.f * decode_table<F>[7])) &
                         (floats<A>(least) < scale) & (scale < floats<A>(most));
    return simd::select(none, floats<A>(0.f), simd::select(reached, by, floats<A>(quiet_nan)));
  }

  template <index_t Together>
  static QTENSOR_INLINE bytes<A> codes(const std::array<floats<A>, 4>& v, const float* by) {
    std::array<words<A>, 4> q;
#pragma GCC unroll 4
    for (std::size_t k = 0; k < 4; ++k) {
      floats<A> neighbour = simd::mul(v[k], floats<A>(1.f - 0x1p-24f));
      if constexpr (!is_exact)
        neighbour = simd::bits_as<float>(simd::bits_as<std::uint32_t>(neighbour) & words<A>(~in::lower_half));
      q[k] = simd::bits_as<std::uint32_t>(simd::mul(neighbour, floats<A>(by[k / Together])));
    }
    return simd::interval_codes<in, A>({simd::upper_halves(q[0], q[1]), simd::upper_halves(q[2], q[3])});
  }
};

template <class F, class Scale, class A>
constexpr bool searches_intervals() {
  if constexpr (has_interval_codes<A> && can_search<F, Scale>())
    return interval_search<F, Scale, A>::possible;
  else
    return false;
}
template <class F, class Scale, class A>
using code_search =
    std::conditional_t<searches_intervals<F, Scale, A>(), interval_search<F, Scale, A>, limit_search<F, Scale, A>>;

}  // namespace qtensor::inline QTENSOR_ABI::simd::detail
