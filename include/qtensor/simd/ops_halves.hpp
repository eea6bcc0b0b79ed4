// Codes of bf16 numbers as they are, 16 bits a lane: twice as many in a register as floats.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <qtensor/simd/arch.hpp>
#include <qtensor/simd/ops.hpp>
#include <qtensor/simd/ops_codes.hpp>

namespace qtensor::inline QTENSOR_ABI::simd {

/// Where bf16 numbers become codes without becoming floats.
template <class A>
inline constexpr bool codes_halves = std::same_as<A, avx2_arch> || std::same_as<A, sse42_arch> ||
                                     std::same_as<A, neon_arch> || (std::same_as<A, avx512_arch> && features::vbmi);

namespace detail {

inline constexpr int bf16_mantissa = 7;
inline constexpr std::uint16_t bf16_magnitude = 0x7fff, bf16_infinity = 0x7f80;

/// Between which codes a number lies is known by its interval: from half of the smallest step on, each binade has
/// 2^(m + 1) of them, so that every middle between two codes begins one; interval 0 lies below.
template <minifloat_grid G>
struct intervals {
  static constexpr int m = G.mantissa_bits, shift = bf16_mantissa - m - 1, small = m + 1;  // binades below the normal
  static constexpr int largest = moved<G>::max_code, needed = 1 + (((largest >> m) + small) << (m + 1));
  static constexpr int count = needed <= 64 ? 64 : 128;
};
/// Whether codes are looked up by intervals: there is an instruction for tables of so many.
template <class A, minifloat_grid G>
inline constexpr bool looks_up_intervals =
    std::same_as<A, avx512_arch>&& features::vbmi&& G.bits < 8 && intervals<G>::needed <= 128;

/// How far below the smallest normal number (as bf16) counting begins.
template <minifloat_grid G, class A>
inline constexpr std::uint16_t begins_below = [] {
  using in = intervals<G>;
  if constexpr (looks_up_intervals<A, G>)  // at interval 0
    return (in::small << bf16_mantissa) + (1 << in::shift);
  else if constexpr (G.bits == 4 && in::m == 1)  // at half of the smallest step, and ties go down
    return (in::small << bf16_mantissa) - 1;
  else  // ties go down
    return (1 << in::shift) - 1;
}();

/// A byte in all lanes that g++ does not make anew for each use, as each_half.
template <class A, class T = std::uint8_t>
QTENSOR_INLINE xsimd::batch<T, A> kept_byte(std::uint8_t v) {
  return bits_as<T>(isa<A>{}, each_half<A>(isa<A>{}, static_cast<std::uint16_t>(v * 0x101)));
}

/// v and bit Bit of a.
template <int Bit, class A>
QTENSOR_INLINE halves<A> add_bit(any_isa, const halves<A>& v, const halves<A>& a) {
  return v + ((a >> Bit) & each_half<A>(isa<A>{}, 1));
}

/// v as signed halves, divided by 2^Bits, down.
template <int Bits, class A>
QTENSOR_INLINE halves<A> shift_signed(any_isa, const halves<A>& v) {
  return bits_as<std::uint16_t>(isa<A>{}, bits_as<std::int16_t>(isa<A>{}, v) >> Bits);
}

/// How many grid steps a magnitude up to the smallest normal number makes: floats are added whose last bit is a step.
template <minifloat_grid G, class A>
QTENSOR_INLINE halves<A> subnormal_steps(const halves<A>& magnitude, const halves<A>& normal) {
  floats<A> even, odd, even_normal, odd_normal;
  simd::split_bf16(xsimd::min(magnitude, normal), even, odd);
  simd::split_bf16(normal, even_normal, odd_normal);
  const auto sum = [&](const floats<A>& x, const floats<A>& of_normal) QTENSOR_INLINE_LAMBDA {
    const words<A> power =
        bits_as<std::uint32_t>(isa<A>{}, of_normal) + words<A>(static_cast<std::uint32_t>(23 - G.mantissa_bits) << 23);
    return bits_as<std::uint32_t>(isa<A>{}, x + bits_as<float>(isa<A>{}, power));
  };
  return join_low_halves(isa<A>{}, sum(even, even_normal), sum(odd, odd_normal));
}

/// Codes of magnitudes, saturated. From the smallest normal number on, the bits of bf16 count binades and steps as
/// codes do: they are rounded as integers, ties to even. Among so many binades subnormal numbers are rare: their steps
/// are counted only if there are any.
template <minifloat_grid G, class A>
QTENSOR_INLINE bytes<A> bf16_magnitude_codes(const std::array<halves<A>, 2>& a, const std::array<halves<A>, 2>& begin) {
  using signed_bytes = xsimd::batch<std::int8_t, A>;
  constexpr int m = G.mantissa_bits, away = bf16_mantissa - m;
  const isa<A> with;
  const bytes<A> most = kept_byte<A>(static_cast<std::uint8_t>(moved<G>::max_code));
  const auto counted = [&](std::size_t k) QTENSOR_INLINE_LAMBDA {
    return shift_signed<away>(with, add_bit<away>(with, a[k] - begin[k], a[k]));
  };
  // Above the code of the smallest normal number, below 0 where subnormal.
  const signed_bytes above = bits_as<std::int8_t>(with, pack_signed(with, counted(0), counted(1)));
  constexpr int reached = (m + 1) << m;  // down to half a step; what lies below is 0
  const signed_bytes too_small = above + kept_byte<A, std::int8_t>(reached);
  if (!any_top_bit(with, bits_as<std::uint8_t>(with, above & ~too_small))) [[likely]] {
    const auto inside = simd::max(above, kept_byte<A, std::int8_t>(static_cast<std::uint8_t>(-(1 << m))));
    return simd::min(bits_as<std::uint8_t>(with, inside) + kept_byte<A>(1 << m), most);
  }
  const auto steps = [&](std::size_t k) QTENSOR_INLINE_LAMBDA {
    return subnormal_steps<G, A>(a[k], begin[k] + each_half<A>(with, begins_below<G, A>));
  };
  return simd::min(add_saturated(with, bits_as<std::uint8_t>(with, simd::max(above, signed_bytes(std::int8_t{0}))),
                                 pack_unsigned(with, steps(0), steps(1))),
                   most);
}

/// The same for e2m1. All its middles end quarters of a binade: a table knows the codes of sixteen quarters, of which
/// the first is that of half of the smallest step, and the last but one of those that are left is the last one's.
template <minifloat_grid G, class A>
requires(G.bits == 4 &&
         G.mantissa_bits == 1) QTENSOR_INLINE bytes<A> bf16_magnitude_codes(const std::array<halves<A>, 2>& a,
                                                                            const std::array<halves<A>, 2>& begin) {
  using signed_bytes = xsimd::batch<std::int8_t, A>;
  static constexpr std::uint8_t codes[16] = {1, 1, 1, 1, 1, 1, 2, 2, 2, 3, 3, 4, 4, 5, 5, 6};
  const isa<A> with;
  const byte_table<isa<A>, A, 16> table(codes);
  const auto quarter = [&](std::size_t k) QTENSOR_INLINE_LAMBDA {
    // At a middle, the second bit of the mantissa decides: the quarter before, or the one that begins there.
    return shift_signed<5>(with, add_bit<6>(with, a[k] - begin[k], a[k]));
  };
  const signed_bytes quarters = bits_as<std::int8_t>(with, pack_signed(with, quarter(0), quarter(1)));
  const auto known = simd::min(quarters, kept_byte<A, std::int8_t>(15));
  const bytes<A> beyond((quarters > kept_byte<A, std::int8_t>(16)).data);  // 255 where so
  return table(bits_as<std::uint8_t>(with, known)) - beyond;
}

template <minifloat_grid G, class A>
QTENSOR_INLINE bytes<A> bf16_codes(any_isa, const std::array<halves<A>, 2>& x, const std::array<halves<A>, 2>& begin) {
  const isa<A> with;
  const halves<A> magnitude = each_half<A>(with, bf16_magnitude);
  const words<A> signs = bits_as<std::uint32_t>(with, pack_signed(with, x[0], x[1]));
  const bytes<A> sign = bits_as<std::uint8_t>(with, signs >> (8 - G.bits)) & kept_byte<A>(1 << (G.bits - 1));
  const bytes<A> code = bf16_magnitude_codes<G, A>({x[0] & magnitude, x[1] & magnitude}, begin);
  return packed_halves_in_order(with, code | sign);
}

template <class Intervals, class A>
QTENSOR_INLINE bytes<A> codes_in_intervals(any_isa, const std::array<halves<A>, 2>& x);  // where has_interval_codes

#if QTENSOR_LEVEL_X86 >= 4 && defined(__AVX512VBMI__)
/// The codes of intervals; a `tie` beside it: a number that just begins the interval gets the code before, which is
/// even.
template <minifloat_grid G>
struct interval_codes : intervals<G> {
  using in = intervals<G>;
  static constexpr std::uint8_t tie = 0x80;

