// Floats to codes, four batches at a time: quotients, integers and minifloats, with the policies vectors can follow.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <limits>
#include <optional>
#include <qtensor/format/table.hpp>
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

/// The steps of a format whose codes count up between powers of two, each binade with a spacing of its own, ties away
/// from zero (HiFloat8). Nothing where F is not such a format.
template <class F>
inline constexpr auto find_binade_steps = []() -> std::optional<binade_steps> {
  if constexpr (F::bits != 8 || F::is_integer || !requires { F::ties_away; } || minifloat_format<F>) {
    return std::nullopt;
  } else {
    binade_steps steps;
    const auto code_at = [](float value) -> int {  // -1 where no code has the value
      for (int i = 0; i < sorted<F>.count; ++i)
        if (sorted<F>.value(i) == value) return sorted<F>.code[static_cast<std::size_t>(i)];
      return -1;
    };
    int first = 0;  // of the positive values
    while (sorted<F>.value(first) <= 0.f) ++first;
    const int lowest = floor_log2(sorted<F>.value(first)), highest = floor_log2(static_cast<float>(F::max));
    if (highest - lowest > 60 || exp2i(lowest) != sorted<F>.value(first) || code_at(0.f) != 0) return std::nullopt;
    if (exp2i(highest) != static_cast<float>(F::max)) return std::nullopt;
    steps.low = static_cast<std::uint16_t>((lowest - 2 + 127) << 7);
    steps.high = static_cast<std::uint16_t>((highest + 127) << 7);
    for (int e = lowest - 2; e <= highest; ++e) {
      const std::size_t at = static_cast<std::size_t>(e + 127) & 63;
      if (e < lowest) {  // zero, and from half the smallest value on that
        steps.shift[at] = 15;
        steps.base[at] = static_cast<std::uint16_t>(e == lowest - 1 ? code_at(exp2i(lowest)) : 0);
        continue;
      }
      int bits = 0;  // of the mantissa: as many as have a code
      while (bits < 6 && code_at(exp2i(e) + exp2i(e - bits - 1)) >= 0) ++bits;
      const int code = code_at(exp2i(e));
      for (int k = 0; k < 1 << bits && e < highest; ++k)
        if (code_at(exp2i(e - bits) * static_cast<float>((1 << bits) + k)) != code + k) return std::nullopt;
      steps.half[at] = static_cast<std::uint16_t>(e == highest ? 0 : 1 << (6 - bits));
      steps.shift[at] = static_cast<std::uint16_t>(7 - bits);
      steps.base[at] = static_cast<std::uint16_t>(code - (((e + 127) << 7) >> (7 - bits)));
    }
    return steps;
  }
}();
/// Such formats whose negative codes have the top bit set, and whose zero has no sign.
template <class F>
concept stepped_format = find_binade_steps<F>
.has_value() && find_nan<F>() == 0x80u;

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
                                      (counting_format<F> || shiftable_format<F> || stepped_format<F>);

template <class T, class... Choices>
concept one_of = (std::same_as<T, Choices> || ...);

/// The division of S for scales that are positive and finite.
template <class Division>
struct ordinary {
  using type = Division;
};
template <class Division>
requires requires { typename Division::ordinary; }
struct ordinary<Division> {
  using type = typename Division::ordinary;
};
template <class S>
using ordinary_division = typename ordinary<typename S::division>::type;

template <class S>
inline constexpr bool has_intermediate = requires {
  typename S::rounding::intermediate;
};

