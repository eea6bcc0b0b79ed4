// oneDNN's quantization as schemes: static with masks and groups, dynamic_mx, dynamic_fp (NUMERICS 2.2, 2.3, 5).
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <qtensor/compat/onednn_types.hpp>
#include <qtensor/reference/codec.hpp>
#include <qtensor/scheme/schemes.hpp>
#include <qtensor/simd/scales.hpp>

namespace qtensor::compat::onednn {

// ---- Static --------------------------------------------------------------------------------------------------------

namespace detail {

template <format Code, granularity G, format Scale, policy Zero>
struct quantized {
  using type = with<scheme<Code, G, scale_as<Scale>, static_only>, via_f16, to_special>;
};
template <format Code, granularity G, format Scale, policy Zero>
requires(Code::is_integer) struct quantized<Code, G, Scale, Zero> {
  using type = with<scheme<Code, G, scale_as<Scale>, Zero, static_only>, zp_before_round>;
};
template <granularity G, format Scale, policy Zero>
struct quantized<e2m1, G, Scale, Zero> {
  using type = with<scheme<e2m1, G, scale_as<Scale>, static_only>, nan_to_max>;
};

}  // namespace detail

/// A quantized argument: what `reorder` makes of f32 with a destination scale and zero point, by its document. Integers
/// differ from our static schemes in where the zero point is added: rint(clamp(x / s + zp)), so that .5 / 1 + 1 is 2.
/// FP8 codes go through f16 first and overflow to NaN or infinity; e2m1 has no NaN and gives +-6 for one.
///   mask 5: per_axes<0, 2>; groups {32, 1}: block<32, 1>; zero points of other groups: zero_point<int8, block<64, 1>>
template <format Code, granularity G, format Scale = f32, policy Zero = symmetric>
using quantized = typename detail::quantized<Code, G, Scale, Zero>::type;

/// As the default kernels: x * RN(1 / s) instead of x / s.                                 16.5 / 2.2f -> 7, not 8
template <quantization_scheme S>
using by_reciprocal = with<S, reciprocal>;

// ---- Dynamic: rules and divisions ----------------------------------------------------------------------------------

/// 2^(floor(log2 amax) - emax) as our mx_floor; an infinite amax gives a NaN.                         e4m3: 500 -> 2^0
struct power_of_two_rule {
  using slot = slot::rule;
  using statistics = absolute_maximum;
  static constexpr bool power_of_two = true;
  static constexpr fixed_string name = "onednn::power_of_two_rule";

  template <format Code, format Scale>
  static constexpr float scale(float amax, code_range codes) {
    return is_finite(amax) ? mx_floor::scale<Code, Scale>(amax, codes) : quiet_nan;
  }
};

/// amax / largest code through f16, without bounds: NaN where the scale format overflows, 0 where it underflows; 1 for
/// a block of zeros. The release 3.12.1.       e2m1 codes, e4m3 scales: 0 -> 1, 2800 -> NaN, .001 -> 0
struct float_rule {
  using slot = slot::rule;
  using statistics = absolute_maximum;
  static constexpr fixed_string name = "onednn::float_rule";

  template <format Code, format Scale>
  static constexpr float scale(float amax, code_range codes) {
    return amax == 0.f ? 1.f : decode<f16>(encode<f16, nearest_even, to_special>(amax / codes.high));
  }
};

/// amax / largest code kept between the epsilon (2^-3) and the largest number of the scale format, then through f16.
/// The 2026-08 source.                         e2m1 codes, e4m3 scales: 0 -> 2^-3, 3000 -> 448
struct clamped_float_rule {
  using slot = slot::rule;
  using statistics = absolute_maximum;
  static constexpr fixed_string name = "onednn::clamped_float_rule";

