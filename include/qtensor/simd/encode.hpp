// Floats to codes, four batches at a time: quotients, integers and minifloats, with the policies vectors can follow.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <limits>
#include <qtensor/reference/codec.hpp>
#include <qtensor/simd/arch.hpp>
#include <qtensor/simd/ops.hpp>

// Everything here equals qtensor::quantize_element bit for bit. Numbers of operations are per batch of floats.
namespace qtensor::inline QTENSOR_ABI::simd {

// ---- What a scheme asks for ----------------------------------------------------------------------------------------

namespace detail {

/// Integers and fixed-point fractions: a code counts units.
template <class F>
concept counting_format = F::bits <= 8 && (F::is_integer || requires { F::fraction_bits; });

/// Minifloats whose grid can be reached by one addition to a normal float (see magnitude_codes).
template <class F>
concept shiftable_format = minifloat_format<F> && F::bits <= 8 && F::mantissa_bits >= 1 &&
                           (128 - F::bias > F::mantissa_bits + 1) &&
                           (128 - F::bias + (1 << F::exponent_bits) + 23 < 255);

/// A deterministic rounding as bits: bit 8 * negative + 4 * odd + remainder says whether the magnitude steps up.
template <class Rounding>
constexpr std::uint32_t step_table() {
  std::uint32_t table = 0;
  for (std::uint32_t i = 0; i < 16; ++i)
    if (Rounding::up((i & 8) != 0, (i & 4) != 0, static_cast<remainder>(i & 3))) table |= 1u << i;
  return table;
}
template <class Rounding>
inline constexpr bool ties_to_even = step_table<Rounding>() == step_table<nearest_even>();

/// Deterministic, looks at nothing but the remainder, and numbers of the grid stay where they are (bits 0, 4, 8, 12 of
/// the table).
template <class Rounding, class Code>
constexpr bool vector_rounding() {
  if constexpr (requires(float q) { Rounding::template before<Code>(q); }) {
    return false;
  } else if constexpr (deterministic_rounding<Rounding>) {
    if ((step_table<Rounding>() & 0x1111u) != 0) return false;
    if constexpr (requires { typename Rounding::intermediate; })
      return std::same_as<typename Rounding::intermediate, f16>;
    return true;
  } else {
    return false;
  }
}

template <class F>
inline constexpr bool vector_format = (F::bits == 2 || F::bits == 4 || F::bits == 6 || F::bits == 8) &&
                                      (counting_format<F> || shiftable_format<F>);

template <class T, class... Choices>
concept one_of = (std::same_as<T, Choices> || ...);

template <class S>
constexpr bool vector_policies() {
  constexpr bool overflow = one_of<typename S::overflow, saturate, to_special>;
  constexpr bool nan =
      one_of<typename S::nan, nan_propagates, nan_to_zero, nan_to_zero_point, nan_to_max, nan_to_opposite_zero>;
  constexpr bool division = one_of<typename S::division, exact_division, reciprocal>;
  constexpr bool division_type = one_of<typename S::division_type, f32, f16, bf16>;
  constexpr bool order = one_of<typename S::zero_point_order, zp_after_round, zp_before_round>;
  return overflow && nan && division && division_type && order;
}

}  // namespace detail

/// Schemes with a vector encoder: codes in order in an array of their own, a format of 2, 4, 6 or 8 bits with a formula
/// (integers, fixed point, minifloats), a rounding that is not random, and policies of this library.
template <class S>
concept vector_encodable =
    quantization_scheme<S> && std::same_as<typename S::layout, planar<low_first>> && !S::has_offset &&
    detail::vector_format<typename S::code_format> &&
    detail::vector_rounding<typename S::rounding, typename S::code_format>() && detail::vector_policies<S>();

// ---- Quotients -----------------------------------------------------------------------------------------------------

/// How x / s is computed. `inverse`: x * (1 / s), exact where 1 / s is a normal power of two, and the rule of the
/// policy `reciprocal`. `two_products`: fma(x, r, x * r') with r + r' = 1 / s to twice the precision: rounded to
/// integers below 256 it is IEEE's quotient (tests/simd/encode_exhaustive.cpp tries every mantissa of s at every
/// half-integer and its neighbours), for s in [2^-100, 2^100); an infinite x gives NaN.
enum class quotient_by { division, inverse, two_products };

namespace detail {

template <class S>
inline constexpr bool is_reciprocal = std::same_as<typename S::division, reciprocal>;

template <class S>
inline constexpr bool has_intermediate = requires {
  typename S::rounding::intermediate;
};

template <class A>
inline constexpr bool has_fma_unit =
    std::same_as<A, avx512_arch> || std::same_as<A, avx2_arch> || std::same_as<A, neon_arch>;

/// Whether the cheap exact division is allowed for codes of S at all; regular_divisors says for which scales.
template <class S, class A>
inline constexpr bool divides_by_products =
    has_fma_unit<A> && !is_reciprocal<S> && counting_format<typename S::code_format> &&
    ties_to_even<typename S::rounding> && !has_intermediate<S> && std::same_as<typename S::division_type, f32> &&
    !std::same_as<typename S::scale_format, e8m0> &&
    (!S::has_zero_point || std::same_as<typename S::zero_point_order, zp_after_round>);

/// The right quotient whatever the scale.
template <class S>
inline constexpr quotient_by safe_quotient = is_reciprocal<S> ? quotient_by::inverse : quotient_by::division;

/// The fast one, for regular divisors.
template <class S, class A>
inline constexpr quotient_by fast_quotient =
    divides_by_products<S, A> ? quotient_by::two_products : quotient_by::inverse;

}  // namespace detail

/// What a batch of numbers is divided by, one scale per lane, in the form that `By` wants.
template <quotient_by By, usable_arch A>
struct divisor {
  floats<A> value;  ///< the scale, or its inverse
};
template <usable_arch A>
struct divisor<quotient_by::two_products, A> {
  floats<A> value;  ///< r = RN(1 / s)
  floats<A> rest;   ///< r' = RN((1 - s * r) / s); times r instead is not good enough (s = 2 - 2^-23, x = 1)
};

/// The number S divides by: the scale times the tensor's.
template <class S, usable_arch A>
QTENSOR_INLINE floats<A> whole_scale(const floats<A>& scale, float tensor_scale) {
  if constexpr (S::has_tensor_scale)
    return simd::mul(scale, floats<A>(tensor_scale));
  else
    return scale;
}

/// Scales made ready for `By`. Cost: `inverse` a division, `two_products` two.
template <class S, quotient_by By, usable_arch A>
QTENSOR_INLINE divisor<By, A> divisor_of(const floats<A>& scale, float tensor_scale) {
  const floats<A> one(1.f);
  if constexpr (By == quotient_by::division) {
    return {whole_scale<S>(scale, tensor_scale)};
  } else if constexpr (detail::is_reciprocal<S>) {
    if constexpr (S::has_tensor_scale)
      return {simd::div(floats<A>(1.f / tensor_scale), scale)};
    else
      return {simd::div(one, scale)};
  } else if constexpr (By == quotient_by::inverse) {
    return {simd::div(one, whole_scale<S>(scale, tensor_scale))};
  } else {
    const floats<A> s = whole_scale<S>(scale, tensor_scale), r = simd::div(one, s);
    const floats<A> minus_s = simd::bits_as<float>(simd::bits_as<std::uint32_t>(s) ^ words<A>(sign_bit));
    return {r, simd::div(simd::fma(minus_s, r, one), s)};
  }
}

/// The lanes whose scale allows the fast quotient: any for `reciprocal`; [2^-100, 2^100) for two products; powers of
/// two whose inverse is a normal number for `inverse`.
template <class S, usable_arch A>
QTENSOR_INLINE auto regular_divisors(const floats<A>& scale, float tensor_scale) {
  const words<A> bits = simd::bits_as<std::uint32_t>(whole_scale<S>(scale, tensor_scale));
  if constexpr (detail::is_reciprocal<S>) {
    return bits == bits;
  } else if constexpr (detail::fast_quotient<S, A> == quotient_by::two_products) {
    constexpr std::uint32_t low = (127u - 100u) << 23, high = (127u + 100u) << 23;
    return bits - words<A>(low) < words<A>(high - low);
  } else {
    constexpr std::uint32_t subnormal = 0x00400000u, low = 0x00800000u, high = 0x7f000000u;  // 2^-127, 2^-126, 2^127
    const auto power = (bits & words<A>(low_bits(23))) == words<A>(0u);
    return (power & (bits - words<A>(low) < words<A>(high - low))) | (bits == words<A>(subnormal));
  }
}

namespace detail {

/// x rounded to f16 or bf16 (ties to even, overflow to infinity), as floats.
template <class F, class A>
QTENSOR_INLINE floats<A> through(const floats<A>& x) {
  if constexpr (std::same_as<F, f16>)
    return simd::float_of_f16(f16_bits(any_isa{}, x));
  else if constexpr (std::same_as<F, bf16>)
    return simd::float_of_bf16(bf16_bits(any_isa{}, x));
  else
    return x;
}

}  // namespace detail

/// x over its scale as S wants it, rounded to the division's type. Cost: 1 (division: a divide), two products 2.
template <class S, quotient_by By, usable_arch A>
QTENSOR_INLINE floats<A> quotients(const floats<A>& x, const divisor<By, A>& d) {
  floats<A> q;
  if constexpr (By == quotient_by::division)
    q = simd::div(x, d.value);
  else if constexpr (By == quotient_by::inverse)
    q = simd::mul(x, d.value);
  else
    q = simd::fma(x, d.value, simd::mul(x, d.rest));
  return detail::through<typename S::division_type>(q);
}

// ---- Rounding by any policy ----------------------------------------------------------------------------------------

namespace detail {

/// 1 where a magnitude that lies `rest` above its lower neighbour steps up, else 0; `half` is half the gap, negative
/// and odd are 0 or 1. NaN does not step.
template <class Rounding, class A>
QTENSOR_INLINE words<A> steps(const words<A>& negative, const words<A>& odd, const floats<A>& rest,
                              const floats<A>& half) {
  words<A> index = simd::select(simd::mask_as<std::uint32_t>(rest > floats<A>(0.f)), words<A>(1u), words<A>(0u));
  index = simd::select(simd::mask_as<std::uint32_t>(rest == half), words<A>(2u), index);
  index = simd::select(simd::mask_as<std::uint32_t>(rest > half), words<A>(3u), index);
  index = index | (odd << 2) | (negative << 3);
  return simd::shift_right(words<A>(step_table<Rounding>()), index) & words<A>(1u);
}

/// x rounded to an integer, |x| < 2^31; NaN gives -2^31. Cost: 1 for ties to even.
template <class Rounding, class A>
QTENSOR_INLINE ints<A> round_by(const floats<A>& x) {
  if constexpr (ties_to_even<Rounding>) {
    return simd::round_to_int_checked(x);
  } else {
    const floats<A> whole = simd::truncate(x);
    const ints<A> r = simd::round_to_int_checked(whole);
    const words<A> negative = simd::bits_as<std::uint32_t>(x) >> 31,
                   odd = simd::bits_as<std::uint32_t>(r) & words<A>(1u);
    const floats<A> rest =
        simd::bits_as<float>(simd::bits_as<std::uint32_t>(simd::sub(x, whole)) & words<A>(magnitude_bits));
    const ints<A> step = simd::bits_as<std::int32_t>(steps<Rounding>(negative, odd, rest, floats<A>(0.5f)));
    const ints<A> sign = simd::bits_as<std::int32_t>(words<A>(0u) - negative);  // -1 where negative
    return r + ((step ^ sign) - sign);
  }
}

// ---- Integers and fixed point --------------------------------------------------------------------------------------

/// The range of counted codes as floats, and how many units make 1.
template <class S>
struct counting {
  using code = typename S::code_format;
  static constexpr float unit = [] {
    if constexpr (requires { code::fraction_bits; })
      return exp2i(code::fraction_bits);
    else
      return 1.f;
  }();
  static constexpr float low = S::codes.low * unit, high = S::codes.high * unit;
  static constexpr bool adds_before = S::has_zero_point && std::same_as<typename S::zero_point_order, zp_before_round>;
  static constexpr bool adds_after = S::has_zero_point && !adds_before;
  /// Saturation while narrowing to a byte is all the clamping that is needed.
  static constexpr bool fills_bytes = code::is_signed ? low == -128.f && high == 127.f : low == 0.f && high == 255.f;
};

}  // namespace detail

/// The zero points of a batch, and the integers that they leave room for: [low - zero, high - zero].
template <class S, usable_arch A>
struct zero_shift {
  ints<A> zero, low, high;

