// Codes of bf16 numbers as they are, 16 bits a lane: twice as many in a register as floats.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstdint>
#include <qtensor/simd/arch.hpp>
#include <qtensor/simd/ops.hpp>
#include <qtensor/simd/ops_codes.hpp>

namespace qtensor::inline QTENSOR_ABI::simd {

/// Where bf16 numbers become codes without becoming floats. (AVX-512 has what joins floats at once.)
template <class A>
inline constexpr bool codes_halves =
    std::same_as<A, avx2_arch> || std::same_as<A, sse42_arch> || std::same_as<A, neon_arch>;

namespace detail {

inline constexpr int bf16_mantissa = 7;
inline constexpr std::uint16_t bf16_magnitude = 0x7fff, bf16_infinity = 0x7f80;

/// A byte in all lanes that g++ does not make anew for each use, as each_half.
template <class A, class T = std::uint8_t>
QTENSOR_INLINE xsimd::batch<T, A> kept_byte(std::uint8_t v) {
  return bits_as<T>(isa<A>{}, each_half<A>(isa<A>{}, static_cast<std::uint16_t>(v * 0x101)));
}

/// How many grid steps a magnitude up to the smallest normal number makes: floats are added whose last bit is a step.
template <minifloat_grid G, class A>
QTENSOR_INLINE halves<A> subnormal_steps(const halves<A>& magnitude, const halves<A>& normal) {
  const words<A> power = (bits_as<std::uint32_t>(isa<A>{}, normal) & words<A>(0xffff0000u)) +
                         words<A>(static_cast<std::uint32_t>(23 - G.mantissa_bits) << 23);
  floats<A> even, odd;
  simd::split_bf16(xsimd::min(magnitude, normal), even, odd);
  const auto sum = [&](const floats<A>& x) QTENSOR_INLINE_LAMBDA {
    return bits_as<std::uint32_t>(isa<A>{}, x + bits_as<float>(isa<A>{}, power));
  };
  return join_low_halves(isa<A>{}, sum(even), sum(odd));
}

/// Codes of magnitudes, saturated. From the smallest normal number on, the bits of bf16 count binades and steps as
/// codes do: they are rounded as integers, ties to even. Among so many binades subnormal numbers are rare: their steps
/// are counted only if there are any.
template <minifloat_grid G, class A>
QTENSOR_INLINE bytes<A> bf16_magnitude_codes(const std::array<halves<A>, 2>& a,
                                             const std::array<halves<A>, 2>& normal) {
  using signed_bytes = xsimd::batch<std::int8_t, A>;
  constexpr int m = G.mantissa_bits, away = bf16_mantissa - m, middle = 1 << (away - 1);
  const isa<A> with;
  const bytes<A> most(static_cast<std::uint8_t>(moved<G>::max_code));
  const auto counted = [&](std::size_t k) QTENSOR_INLINE_LAMBDA {
    const halves<A> odd = (a[k] >> away) & each_half<A>(with, 1);
    // Nothing is saturated here, but g++ would take a plain difference apart.
    const halves<A> above = a[k] - xsimd::ssub(normal[k], each_half<A>(with, middle - 1)) + odd;
    return bits_as<std::uint16_t>(with, bits_as<std::int16_t>(with, above) >> away);
  };
  // Above the code of the smallest normal number, below 0 where subnormal.
  const signed_bytes above = bits_as<std::int8_t>(with, pack_signed(with, counted(0), counted(1)));
  const signed_bytes zero(std::int8_t{0});
  constexpr int reached = (m + 1) << m;  // down to half a step; what lies below is 0
  const signed_bytes too_small = above + signed_bytes(std::int8_t{reached});
  if (!any_top_bit(with, bits_as<std::uint8_t>(with, above & ~too_small))) [[likely]]
    return simd::min(
        bits_as<std::uint8_t>(with, simd::max(xsimd::sadd(above, signed_bytes(std::int8_t{1 << m})), zero)), most);
  return simd::min(add_saturated(with, bits_as<std::uint8_t>(with, simd::max(above, zero)),
                                 pack_unsigned(with, subnormal_steps<G, A>(a[0], normal[0]),
                                               subnormal_steps<G, A>(a[1], normal[1]))),
                   most);
}

/// The same for e2m1. All its middles end quarters of a binade: a table knows the codes of sixteen quarters, of which
/// the first is that of half of the smallest step, and the last but one of those that are left is the last one's.
template <minifloat_grid G, class A>
requires(G.bits == 4 &&
         G.mantissa_bits == 1) QTENSOR_INLINE bytes<A> bf16_magnitude_codes(const std::array<halves<A>, 2>& a,
                                                                            const std::array<halves<A>, 2>& normal) {
  using signed_bytes = xsimd::batch<std::int8_t, A>;
  static constexpr std::uint8_t codes[16] = {1, 1, 1, 1, 1, 1, 2, 2, 2, 3, 3, 4, 4, 5, 5, 6};
  const isa<A> with;
  const byte_table<isa<A>, A, 16> table(codes);
  const auto quarter = [&](std::size_t k) QTENSOR_INLINE_LAMBDA {
    // At a middle, the second bit of the mantissa decides: the quarter before, or the one that begins there.
    const halves<A> up = (a[k] >> 6) & each_half<A>(with, 1);
    const auto first = xsimd::ssub(bits_as<std::int16_t>(with, normal[k]),
                                   bits_as<std::int16_t>(with, each_half<A>(with, 2 * 128 - 1)));
    return bits_as<std::uint16_t>(with, (bits_as<std::int16_t>(with, a[k] + up) - first) >> 5);
  };
  const signed_bytes quarters = bits_as<std::int8_t>(with, pack_signed(with, quarter(0), quarter(1)));
  const auto known = simd::min(quarters, kept_byte<A, std::int8_t>(15));
  const bytes<A> beyond((quarters > kept_byte<A, std::int8_t>(16)).data);  // 255 where so
  return table(bits_as<std::uint8_t>(with, known)) - beyond;
}

}  // namespace detail

/// Codes on a grid of the nearest values to bf16 numbers (ties to even), saturated, with the sign on top; one per byte,
/// the bits above a short code 0; NaN gives anything. Grids may be moved: `normal` are their smallest normal numbers,
/// as bf16. Cost: 25, and 17 more if there are subnormal numbers; e2m1 24.
template <minifloat_grid G, usable_arch A>
requires codes_halves<A> QTENSOR_INLINE bytes<A> bf16_codes(const std::array<halves<A>, 2>& x,
                                                            const std::array<halves<A>, 2>& normal) {
  const detail::isa<A> isa;
  const halves<A> magnitude = detail::each_half<A>(isa, detail::bf16_magnitude);
  const words<A> signs = simd::bits_as<std::uint32_t>(pack_signed(isa, x[0], x[1]));
  const bytes<A> sign = simd::bits_as<std::uint8_t>(signs >> (8 - G.bits)) & detail::kept_byte<A>(1 << (G.bits - 1));
  const bytes<A> code = detail::bf16_magnitude_codes<G, A>({x[0] & magnitude, x[1] & magnitude}, normal);
  return simd::order_for_halves(code | sign);
}

/// What binade_codes gives of the floats that bf16 numbers are. Cost: 37.
template <usable_arch A>
requires codes_halves<A> QTENSOR_INLINE bytes<A> binade_codes(const std::array<halves<A>, 2>& x,
                                                              const binade_steps& steps) {
  return simd::order_for_halves(detail::binade_codes_by_slopes<A>(detail::isa<A>{}, x[0], x[1], steps));
}

/// Whether any of these bf16 numbers is NaN. Cost: 6.
template <usable_arch A>
requires codes_halves<A> QTENSOR_INLINE bool any_nan(const std::array<halves<A>, 2>& x) {
  const detail::isa<A> isa;
  const halves<A> magnitude = detail::each_half<A>(isa, detail::bf16_magnitude);
  return any_half_above(isa, xsimd::max(x[0] & magnitude, x[1] & magnitude), detail::bf16_infinity);
}

}  // namespace qtensor::inline QTENSOR_ABI::simd
