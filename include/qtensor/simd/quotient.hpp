// Numbers over their scales, and roundings by any policy: what every encoder begins with.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <concepts>
#include <cstdint>
#include <qtensor/simd/encodable.hpp>
#include <qtensor/simd/ops_codes.hpp>
#include <qtensor/simd/ops_halves.hpp>

namespace qtensor::inline QTENSOR_ABI::simd {

/// How x / s is computed. `nothing`: s is 1. `inverse`: x * (1 / s), exact where 1 / s is a normal power of two, and
/// the rule of the policy `reciprocal`. `two_products`: fma(x, r, x * r') with r + r' = 1 / s to twice the precision:
/// it lies below, at and above the half-integers under 256, and their products with powers of two, where IEEE's
/// quotient does (tests/simd/encode_exhaustive.cpp tries every mantissa of s at every half-integer and its neighbours),
/// so that integers and short mantissas are rounded alike, for s in [2^-100, 2^100); an infinite x gives infinity or
/// NaN; where numbers have 16 bits, `inverse` is as good for most scales (one_product_is_exact). `corrected`: x * (1 /
/// s) and what that leaves, twice, which is IEEE's quotient (Markstein: of a faithful quotient and RN(1 / s) the
/// correction is rounded correctly) for s in [2^-50, 2^100), but where it is below 2^-50 or overflows: NaN then, and
/// zeros may lose their sign. `moved_grid`: x stays as it is, and codes are read off a grid that was multiplied by s, a
/// power of two; for fitting numbers only. `moved_halves`: the same for numbers of bf16 as they are.
enum class quotient_by { nothing, division, inverse, two_products, corrected, moved_grid, moved_halves };
/// Those whose infinities may be NaN, and whose signs are to be taken from x.
template <quotient_by By>
inline constexpr bool loses_edges = By == quotient_by::two_products || By == quotient_by::corrected;

/// What is known of the numbers to encode. `fitting`: they are finite and their codes need no saturation by more than a
/// step, as after a scale that a rule made of their largest magnitude (block_scales says when); or a code does not
/// matter.
enum class numbers { any, fitting };

namespace detail {

/// Divisions that make an inverse of their own of scale and tensor scale.
template <class S>
inline constexpr bool has_own_inverse = vector_inverse<typename S::division, best_arch>::enabled;

template <class S>
inline constexpr bool is_reciprocal = std::same_as<ordinary_division<S>, reciprocal> || has_own_inverse<S>;

/// Roundings that make other numbers of quotients first.
template <class S>
inline constexpr bool changes_quotients = has_before<typename S::rounding, typename S::code_format>;

template <class A>
inline constexpr bool has_fma_unit =
    std::same_as<A, avx512_arch> || std::same_as<A, avx2_arch> || std::same_as<A, neon_arch>;

/// How many half-integers stand for the middles between neighbouring values of S, powers of two aside; 0 where its
/// roundings ask for more than on which side of a middle a quotient lies.
template <class S>
constexpr int middle_count() {
  using code = typename S::code_format;
  if constexpr (has_intermediate<S> || changes_quotients<S> || !decides_at_middles<typename S::rounding>)
    return 0;
  else if constexpr (counting_format<code>)
    return S::has_zero_point || !code::is_signed ? 256 : 128;
  else if constexpr (stepped_format<code>)
    return 16;  // at most three bits of mantissa
  else if constexpr (minifloat_format<code>)
    return code::mantissa_bits < 7 ? 2 << code::mantissa_bits : 0;
  else
    return 0;
}

/// Whether the cheap exact division is allowed for codes of S at all; regular_divisors says for which scales.
template <class S, class A>
inline constexpr bool divides_by_products =
    has_fma_unit<A> && !is_reciprocal<S> && middle_count<S>() > 0 && std::same_as<typename S::division_type, f32> &&
    !std::same_as<typename S::scale_format, e8m0> &&
    (!S::has_zero_point || std::same_as<typename S::zero_point_order, zp_after_round>);

/// Whether every quotient of codes of S below 2^-50 is 0 in the end, or on a side of it, so that IEEE's may be had by
/// `corrected`.
template <class S, class A>
constexpr bool corrects_products() {
  using code = typename S::code_format;
  constexpr bool near_zero_is_zero = [] {
    if constexpr (minifloat_format<code>)
      return 1 - code::bias - code::mantissa_bits > -40;
    else
      return counting_format<code>;
  }();
  return has_fma_unit<A> && !is_reciprocal<S> && !divides_by_products<S, A> && near_zero_is_zero && code::bits <= 8 &&
         find_side<typename S::rounding>.has_value() && !changes_quotients<S> &&
         !std::same_as<typename S::scale_format, e8m0>;
}

/// Whether a number that is no tie gets the nearest code, a tie the even one or the one away from zero.
template <class S>
inline constexpr bool rounds_to_nearest = ties_to_even<typename S::rounding> || ties_away<typename S::rounding>;

/// Whether codes of S can be read off a moved grid, where numbers fit their scales.
template <class S>
constexpr bool moves_grid() {
  using code = typename S::code_format;
  if constexpr (shiftable_format<code> && deterministic_rounding<typename S::rounding>)
    return std::same_as<typename S::scale_format, e8m0> && !S::has_tensor_scale && rounds_to_nearest<S> &&
           !has_intermediate<S> && !changes_quotients<S> && std::same_as<typename S::division_type, f32> &&
           one_of<ordinary_division<S>, exact_division, reciprocal> &&
           code::special_values != specials::nan_is_negative_zero &&
           (std::same_as<typename S::overflow, saturate> || code::special_values == specials::none);
  else
    return false;
}

/// Codes so few that a table knows them by where a bf16 number lies.
template <class Code, class A>
inline constexpr bool looks_bf16_up = looks_up_intervals<A, grid_facts<Code>> || std::same_as<Code, e2m1>;

/// Whether bf16 numbers that fit become codes of S as they are, where that is the faster way: codes are looked up, or
/// numbers are seldom subnormal, so much smaller than the largest one of their scale.
template <class S, class A, class From>
constexpr bool moves_halves() {
  if constexpr (codes_halves<A> && std::same_as<From, from_bf16> && moves_grid<S>()) {
    if (!ties_to_even<typename S::rounding>) return false;  // their last bit counts
    using code = typename S::code_format;
    constexpr std::uint32_t many_binades = 12u << 23;
    return looks_bf16_up<code, A> || grid_facts<code>.largest - grid_facts<code>.smallest_normal > many_binades;
  } else {
    return false;
  }
}

/// The right quotient whatever the scale.
template <class S>
inline constexpr quotient_by safe_quotient = is_reciprocal<S> ? quotient_by::inverse : quotient_by::division;

/// The fast one, for regular divisors.
template <class S, class A>
inline constexpr quotient_by fast_quotient = divides_by_products<S, A>   ? quotient_by::two_products
                                             : corrects_products<S, A>() ? quotient_by::corrected
                                                                         : quotient_by::inverse;

/// The one for numbers that fit their scales: powers of two that can move the grid, else regular divisors.
template <class S, class A>
inline constexpr quotient_by fitting_quotient = moves_grid<S>() ? quotient_by::moved_grid : fast_quotient<S, A>;

/// The same where neighbours share their scales.
template <class S, class A, class From>
inline constexpr quotient_by fitting_run_quotient = moves_halves<S, A, From>() ? quotient_by::moved_halves
                                                                               : fitting_quotient<S, A>;

}  // namespace detail

/// What a batch of numbers is divided by, one scale per lane, in the form that `By` wants.
template <quotient_by By, usable_arch A>
struct divisor {
  floats<A> value;  ///< the scale, or its inverse
};
template <usable_arch A>
struct divisor<quotient_by::nothing, A> {};
template <usable_arch A>
struct divisor<quotient_by::two_products, A> {
  floats<A> value;  ///< r = RN(1 / s)
  floats<A> rest;   ///< r' = RN((1 - s * r) / s); times r instead is not good enough (s = 2 - 2^-23, x = 1)
};
template <usable_arch A>
struct divisor<quotient_by::corrected, A> {
  floats<A> value;  ///< RN(1 / s)
  floats<A> rest;   ///< -s
};
template <usable_arch A>
struct divisor<quotient_by::moved_grid, A> {
  floats<A> value;  ///< the smallest normal number of the grid
  floats<A> rest;   ///< its bias, as moved_codes wants it
};
template <usable_arch A>
struct divisor<quotient_by::moved_halves, A> {
  floats<A> value;  ///< twice in its bits: where the grid begins, as bf16_codes wants it
};
/// Divisors of two parts.
template <quotient_by By>
inline constexpr bool has_rest = loses_edges<By> || By == quotient_by::moved_grid;

namespace detail {

/// What arithmetic made of a and b; a NaN is negative where neither of them is one, as x86 has it (core/support.hpp).
/// Cost: nothing on x86, else 6.
template <usable_arch A>
QTENSOR_INLINE floats<A> with_invalid_negative(const floats<A>& made, [[maybe_unused]] const floats<A>& a,
                                               [[maybe_unused]] const floats<A>& b) {
#if defined(__x86_64__)
  return made;
#else
  const auto numbers = simd::mask_as<std::uint32_t>(a == a) & simd::mask_as<std::uint32_t>(b == b);
  const words<A> sign = simd::select(numbers, words<A>(sign_bit), words<A>(0u));
  const words<A> bits = simd::bits_as<std::uint32_t>(made);
  return simd::bits_as<float>(simd::select(simd::mask_as<std::uint32_t>(made == made), bits, bits | sign));
#endif
}

/// Whether codes may tell a negative NaN from a positive one.
template <class S>
inline constexpr bool tells_nans_apart =
    minifloat_format<typename S::code_format> || one_of<typename S::code_format, bf16, f16> ||
    std::same_as<typename S::nan, nan_to_max>;

}  // namespace detail

/// The number S divides by: the scale times the tensor's.
template <class S, usable_arch A>
QTENSOR_INLINE floats<A> whole_scale(const floats<A>& scale, float tensor_scale) {
  if constexpr (S::has_tensor_scale)
    return detail::with_invalid_negative(simd::mul(scale, floats<A>(tensor_scale)), scale, floats<A>(tensor_scale));
  else
    return scale;
}

/// Scales made ready for `By`. Cost: `inverse` and `corrected` a division, `two_products` two, `moved_grid` 6,
/// `moved_halves` 5.
template <class S, quotient_by By, usable_arch A>
QTENSOR_INLINE divisor<By, A> divisor_of(const floats<A>& scale, float tensor_scale) {
  const floats<A> one(1.f);
  if constexpr (By == quotient_by::nothing) {
    return {};
  } else if constexpr (By == quotient_by::division) {
    return {whole_scale<S>(scale, tensor_scale)};
  } else if constexpr (By == quotient_by::moved_grid) {
    const auto grid =
        simd::grid_times<detail::grid_facts<typename S::code_format>>(simd::bits_as<std::uint32_t>(scale));
    return {grid.normal, grid.bias};
  } else if constexpr (By == quotient_by::moved_halves) {
    return {simd::bits_as<float>(
        simd::grid_begins_at<detail::grid_facts<typename S::code_format>>(simd::bits_as<std::uint32_t>(scale)))};
  } else if constexpr (detail::has_own_inverse<S>) {
    return {vector_inverse<typename S::division, A>::of(scale, S::has_tensor_scale ? tensor_scale : 1.f)};
  } else if constexpr (detail::is_reciprocal<S>) {
    if constexpr (S::has_tensor_scale)
      return {detail::with_invalid_negative(simd::div(floats<A>(1.f / tensor_scale), scale), floats<A>(tensor_scale),
                                            scale)};
    else
      return {simd::div(one, scale)};
  } else if constexpr (By == quotient_by::inverse) {
    return {simd::div(one, whole_scale<S>(scale, tensor_scale))};
  } else {
    const floats<A> s = whole_scale<S>(scale, tensor_scale), r = simd::div(one, s);
    const floats<A> minus_s = simd::bits_as<float>(simd::bits_as<std::uint32_t>(s) ^ words<A>(sign_bit));
    if constexpr (By == quotient_by::corrected)
      return {r, minus_s};
    else
      return {r, simd::div(simd::fma(minus_s, r, one), s)};
  }
}

/// The lanes whose scale allows the fast quotient: any for `reciprocal`; [2^-100, 2^100) for two products, [2^-50,
/// 2^100) for corrected ones, up to 1 for roundings to one side; powers of two whose inverse is a normal number for
/// `inverse`. Encoders of integers see where x * r' overflows, which may be of the other sign, and those of minifloats
/// take signs from x; for others scales are no smaller than 2^-24, unless numbers fit.
template <class S, numbers Which = numbers::any, usable_arch A>
QTENSOR_INLINE auto regular_divisors(const floats<A>& scale, float tensor_scale) {
  const words<A> bits = simd::bits_as<std::uint32_t>(whole_scale<S>(scale, tensor_scale));
  if constexpr (detail::is_reciprocal<S>) {
    return bits == bits;
  } else if constexpr (detail::fast_quotient<S, A> == quotient_by::two_products) {
    constexpr bool sees_all = Which == numbers::fitting || !detail::stepped_format<typename S::code_format>;
    constexpr std::uint32_t low = (127u - (sees_all ? 100u : 24u)) << 23, high = (127u + 100u) << 23;
    return bits - words<A>(low) < words<A>(high - low);
  } else if constexpr (detail::fast_quotient<S, A> == quotient_by::corrected) {
    // What goes to one side may not vanish: no quotient is smaller than its number then.
    constexpr std::uint32_t low = (127u - 50u) << 23;
    constexpr std::uint32_t high = detail::is_directed<typename S::rounding> ? (127u << 23) + 1 : (127u + 100u) << 23;
    return bits - words<A>(low) < words<A>(high - low);
  } else {
    constexpr std::uint32_t subnormal = 0x00400000u, low = 0x00800000u, high = 0x7f000000u;  // 2^-127, 2^-126, 2^127
    const auto power = (bits & words<A>(low_bits(23))) == words<A>(0u);
    return (power & (bits - words<A>(low) < words<A>(high - low))) | (bits == words<A>(subnormal));
  }
}

namespace detail {

/// How many of the lowest bits of a float are 0 where it was widened from `From`.
template <float_source From>
inline constexpr int free_bits = std::same_as<From, from_bf16>  ? 16
                                 : std::same_as<From, from_f16> ? 13
                                                                : 0;

/// Whether x * (1 / s) and x / s round to the same integer, up to `most` of it, for every x that `From` reads: they can
/// differ only where x lies within 2^-22.9 of a half-integer times s, which few scales have. s in [2^-100, 2^100).
/// Cost: 5 for `lanes` half-integers.
template <float_source From, usable_arch A>
bool one_product_is_exact(float s, int most) {
  constexpr std::uint32_t near = 4;  // units in the last place, that of s * half included
  alignas(64) std::array<float, static_cast<std::size_t>(lanes<A>)> first;
  for (std::size_t i = 0; i < first.size(); ++i) first[i] = static_cast<float>(i) + 0.5f;
  auto close = words<A>(0u) == words<A>(1u);
  floats<A> half = simd::load<A>(first.data());
  for (int h = 0; h < most; h += static_cast<int>(lanes<A>)) {
    const words<A> bits = simd::bits_as<std::uint32_t>(simd::mul(half, floats<A>(s)));
    close = close | simd::below((bits + words<A>(near)) & words<A>(low_bits(free_bits<From>)), words<A>(2 * near + 1));
    half = simd::add(half, floats<A>(static_cast<float>(lanes<A>)));
  }
  return !simd::any(close);
}

/// x rounded to f16 or bf16 (ties to even, overflow to infinity), as floats.
template <class F, class A>
QTENSOR_INLINE floats<A> through(const floats<A>& x) {
  if constexpr (std::same_as<F, f16>)
    return simd::rounded_to_f16(x);
  else if constexpr (std::same_as<F, bf16>)
    return simd::rounded_to_bf16(x);
  else
    return x;
}

}  // namespace detail

/// x over its scale as S wants it, rounded to the division's type, and what its rounding makes of that before it
/// rounds. Cost: 1 (division: a divide), two products 2, corrected 5.
template <class S, quotient_by By, usable_arch A>
QTENSOR_INLINE floats<A> quotients(const floats<A>& x, const divisor<By, A>& d) {
  floats<A> q;
  if constexpr (By == quotient_by::nothing)
    q = x;
  else if constexpr (By == quotient_by::division)
    q = simd::div(x, d.value);
  else if constexpr (By == quotient_by::inverse)
    q = simd::mul(x, d.value);
  else if constexpr (By == quotient_by::corrected) {
    q = simd::mul(x, d.value);
    q = simd::fma(simd::fma(d.rest, q, x), d.value, q);
    q = simd::fma(simd::fma(d.rest, q, x), d.value, q);
  } else
    q = simd::fma(x, d.value, simd::mul(x, d.rest));
  if constexpr (By == quotient_by::division || By == quotient_by::inverse)
    if constexpr (detail::tells_nans_apart<S>) q = detail::with_invalid_negative(q, x, d.value);
  q = detail::through<typename S::division_type>(q);
  if constexpr (detail::changes_quotients<S>)
    if constexpr (vector_before<typename S::rounding, typename S::code_format, A>::enabled)
      q = vector_before<typename S::rounding, typename S::code_format, A>::of(q);
  return q;
}

namespace detail {

/// Bytes of four batches: all bits where a number is NaN, else 0.
template <class A>
QTENSOR_INLINE bytes<A> bytes_of_nans(const std::array<floats<A>, 4>& q) {
  std::array<words<A>, 4> is_nan;
#pragma GCC unroll 4
  for (int k = 0; k < 4; ++k)
    is_nan[k] = simd::select(simd::mask_as<std::uint32_t>(q[k] == q[k]), words<A>(0u), words<A>(0xffu));
  return simd::low_bytes(is_nan[0], is_nan[1], is_nan[2], is_nan[3]);
}

}  // namespace detail

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

/// Numbers that ties to even takes where Rounding takes x: ties are followed by numbers away from zero. Numbers of a
/// grid and their middles have a last bit of 0, so that nothing else changes sides once it is set: integers up to 2^22,
/// and minifloats. Zeros stay: a subnormal number instead would cost many CPUs a hundred cycles. Infinities stay what
/// they are among any numbers. Cost: 2 or 3 for ties away, 2 more of any numbers.
template <class Rounding, numbers Which = numbers::fitting, class A>
QTENSOR_INLINE floats<A> past_ties(const floats<A>& x) {
  if constexpr (!ties_away<Rounding>) return x;
  const floats<A> past = simd::bits_as<float>(simd::with_last_bit(simd::bits_as<std::uint32_t>(x)));
  if constexpr (Which == numbers::fitting)
    return past;
  else
    return simd::select(
        simd::bits_as<float>(simd::bits_as<std::uint32_t>(x) & words<A>(magnitude_bits)) == floats<A>(infinity), x,
        past);
}
/// Rounding after past_ties.
template <class Rounding>
using rounding_past_ties = std::conditional_t<ties_away<Rounding>, nearest_even, Rounding>;

/// x rounded to an integer, |x| < 2^31; NaN gives -2^31. Cost: 1 for ties to even, 2 to 4 to one side.
template <class Rounding, class A>
QTENSOR_INLINE ints<A> round_by(const floats<A>& x) {
  if constexpr (ties_to_even<Rounding>) {
    return simd::round_to_int_checked(x);
  } else if constexpr (find_side<Rounding> == goes::toward_zero) {
    return simd::round_to_int_checked(simd::truncate(x));
  } else if constexpr (find_side<Rounding> == goes::down) {
    return simd::round_to_int_checked(simd::floor(x));
  } else if constexpr (find_side<Rounding> == goes::up) {
    const auto turned = [](const floats<A>& v) QTENSOR_INLINE_LAMBDA {
      return simd::bits_as<float>(simd::bits_as<std::uint32_t>(v) ^ words<A>(sign_bit));
    };
    return simd::round_to_int_checked(turned(simd::floor(turned(x))));
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
/// The same where |x| < 2^22; beyond that something as large, or -2^31. Cost: 1 for ties to even, 2 for ties away.
template <class Rounding, class A>
QTENSOR_INLINE ints<A> round_near_by(const floats<A>& x) {
  return round_by<rounding_past_ties<Rounding>>(past_ties<Rounding>(x));
}

}  // namespace detail

}  // namespace qtensor::inline QTENSOR_ABI::simd