  static QTENSOR_INLINE zero_shift by(const ints<A>& zero) {
    using range = detail::counting<S>;
    return {zero, ints<A>(static_cast<std::int32_t>(range::low)) - zero,
            ints<A>(static_cast<std::int32_t>(range::high)) - zero};
  }
};

/// Zero points that vectors can take: |zero| < 2^22; with two products the quotients they allow must stay within 256.
template <class S, usable_arch A>
constexpr bool regular_zero_point(std::int32_t zero) {
  using range = detail::counting<S>;
  if constexpr (!range::adds_after)
    return true;
  else if constexpr (detail::divides_by_products<S, A>)
    return zero >= static_cast<std::int32_t>(range::high) - 256 && zero <= static_cast<std::int32_t>(range::low) + 256;
  else
    return zero > -(1 << 22) && zero < (1 << 22);
}

namespace detail {

/// Quotients to integers, before a zero point is added to them: -2^31 where that is NaN or beyond 2^31.
template <class S, class A>
QTENSOR_INLINE ints<A> counts(floats<A> q, const zero_shift<S, A>& shift) {
  using range = counting<S>;
  if constexpr (has_intermediate<S>) q = through<typename S::rounding::intermediate>(q);
  if constexpr (range::unit != 1.f) q = simd::mul(q, floats<A>(range::unit));
  if constexpr (range::adds_before) q = simd::add(q, simd::to_float(shift.zero));
  return round_by<typename S::rounding>(q);
}

/// Integers whose zero point is added after rounding, kept where the sum fits a code.
template <class S, class A>
QTENSOR_INLINE ints<A> shifted(const ints<A>& r, const zero_shift<S, A>& shift) {
  if constexpr (!counting<S>::adds_after)
    return r;
  else
    return simd::min(shift.high, simd::max(shift.low, r)) + shift.zero;
}

/// The same for batches that hold a NaN, an infinity or something huge, from the exact quotient; NaN becomes its code.
template <class S, class A>
QTENSOR_INLINE ints<A> careful_counts(floats<A> q, const zero_shift<S, A>& shift) {
  using range = counting<S>;
  const auto number = simd::mask_as<std::int32_t>(q == q);
  const ints<A> low(static_cast<std::int32_t>(range::low)), high(static_cast<std::int32_t>(range::high));
  ints<A> nan(0);
  if constexpr (std::same_as<typename S::nan, nan_to_max>)
    nan = simd::select(simd::bits_as<std::int32_t>(q) < ints<A>(0), low, high);
  else if constexpr (S::has_zero_point && !std::same_as<typename S::nan, nan_to_zero>)
    nan = shift.zero;
  nan = simd::min(high, simd::max(low, nan));

  if constexpr (has_intermediate<S>) q = through<typename S::rounding::intermediate>(q);
  if constexpr (range::unit != 1.f) q = simd::mul(q, floats<A>(range::unit));
  if constexpr (range::adds_before) q = simd::add(q, simd::to_float(shift.zero));
  const floats<A> limit(0x1p23f);  // beyond every code and zero point
  q = simd::min(limit, simd::max(floats<A>(-0x1p23f), q));
  return simd::select(number, shifted<S>(round_by<typename S::rounding>(q), shift), nan);
}

/// Four batches of integers to codes, one per byte.
template <class S, class A>
QTENSOR_INLINE bytes<A> narrowed(const std::array<ints<A>, 4>& r) {
  using range = counting<S>;
  if constexpr (S::code_format::is_signed) {
    const bytes<A> c = simd::narrow_i8(r[0], r[1], r[2], r[3]);
    if constexpr (range::fills_bytes || range::adds_after) return c;
    using signed_bytes = xsimd::batch<std::int8_t, A>;
    const signed_bytes low(static_cast<std::int8_t>(range::low)), high(static_cast<std::int8_t>(range::high));
    return simd::bits_as<std::uint8_t>(simd::min(high, simd::max(low, simd::bits_as<std::int8_t>(c))));
  } else {
    const bytes<A> c = simd::narrow_u8(r[0], r[1], r[2], r[3]);
    if constexpr (range::fills_bytes || range::adds_after) return c;
    const bytes<A> low(static_cast<std::uint8_t>(range::low)), high(static_cast<std::uint8_t>(range::high));
    return simd::min(high, simd::max(low, c));
  }
}

template <class S, quotient_by By, class A, class Parameters>
QTENSOR_INLINE bytes<A> counted_codes(const std::array<floats<A>, 4>& x, const Parameters& p) {
  std::array<ints<A>, 4> r;
#pragma GCC unroll 4
  for (int k = 0; k < 4; ++k) r[k] = counts<S>(quotients<S, By>(x[k], p.template divide<By>(k)), p.shift(k));
  const ints<A> worst = simd::min(simd::min(r[0], r[1]), simd::min(r[2], r[3]));
  if (simd::any(worst == ints<A>(std::numeric_limits<std::int32_t>::min()))) [[unlikely]] {
    constexpr quotient_by exact = By == quotient_by::two_products ? safe_quotient<S> : By;
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k)
      r[k] = careful_counts<S>(quotients<S, exact>(x[k], p.template divide<exact>(k)), p.shift(k));
  } else {
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) r[k] = shifted<S>(r[k], p.shift(k));
  }
  return narrowed<S>(r);
}