template <class S>
constexpr bool vector_policies() {
  constexpr bool overflow = one_of<typename S::overflow, saturate, to_special>;
  constexpr bool nan = one_of<typename S::nan, nan_propagates, nan_to_zero, nan_to_zero_point, nan_to_max,
                              nan_to_lowest, nan_to_opposite_zero>;
  constexpr bool division = one_of<ordinary_division<S>, exact_division, reciprocal>;
  constexpr bool division_type = one_of<typename S::division_type, f32, f16, bf16>;
  constexpr bool order = one_of<typename S::zero_point_order, zp_after_round, zp_before_round>;
  // Stepped codes are made in one way only.
  constexpr bool steps = !stepped_format<typename S::code_format> ||
                         (std::same_as<typename S::overflow, saturate> && !has_intermediate<S> &&
                          one_of<typename S::rounding, nearest_away> &&
                          one_of<typename S::nan, nan_propagates, nan_to_zero, nan_to_zero_point>);
  return overflow && nan && division && division_type && order && steps;
}

}  // namespace detail

/// Schemes with a vector encoder: codes in order in an array of their own, a format of 2, 4, 6 or 8 bits with a formula
/// (integers, fixed point, minifloats, HiFloat8), a rounding that is not random, and policies of this library.
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
inline constexpr bool is_reciprocal = std::same_as<ordinary_division<S>, reciprocal>;

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
  else if constexpr (std::same_as<typename S::nan, nan_to_lowest>)
    nan = low;
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

template <class A>
QTENSOR_INLINE bytes<A> each_byte(std::uint32_t v) {
  return bytes<A>(static_cast<std::uint8_t>(v));
}

/// The signs of four batches in the top bit of codes of F.
template <class F, class A>
QTENSOR_INLINE bytes<A> sign_codes(const std::array<floats<A>, 4>& q) {
  // Narrowing with saturation keeps the sign, in the top bit of each byte.
  const auto sign = [&](int k) QTENSOR_INLINE_LAMBDA { return simd::bits_as<std::int32_t>(q[k]); };
  const bytes<A> narrow = simd::narrow_i8(sign(0), sign(1), sign(2), sign(3));
  const words<A> top = simd::bits_as<std::uint32_t>(narrow) & words<A>(0x80808080u);
  return simd::bits_as<std::uint8_t>(top >> (8 - F::bits));
}

/// Codes with those of NaN as the policy wants them.
template <class S, class A>
bytes<A> with_nans(const bytes<A>& codes, const std::array<floats<A>, 4>& q) {
  using code = typename S::code_format;
  using nan = typename S::nan;
  std::array<words<A>, 4> is_nan;
#pragma GCC unroll 4
  for (int k = 0; k < 4; ++k)
    is_nan[k] = simd::select(simd::mask_as<std::uint32_t>(q[k] == q[k]), words<A>(0u), words<A>(0xffu));
  const bytes<A> at = simd::low_bytes(is_nan[0], is_nan[1], is_nan[2], is_nan[3]), signs = sign_codes<code>(q);
  bytes<A> instead = each_byte<A>(0);
  if constexpr (minifloat_format<code>) {
    constexpr bool fnuz = code::special_values == specials::nan_is_negative_zero;
    if constexpr (std::same_as<nan, nan_to_max>)
      instead = each_byte<A>(code::max_code) | signs;
    else if constexpr (std::same_as<nan, nan_to_lowest>)
      instead = each_byte<A>(code::max_code | code::sign_mask);
    else if constexpr (std::same_as<nan, nan_to_opposite_zero> && !fnuz)
      instead = each_byte<A>(code::sign_mask) & ~signs;
    else if constexpr (std::same_as<nan, nan_propagates> && code::has_nan)
      instead = fnuz ? each_byte<A>(code::nan_code) : each_byte<A>(code::nan_code) | signs;
  } else if constexpr (std::same_as<nan, nan_propagates>) {
    instead = each_byte<A>(*find_nan<code>());
  }
  return (codes & ~at) | (instead & at);
}

template <class F>
inline constexpr minifloat_grid grid_facts{F::mantissa_bits, F::bits, grid<F>::smallest_normal,
                                           bits_of(static_cast<float>(F::max))};