  template <format Code, format Scale>
  static constexpr float scale(float amax, code_range codes) {
    constexpr float epsilon = exp2i(-Scale::mantissa_bits);
    const float s = qtensor::detail::between(amax / codes.high, epsilon, static_cast<float>(Scale::max));
    return decode<f16>(encode<f16, nearest_even, to_special>(s));
  }
};

/// x * RN(1 / s), where NaNs keep their sign: that of x, else minus for the NaN of e8m0 scales and for 0 / 0.
struct e8m0_multiplier {
  using slot = slot::division;
  using ordinary = reciprocal;
  static constexpr fixed_string name = "onednn::e8m0_multiplier";
  static constexpr float quotient(float x, float scale, float) {
    const float q = rounded(x * rounded(1.f / scale));
    return !is_nan(q) ? q : is_nan(x) ? x : -quiet_nan;
  }
};
/// The same with the NaN of e4m3 scales, which is positive.
struct e4m3_multiplier {
  using slot = slot::division;
  using ordinary = reciprocal;
  static constexpr fixed_string name = "onednn::e4m3_multiplier";
  static constexpr float quotient(float x, float scale, float) {
    const float q = rounded(x * rounded(1.f / scale));
    return !is_nan(q) ? q : is_nan(x) ? x : is_nan(scale) ? quiet_nan : -quiet_nan;
  }
};
// ---- Dynamic: schemes ----------------------------------------------------------------------------------------------

namespace detail {

template <format Code>
using element_rounding = std::conditional_t<std::is_same_v<Code, e2m1>, nearest_even, via_f16>;

template <format Code>
struct dynamic {
  static_assert(std::is_same_v<Code, e4m3> || std::is_same_v<Code, e5m2> || std::is_same_v<Code, e2m1>,
                "qtensor: oneDNN quantizes dynamically to f8_e4m3, f8_e5m2 and f4_e2m1 (e4m3, e5m2, e2m1).");
  using mx = with<scheme<Code, mx_group<>, scale_as<e8m0>, mx_floor>, power_of_two_rule, block_ignores_nan,
                  element_rounding<Code>, nan_to_max>;
  using fp = with<scheme<Code, group<16>, scale_as<e4m3>>, block_ignores_nan, element_rounding<Code>, nan_to_max>;
  using nan = std::conditional_t<std::is_same_v<Code, e2m1>, nan_to_max, nan_propagates>;
};

}  // namespace detail

/// dynamic_mx of the release 3.12.1 into e4m3, e5m2 or e2m1, as it differs from our mx_floor schemes: codes overflow to
/// NaN or infinity (e4m3 {500, 1}: scale 7F, codes 7F, 38), an infinity makes the block's scale FF and its codes
/// negative NaNs, a NaN does not count for the scale and is its own code, FP8 codes go through f16.
template <format Code>
using dynamic_mx =
    with<typename detail::dynamic<Code>::mx, e8m0_multiplier, to_special, typename detail::dynamic<Code>::nan>;
/// dynamic_mx of the 2026-08 source: clamped to the largest number first ({500, 1}: 7E, 38); NaNs, and every element of
/// a block with an infinity, become the lowest number, as its max(a, b) is a > b ? a : b.
template <format Code>
using dynamic_mx_2026_08 = with<typename detail::dynamic<Code>::mx, reciprocal, nan_to_lowest>;

/// dynamic_fp of the release 3.12.1: groups of 16, e4m3 scales amax / largest code without bounds, as it differs from
/// our nvfp4: scale 38 for zeros, 7F and NaN codes for an amax above 464 * 6, 00 for tiny ones, whose codes are +-6,
/// and for zeros of such a block NaN (-6). NaNs do not count for the scale.
template <format Code = e2m1>
using dynamic_fp = with<typename detail::dynamic<Code>::fp, float_rule, e4m3_multiplier, to_special,
                        typename detail::dynamic<Code>::nan>;
/// dynamic_fp of the 2026-08 source: scales kept in [2^-3, 448], codes clamped, NaNs the lowest number.
template <format Code = e2m1>
using dynamic_fp_2026_08 = with<typename detail::dynamic<Code>::fp, clamped_float_rule, reciprocal, nan_to_lowest>;

}  // namespace qtensor::compat::onednn

// The same as vectors.
namespace qtensor::inline QTENSOR_ABI::simd {

template <class S, class A>
struct vector_rule<compat::onednn::power_of_two_rule, S, A> : vector_rule<mx_floor, S, A> {};

template <class S, class A>
struct vector_rule<compat::onednn::float_rule, S, A> {
  static constexpr bool enabled = !S::has_tensor_scale, bounded = false;
  static QTENSOR_INLINE floats<A> scale(const words<A>& amax, float) {
    const floats<A> s = simd::rounded_to_f16(simd::div(simd::bits_as<float>(amax), floats<A>(S::codes.high)));
    return simd::select(simd::mask_as<float>(amax == words<A>(0u)), floats<A>(1.f), s);
  }
};
template <class S, class A>
struct vector_rule<compat::onednn::clamped_float_rule, S, A> {
  static constexpr bool enabled = !S::has_tensor_scale, bounded = true;
  static QTENSOR_INLINE floats<A> scale(const words<A>& amax, float) {
    using F = typename S::scale_format;
    const floats<A> s = simd::div(simd::bits_as<float>(amax), floats<A>(S::codes.high));
    return simd::rounded_to_f16(
        simd::max(simd::min(s, floats<A>(static_cast<float>(F::max))), floats<A>(exp2i(-F::mantissa_bits))));
  }
};

}  // namespace qtensor::inline QTENSOR_ABI::simd
