// Floats to codes, four batches at a time: integers and fixed point here, and the encoder for every format.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstdint>
#include <limits>
#include <qtensor/simd/encode_list.hpp>
#include <qtensor/simd/encode_minifloat.hpp>

// Everything here equals qtensor::quantize_element bit for bit. Numbers of operations are per batch of floats.
namespace qtensor::inline QTENSOR_ABI::simd {

namespace detail {

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

/// Zero points that vectors can take: |zero| <= 2^14, of 16-bit codes 2^22, of 32-bit ones 0; with two products the
/// quotients they allow must stay within 256.
template <class S, usable_arch A>
constexpr std::array<std::int32_t, 2> regular_zero_points() {
  using range = detail::counting<S>;
  if constexpr (S::code_format::bits == 32)
    return {0, 0};
  else if constexpr (!range::adds_after)
    return {std::numeric_limits<std::int32_t>::min(), std::numeric_limits<std::int32_t>::max()};
  else if constexpr (detail::divides_by_products<S, A>)
    return {static_cast<std::int32_t>(range::high) - 256, static_cast<std::int32_t>(range::low) + 256};
  else if constexpr (S::code_format::bits > 8)
    return {-(1 << 22), 1 << 22};
  else
    return {-(1 << 14), 1 << 14};
}
template <class S, usable_arch A>
constexpr bool regular_zero_point(std::int32_t zero) {
  constexpr auto regular = regular_zero_points<S, A>();
  return zero >= regular[0] && zero <= regular[1];
}

namespace detail {

/// Quotients to integers, before a zero point is added to them: -2^31 where that is NaN or beyond 2^31.
template <class S, class A>
QTENSOR_INLINE ints<A> counts(floats<A> q, const ints<A>& zero_points) {
  using range = counting<S>;
  if constexpr (has_intermediate<S>) q = through<typename S::rounding::intermediate>(q);
  if constexpr (range::unit != 1.f) q = simd::mul(q, floats<A>(range::unit));
  if constexpr (range::adds_before) q = simd::add(q, simd::to_float(zero_points));
  return round_near_by<typename S::rounding>(q);
}

/// The same for batches that hold a NaN, an infinity or something huge, from the exact quotient; NaN becomes its code.
template <class S, class A>
QTENSOR_INLINE ints<A> careful_counts(floats<A> q, const ints<A>& zero_points) {
  using range = counting<S>;
  const auto number = simd::mask_as<std::int32_t>(q == q);
  const ints<A> low(static_cast<std::int32_t>(range::low)), high(static_cast<std::int32_t>(range::high));
  ints<A> nan(0);
  if constexpr (std::same_as<typename S::nan, nan_to_max>)
    nan = simd::select(simd::bits_as<std::int32_t>(q) < ints<A>(0), low, high);
  else if constexpr (std::same_as<typename S::nan, nan_to_lowest>)
    nan = low;
  else if constexpr (S::has_zero_point && !std::same_as<typename S::nan, nan_to_zero>)
    nan = zero_points;
  nan = simd::min(high, simd::max(low, nan));

  if constexpr (has_intermediate<S>) q = through<typename S::rounding::intermediate>(q);
  if constexpr (range::unit != 1.f) q = simd::mul(q, floats<A>(range::unit));
  if constexpr (range::adds_before) q = simd::add(q, simd::to_float(zero_points));
  const floats<A> limit(0x1p23f);  // beyond every code and zero point
  q = simd::min(limit, simd::max(floats<A>(-0x1p23f), q));
  if constexpr (range::adds_after) nan = nan - zero_points;
  return simd::select(number, round_near_by<typename S::rounding>(q), nan);
}

/// Integers to codes, one per byte, with the zero points that come after rounding.
template <class S, class A, class ZeroPoints>
QTENSOR_INLINE bytes<A> narrowed(saturated_halves<A> h, const ZeroPoints& zero_points) {
  using range = counting<S>;
  if constexpr (range::adds_after)
    h = simd::add_saturated<A>(h,
                               simd::narrow_i16<A>({zero_points(0), zero_points(1), zero_points(2), zero_points(3)}));
  const bytes<A> c = S::code_format::is_signed ? simd::narrow_i8<A>(h) : simd::narrow_u8<A>(h);
  if constexpr (range::fills_bytes) {
    return c;
  } else if constexpr (S::code_format::is_signed) {
    using signed_bytes = xsimd::batch<std::int8_t, A>;
    const signed_bytes low(static_cast<std::int8_t>(range::low)), high(static_cast<std::int8_t>(range::high));
    return simd::bits_as<std::uint8_t>(simd::min(high, simd::max(low, simd::bits_as<std::int8_t>(c))));
  } else {
    const bytes<A> low(static_cast<std::uint8_t>(range::low)), high(static_cast<std::uint8_t>(range::high));
    return simd::min(high, simd::max(low, c));
  }
}

/// The rare batches that hold a NaN, or something far beyond the codes, are seen once they are 16 bits wide.
template <class S, quotient_by By, numbers Which, class A, class Parameters>
QTENSOR_INLINE bytes<A> counted_codes(const std::array<floats<A>, 4>& x, const Parameters& p) {
  std::array<ints<A>, 4> r;
#pragma GCC unroll 4
  for (int k = 0; k < 4; ++k) r[k] = counts<S>(quotients<S, By>(x[k], p.template divide<By>(k)), p.zero_points(k));
  saturated_halves<A> h = simd::narrow_i16<A>(r);
  if constexpr (Which == numbers::any)
    if (simd::holds_lowest<A>(h)) [[unlikely]] {
      constexpr quotient_by exact = loses_edges<By> ? safe_quotient<S> : By;
#pragma GCC unroll 4
      for (int k = 0; k < 4; ++k)
        r[k] = careful_counts<S>(quotients<S, exact>(x[k], p.template divide<exact>(k)), p.zero_points(k));
      h = simd::narrow_i16<A>(r);
    }
  return narrowed<S, A>(h, [&](int k) QTENSOR_INLINE_LAMBDA { return p.zero_points(k); });
}

/// Quotients to integers of 16 bits, under regular zero points.
template <class S, class A>
QTENSOR_INLINE ints<A> codes_of_16_bits(const floats<A>& q, const ints<A>& zero) {
  using range = counting<S>;
  ints<A> code = careful_counts<S>(q, zero);
  if constexpr (range::adds_after) code = code + zero;
  return simd::min(ints<A>(static_cast<std::int32_t>(range::high)),
                   simd::max(ints<A>(static_cast<std::int32_t>(range::low)), code));
}

/// The same of 32 bits, whose zero points are 0. Floats of 2^31 and more are above all codes; those below are integers
/// near there.
template <class S, class A>
QTENSOR_INLINE ints<A> codes_of_32_bits(floats<A> q) {
  using code = typename S::code_format;
  constexpr std::int64_t highest = static_cast<std::int64_t>(code::max);
  constexpr float top = 0x1p31f, below_top = 0x1.fffffep30f;
  constexpr auto low = static_cast<std::int32_t>(static_cast<std::int64_t>(S::codes.low));
  constexpr auto high =
      static_cast<std::int32_t>(S::codes.high >= top ? highest : static_cast<std::int64_t>(S::codes.high));
  const auto number = simd::mask_as<std::int32_t>(q == q);
  ints<A> nan(std::clamp(0, low, high));
  if constexpr (std::same_as<typename S::nan, nan_to_max>)
    nan = simd::select(simd::bits_as<std::int32_t>(q) < ints<A>(0), ints<A>(low), ints<A>(high));
  else if constexpr (std::same_as<typename S::nan, nan_to_lowest>)
    nan = ints<A>(low);
  if constexpr (has_intermediate<S>) q = through<typename S::rounding::intermediate>(q);
  const auto above = simd::mask_as<std::int32_t>(q >= floats<A>(top));
  const floats<A> inside = simd::min(floats<A>(below_top), simd::max(floats<A>(-top), q));
  const ints<A> r = simd::select(above, ints<A>(high), round_by<typename S::rounding>(inside));
  return simd::select(number, simd::min(ints<A>(high), simd::max(ints<A>(low), r)), nan);
}

/// Quotients to bf16 or f16, as bits. NaN are rare: where bf16 takes no instruction of its own, numbers without any
/// take half as many.
template <class S, class A>
QTENSOR_INLINE halves<A> float_codes(const std::array<floats<A>, 2>& q) {
  using code = typename S::code_format;
  const auto inside = [](const floats<A>& v) QTENSOR_INLINE_LAMBDA {  // NaN stay
    if constexpr (!std::same_as<typename S::overflow, saturate>) return v;
    return simd::min(floats<A>(code::max), simd::max(floats<A>(code::min), v));
  };
  const floats<A> a = inside(q[0]), b = inside(q[1]);
  if constexpr (std::same_as<code, f16>) {
    return simd::narrow_f16(a, b);
  } else {
    const auto numbers = [](const floats<A>& v) QTENSOR_INLINE_LAMBDA { return simd::mask_as<std::int32_t>(v == v); };
    if constexpr (!plain_is_normal<A>)
      if (simd::all(numbers(a) & numbers(b))) [[likely]]
        return simd::narrow_bf16_plain(a, b);
    return simd::narrow_bf16(a, b);
  }
}

}  // namespace detail

/// The codes of two batches, k and k + 1 of the parameters, by a quotient that is right for them and under regular zero
/// points, to to[0, 2 * lanes), past the caches on demand.
template <wide_encodable S, quotient_by By, usable_arch A, class Parameters, class Unit>
QTENSOR_INLINE void store_wide(const std::array<floats<A>, 2>& x, const Parameters& p, int k, Unit* to,
                               bool past_caches) {
  using code = typename S::code_format;
  const std::array<floats<A>, 2> q{quotients<S, By>(x[0], p.template divide<By>(k)),
                                   quotients<S, By>(x[1], p.template divide<By>(k + 1))};
  if constexpr (code::bits == 32) {
    static_assert(sizeof(Unit) == 4);
    auto* const each = reinterpret_cast<std::int32_t*>(to);
    simd::put(each, detail::codes_of_32_bits<S>(q[0]), past_caches);
    simd::put(each + lanes<A>, detail::codes_of_32_bits<S>(q[1]), past_caches);
  } else {
    static_assert(sizeof(Unit) == 2);
    auto* const each = reinterpret_cast<std::uint16_t*>(to);
    if constexpr (code::is_integer) {
      const auto bits = [&](std::size_t i) QTENSOR_INLINE_LAMBDA {
        const ints<A> c = detail::codes_of_16_bits<S>(q[i], p.zero_points(k + static_cast<int>(i)));
        return simd::bits_as<std::uint32_t>(c);
      };
      simd::put(each, simd::low_halves<A>(bits(0), bits(1)), past_caches);
    } else {
      simd::put(each, detail::float_codes<S>(q), past_caches);
    }
  }
}

/// Codes of 4 * lanes numbers, one per byte (the upper bits of narrower codes are not clean). Parameters say what to
/// divide by and which zero points to add: divide<By>(k) and zero_points(k) for batch k.
///
/// Cost for 4 batches on AVX-512: int8 4 * 3 + 8 (two products), e4m3 4 * 5 + 7 with VBMI, else 4 * 9 + 18; under a
/// scale 4 * 3 more.
template <vector_encodable S, quotient_by By, usable_arch A, numbers Which = numbers::any, class Parameters>
QTENSOR_INLINE bytes<A> encode_codes(const std::array<floats<A>, 4>& x, const Parameters& p) {
  if constexpr (By == quotient_by::moved_grid)
    return detail::codes_on_moved_grid<S>(x, p);
  else if constexpr (detail::counting_format<typename S::code_format>)
    return detail::counted_codes<S, By, Which>(x, p);
  else if constexpr (detail::stepped_format<typename S::code_format>)
    return detail::stepped_codes<S, By, Which>(x, p);
  else if constexpr (detail::listed_format<typename S::code_format>)
    return detail::listed_codes<S, By>(x, p);
  else
    return detail::minifloat_codes<S, By, Which>(x, p);
}

}  // namespace qtensor::inline QTENSOR_ABI::simd