template <class S, quotient_by By, class A, class Parameters>
QTENSOR_INLINE bytes<A> minifloat_codes(const std::array<floats<A>, 4>& x, const Parameters& p) {
  using code = typename S::code_format;
  constexpr bool saturates = std::same_as<typename S::overflow, saturate> || code::special_values == specials::none;
  constexpr bool fnuz = code::special_values == specials::nan_is_negative_zero;
  // Without saturation NaN and overflow are the same code, the one after the largest value.
  constexpr bool nan_is_overflow = !saturates && !code::has_infinity && std::same_as<typename S::nan, nan_propagates>;
  std::array<floats<A>, 4> q;
#pragma GCC unroll 4
  for (int k = 0; k < 4; ++k) {
    q[k] = quotients<S, By>(x[k], p.template divide<By>(k));
    if constexpr (has_intermediate<S>) q[k] = through<typename S::rounding::intermediate>(q[k]);
  }
  bytes<A> codes;
  if constexpr (saturates && !fnuz && ties_to_even<typename S::rounding> && has_signed_codes<A, grid_facts<code>>) {
    codes = simd::signed_codes<grid_facts<code>>(q[0], q[1], q[2], q[3]);
  } else {
    std::array<words<A>, 4> t;
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) {
      const words<A> bits = simd::bits_as<std::uint32_t>(q[k]);
      t[k] = magnitude_codes<code, typename S::rounding>(bits & words<A>(magnitude_bits), bits >> 31);
    }
    bytes<A> c = simd::low_bytes(t[0], t[1], t[2], t[3]) - each_byte<A>(grid<code>::bias);
    if constexpr (saturates) c = simd::min(c, each_byte<A>(code::max_code));
    codes = c | sign_codes<code>(q);
    if constexpr (fnuz) codes = simd::select(c == each_byte<A>(0), c, codes);
  }
  if constexpr (!nan_is_overflow)
    if (simd::any_nan(q[0], q[1], q[2], q[3])) [[unlikely]]
      codes = with_nans<S>(codes, q);
  return codes;
}

// ---- Stepped formats -----------------------------------------------------------------------------------------------

template <class S, quotient_by By, class A, class Parameters>
QTENSOR_INLINE bytes<A> stepped_codes(const std::array<floats<A>, 4>& x, const Parameters& p) {
  using code = typename S::code_format;
  static constexpr binade_steps steps = *find_binade_steps<code>;
  std::array<floats<A>, 4> q;
#pragma GCC unroll 4
  for (int k = 0; k < 4; ++k) q[k] = quotients<S, By>(x[k], p.template divide<By>(k));
  const auto upper = [&](int k) QTENSOR_INLINE_LAMBDA {
    return simd::upper_halves(simd::bits_as<std::uint32_t>(q[k]), simd::bits_as<std::uint32_t>(q[k + 1]));
  };
  const bytes<A> c = simd::binade_codes<A>(upper(0), upper(2), steps);
  bytes<A> codes = simd::select(c == each_byte<A>(0), c, c | sign_codes<code>(q));
  if (simd::any_nan(q[0], q[1], q[2], q[3])) [[unlikely]]
    codes = with_nans<S>(codes, q);
  return codes;
}

}  // namespace detail

/// Codes of 4 * lanes numbers, one per byte (the upper bits of narrower codes are not clean). Parameters say what to
/// divide by and which zero points to add: divide<By>(k) and shift(k) for batch k.
///
/// Cost for 4 batches on AVX-512: int8 4 * 3 + 8 (two products), e4m3 4 * 5 + 14 with VBMI, else 4 * 9 + 18.
template <vector_encodable S, quotient_by By, usable_arch A, class Parameters>
QTENSOR_INLINE bytes<A> encode_codes(const std::array<floats<A>, 4>& x, const Parameters& p) {
  if constexpr (detail::counting_format<typename S::code_format>)
    return detail::counted_codes<S, By>(x, p);
  else if constexpr (detail::stepped_format<typename S::code_format>)
    return detail::stepped_codes<S, By>(x, p);
  else
    return detail::minifloat_codes<S, By>(x, p);
}

}  // namespace qtensor::inline QTENSOR_ABI::simd