  alignas(64) std::array<std::uint8_t, in::count> code;
  constexpr interval_codes() : code{} {
    const auto nearest = [](int number) {  // counted in bf16's steps from half of the smallest step on
      const int binade = number >> bf16_mantissa, away = 8 - std::min(binade, in::small);
      const int significand = 128 | (number & 127), up = (1 << (away - 1)) - 1 + (significand >> away & 1);
      const int steps = (std::max(binade - in::small, 0) << in::m) + ((significand + up) >> away);
      return static_cast<std::uint8_t>(std::min(steps, in::largest));
    };
    for (int i = 1; i < in::count; ++i) {
      const int first = (i - 1) << in::shift;
      const std::uint8_t inside = nearest(first + 1);
      code[static_cast<std::size_t>(i)] = static_cast<std::uint8_t>(inside | (nearest(first) != inside ? tie : 0));
    }
  }
};
template <minifloat_grid G>
inline constexpr interval_codes<G> interval_codes_of{};

template <minifloat_grid G, class A>
requires looks_up_intervals<A, G> QTENSOR_INLINE bytes512 bf16_codes(avx512_isa isa, const std::array<halves<A>, 2>& x,
                                                                     const std::array<halves<A>, 2>& begin) {
  using in = interval_codes<G>;
  const byte_table<avx512_isa, A, in::count> codes(interval_codes_of<G>.code.data());
  const __m512i magnitude = each_half<A>(isa, bf16_magnitude).data, one = kept_byte<A>(1).data;
  const __m512i inside = each_half<A>(isa, (1 << in::shift) - 1).data, last = kept_byte<A>(in::count - 1).data;
  const __m512i top = kept_byte<A>(in::tie).data, sign_of_code = kept_byte<A>(1 << (G.bits - 1)).data;
  const auto interval = [&](std::size_t k) QTENSOR_INLINE_LAMBDA {
    return _mm512_srai_epi16(_mm512_sub_epi16(_mm512_and_si512(x[k].data, magnitude), begin[k].data), in::shift);
  };
  const auto begins = [&](std::size_t k) QTENSOR_INLINE_LAMBDA { return _mm512_testn_epi16_mask(x[k].data, inside); };
  const __m512i at = _mm512_min_epu8(_mm512_packus_epi16(interval(0), interval(1)), last);
  const __m512i signs = _mm512_packs_epi16(x[0].data, x[1].data);
  const bytes512 which =
      packed_halves_in_order(isa, bytes512(_mm512_ternarylogic_epi32(at, signs, top, 0xf8)));  // a | (b & c)
  const __m512i code = codes(which).data;
  const __mmask64 ties = _mm512_mask_test_epi8_mask(_mm512_kunpackd(begins(1), begins(0)), code, top);
  const __m512i even = _mm512_mask_sub_epi8(code, ties, code, one);
  return _mm512_ternarylogic_epi32(sign_of_code, _mm512_srli_epi16(which.data, 8 - G.bits), even, 0xca);  // a ? b : c
}

/// A sign is the upper bit of an index: saturated to bytes, numbers that are not tiny have bit 6 where they are
/// positive.
template <class Intervals, class A>
QTENSOR_INLINE bytes512 codes_in_intervals(avx512_isa isa, const std::array<halves<A>, 2>& x) {
  static_assert(Intervals::count == 64);
  static constexpr Intervals intervals{};
  const byte_table<avx512_isa, A, 128> codes(intervals.code.data());
  const __m512i magnitude = each_half<A>(isa, bf16_magnitude).data, positive = kept_byte<A>(64).data;
  const __m512i begin = each_half<A>(isa, Intervals::begin).data, last = kept_byte<A>(63).data;
  const auto interval = [&](std::size_t k) QTENSOR_INLINE_LAMBDA {
    return _mm512_srai_epi16(_mm512_sub_epi16(_mm512_and_si512(x[k].data, magnitude), begin), Intervals::shift);
  };
  const __m512i at = _mm512_min_epu8(_mm512_packus_epi16(interval(0), interval(1)), last);
  const __m512i signs = _mm512_packs_epi16(x[0].data, x[1].data);
  return codes(
      packed_halves_in_order(isa, bytes512(_mm512_ternarylogic_epi32(at, signs, positive, 0xf8))));  // a | (b & c)
}
#endif

}  // namespace detail

/// Where the grid times powers of two, given as the bits of floats, begins for bf16_codes: a half, twice in each word;
/// smaller powers count as least_moved<G>. Cost: 5.
template <minifloat_grid G, usable_arch A>
requires codes_halves<A> QTENSOR_INLINE words<A> grid_begins_at(const words<A>& power) {
  constexpr std::uint32_t below =
      (G.smallest_normal - detail::moved<G>::one) - (std::uint32_t{detail::begins_below<G, A>} << 16);
  const words<A> begin = simd::max(power, words<A>(least_moved<G>)) + words<A>(below);
  return begin | (begin >> 16);
}

/// The same from the smallest normal numbers of moved grids (grid_times), one for each of 2 * lanes numbers. Cost: 2.
template <minifloat_grid G, usable_arch A>
requires codes_halves<A> QTENSOR_INLINE halves<A> grid_begins_at_each(const floats<A>& first, const floats<A>& second) {
  return simd::upper_halves(simd::bits_as<std::uint32_t>(first), simd::bits_as<std::uint32_t>(second)) -
         detail::each_half<A>(detail::isa<A>{}, detail::begins_below<G, A>);
}

/// The same of the format's own grid. Cost: 0.
template <minifloat_grid G, usable_arch A>
requires codes_halves<A> QTENSOR_INLINE halves<A> grid_begins() {
  return detail::each_half<A>(detail::isa<A>{},
                              static_cast<std::uint16_t>((G.smallest_normal >> 16) - detail::begins_below<G, A>));
}

/// Codes on a grid of the nearest values to bf16 numbers (ties to even), saturated, with the sign on top; one per byte,
/// the bits above a short code 0 but on AVX-512; NaN gives anything. Grids may be moved, one for each batch: `begin`
/// says where they are (grid_begins_at). Cost: 23, and 17 more if there are subnormal numbers; e2m1 22; short codes on
/// AVX-512 19.
template <minifloat_grid G, usable_arch A>
requires codes_halves<A> QTENSOR_INLINE bytes<A> bf16_codes(const std::array<halves<A>, 2>& x,
                                                            const std::array<halves<A>, 2>& begin) {
  return detail::bf16_codes<G, A>(detail::isa<A>{}, x, begin);
}

/// Where codes are looked up by intervals that a type describes: there is an instruction for tables of 128 bytes.
template <class A>
inline constexpr bool has_interval_codes = std::same_as<A, avx512_arch>&& features::vbmi;
/// Codes of bf16 numbers by intervals of magnitudes, so many steps of bf16 wide, from `begin` on: `code` holds those of
/// `count` (64) intervals for negative numbers, then the same for positive ones; in order. Magnitudes below the first
/// interval, where both signs have one code, count as in it, those beyond the last one as in that. Cost: 13.
template <class Intervals, usable_arch A>
requires has_interval_codes<A> QTENSOR_INLINE bytes<A> interval_codes(const std::array<halves<A>, 2>& x) {
  return detail::codes_in_intervals<Intervals>(detail::isa<A>{}, x);
}

/// What binade_codes gives of the floats that bf16 numbers are. Cost: 37.
template <usable_arch A>
requires codes_halves<A> QTENSOR_INLINE bytes<A> binade_codes(const std::array<halves<A>, 2>& x,
                                                              const binade_steps& steps) {
  return detail::packed_halves_in_order(detail::isa<A>{},
                                        detail::packed_binade_codes<A>(detail::isa<A>{}, x[0], x[1], steps));
}

/// Whether any of these bf16 numbers is NaN. Cost: 6.
template <usable_arch A>
requires codes_halves<A> QTENSOR_INLINE bool any_nan(const std::array<halves<A>, 2>& x) {
  const detail::isa<A> isa;
  const halves<A> magnitude = detail::each_half<A>(isa, detail::bf16_magnitude);
  return any_half_above(isa, xsimd::max(x[0] & magnitude, x[1] & magnitude), detail::bf16_infinity);
}

}  // namespace qtensor::inline QTENSOR_ABI::simd