// ---- Minifloats ----------------------------------------------------------------------------------------------------

/// The numbers the encoder of a minifloat needs; fields are f32 exponent fields.
template <class F>
struct grid {
  static constexpr int m = F::mantissa_bits;
  static constexpr std::uint32_t smallest_field = static_cast<std::uint32_t>(128 - F::bias);  // of the smallest normal
  static constexpr std::uint32_t smallest_normal = smallest_field << 23;
  /// The value after the largest one, as f32 bits: everything above rounds there or is clamped to it.
  static constexpr std::uint32_t ceiling =
      ((((F::max_code + 1) >> m) + smallest_field - 1) << 23) | (((F::max_code + 1) & low_bits(m)) << (23 - m));
  /// What magnitude_codes has too much, modulo 256.
  static constexpr std::uint8_t bias = static_cast<std::uint8_t>((smallest_field + 23 - m) << m);
};

/// Codes of magnitudes (f32 bits), plus grid<F>::bias, modulo 256; NaN and all that overflows give max_code + 1.
///   1. the exponent, at least that of the smallest normal: subnormals share its spacing
///   2. add the power of two whose ulp is that spacing: the only rounding, at the format's last bit
///   3. the sum's lowest bits count grid steps, its exponent counts binades of 2^m codes each
/// Cost: 7, 9 more and a shift by lanes for roundings other than ties to even.
template <class F, class Rounding, class A>
QTENSOR_INLINE words<A> magnitude_codes(const words<A>& magnitude, const words<A>& negative) {
  using g = grid<F>;
  const words<A> a = simd::min(magnitude, words<A>(g::ceiling));
  const words<A> e = simd::max(a & words<A>(infinity_bits), words<A>(g::smallest_normal));
  const words<A> shifter = e + words<A>(static_cast<std::uint32_t>(23 - g::m) << 23);
  const floats<A> value = simd::bits_as<float>(a), power = simd::bits_as<float>(shifter);
  words<A> t = simd::bits_as<std::uint32_t>(value + power);
  if constexpr (!ties_to_even<Rounding>) {
    const auto above = simd::mask_as<std::uint32_t>(simd::bits_as<float>(t) - power > value);
    t = simd::select(above, t - words<A>(1u), t);  // now the lower neighbour
    const floats<A> rest = value - (simd::bits_as<float>(t) - power);
    const floats<A> half = simd::bits_as<float>(e - words<A>(static_cast<std::uint32_t>(g::m + 1) << 23));
    t = t + steps<Rounding>(negative, t & words<A>(1u), rest, half);
  }
  return t + (t >> (23 - g::m));
}

template <class S, quotient_by By, class A, class Parameters>
QTENSOR_INLINE bytes<A> minifloat_codes(const std::array<floats<A>, 4>& x, const Parameters& p) {
  using code = typename S::code_format;
  using nan = typename S::nan;
  constexpr bool saturates = std::same_as<typename S::overflow, saturate> || code::special_values == specials::none;
  // Without saturation NaN and overflow are the same code, the one after the largest value.
  constexpr bool nan_is_overflow = !saturates && !code::has_infinity && std::same_as<nan, nan_propagates>;
  std::array<words<A>, 4> magnitude, t;
  std::array<ints<A>, 4> sign;
#pragma GCC unroll 4
  for (int k = 0; k < 4; ++k) {
    floats<A> q = quotients<S, By>(x[k], p.template divide<By>(k));
    if constexpr (has_intermediate<S>) q = through<typename S::rounding::intermediate>(q);
    const words<A> bits = simd::bits_as<std::uint32_t>(q);
    magnitude[k] = bits & words<A>(magnitude_bits);
    t[k] = magnitude_codes<code, typename S::rounding>(magnitude[k], bits >> 31);
    sign[k] = simd::bits_as<std::int32_t>(bits);
  }
  const auto byte = [](std::uint32_t v) { return bytes<A>(static_cast<std::uint8_t>(v)); };
  bytes<A> c = simd::low_bytes(t[0], t[1], t[2], t[3]) - byte(grid<code>::bias);
  if constexpr (saturates) c = simd::min(c, byte(code::max_code));
  // Narrowing with saturation keeps the sign, in the top bit of each byte.
  const words<A> top =
      simd::bits_as<std::uint32_t>(simd::narrow_i8(sign[0], sign[1], sign[2], sign[3])) & words<A>(0x80808080u);
  const bytes<A> signs = simd::bits_as<std::uint8_t>(top >> (8 - code::bits));
  bytes<A> codes = c | signs;
  if constexpr (code::special_values == specials::nan_is_negative_zero) codes = simd::select(c == byte(0), c, codes);
  if constexpr (!nan_is_overflow) {
    const words<A> largest = simd::max(simd::max(magnitude[0], magnitude[1]), simd::max(magnitude[2], magnitude[3]));
    if (simd::any(largest > words<A>(infinity_bits))) [[unlikely]] {
      std::array<words<A>, 4> is_nan;
#pragma GCC unroll 4
      for (int k = 0; k < 4; ++k)
        is_nan[k] = simd::select(magnitude[k] > words<A>(infinity_bits), words<A>(0xffu), words<A>(0u));
      const bytes<A> at = simd::low_bytes(is_nan[0], is_nan[1], is_nan[2], is_nan[3]);
      bytes<A> instead = byte(0);
      if constexpr (std::same_as<nan, nan_to_max>)
        instead = byte(code::max_code) | signs;
      else if constexpr (std::same_as<nan, nan_to_opposite_zero> &&
                         code::special_values != specials::nan_is_negative_zero)
        instead = byte(code::sign_mask) & ~signs;
      else if constexpr (std::same_as<nan, nan_propagates> && code::has_nan)
        instead = code::special_values == specials::nan_is_negative_zero ? byte(code::nan_code)
                                                                         : byte(code::nan_code) | signs;
      codes = (codes & ~at) | (instead & at);
    }
  }
  return codes;
}

}  // namespace detail

/// Codes of 4 * lanes numbers, one per byte (the upper bits of narrower codes are not clean). Parameters say what to
/// divide by and which zero points to add: divide<By>(k) and shift(k) for batch k.
///
/// Cost for 4 batches on AVX-512: int8 4 * 3 + 8 (two products), e4m3 4 * 9 + 18.
template <vector_encodable S, quotient_by By, usable_arch A, class Parameters>
QTENSOR_INLINE bytes<A> encode_codes(const std::array<floats<A>, 4>& x, const Parameters& p) {
  if constexpr (detail::counting_format<typename S::code_format>)
    return detail::counted_codes<S, By>(x, p);
  else
    return detail::minifloat_codes<S, By>(x, p);
}

}  // namespace qtensor::inline QTENSOR_ABI::simd
