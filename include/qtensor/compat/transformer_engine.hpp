// TransformerEngine: its reference NVFP4 quantizer, with two levels of scales or with powers of two (NUMERICS 2.4).
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <qtensor/ops/parallel.hpp>
#include <qtensor/scheme/schemes.hpp>
#include <qtensor/simd/log2.hpp>
#include <qtensor/simd/scales.hpp>

namespace qtensor::compat::transformer_engine {

/// Encode scale of the tensor e = 448 * 6 / amax, at most FLT_MAX (1 where it underflows to 0); tensor scale 1 / e;
/// block scale amax * (e * (1 / 6)), at most 448, without a lower bound: a block far below the tensor has scale 0.
/// Tensor of 3000, block of 6: 36.
struct nvfp4_rule {
  using slot = slot::rule;
  using statistics = absolute_maximum;
  static constexpr fixed_string name = "transformer_engine::nvfp4_rule";

  template <format Code, format Scale>
  static constexpr float scale(float amax, code_range codes, float encode_scale) {
    const float s = rounded(amax * rounded(encode_scale * rounded(1.f / codes.high)));
    return s > static_cast<float>(Scale::max) ? static_cast<float>(Scale::max) : s;  // a NaN stays
  }
  static constexpr float tensor_term(float tensor_amax, code_range codes) {
    constexpr float most = std::numeric_limits<float>::max();
    const float e = 448.f * codes.high / tensor_amax;
    return e == 0.f ? 1.f : e > most ? most : e;
  }
  template <format Code, format Scale>
  static constexpr float tensor_scale(float tensor_amax, code_range codes) {
    return 1.f / tensor_term(tensor_amax, codes);
  }
};

/// 2^ceil(log2f(amax / 6)), exponents kept in [-127, 127]; log2f as it rounds.             6.0000005 -> 2^1, 0 ->
/// 2^-127
struct power_of_two_rule {
  using slot = slot::rule;
  using statistics = absolute_maximum;
  static constexpr bool power_of_two = true;
  static constexpr fixed_string name = "transformer_engine::power_of_two_rule";

  template <format Code, format Scale>
  static constexpr float scale(float amax, code_range codes) {
    const float s = amax / codes.high;
    if (is_nan(s)) return s;
    if (s == 0.f) return exp2i(-127);
    if (s == infinity) return exp2i(127);
    return exp2i(qtensor::detail::between(qtensor::detail::ceil_of_log2f(s), -127, 127));
  }
};

/// x * min(1 / (block scale * tensor scale), FLT_MAX): codes of a block of scale 0 are +-max or 0.
struct capped_reciprocal {
  using slot = slot::division;
  static constexpr fixed_string name = "transformer_engine::capped_reciprocal";
  static constexpr float quotient(float x, float scale, float tensor_scale) {
    constexpr float most = std::numeric_limits<float>::max();
    const float inverse = 1.f / rounded(scale * tensor_scale);
    return rounded(x * rounded(inverse > most ? most : inverse));
  }
};

/// Ties to even; -0 becomes +0, while what rounds to zero from below is -0.                            -0.2 -> -0, -0
/// -> 0
struct nearest_even_without_minus_zero {
  using slot = slot::rounding;
  static constexpr fixed_string name = "transformer_engine::nearest_even_without_minus_zero";
  static constexpr bool up(bool negative, bool odd, remainder r) { return nearest_even::up(negative, odd, r); }
  template <format F>
  static constexpr float before(float x) {
    return x + 0.f;
  }
};

/// Two levels of scales over groups of 16; infinities and NaNs run through the formulas of their blocks and do not
/// count for the scale of the tensor; a NaN element is code 0.
using nvfp4 = scheme<e2m1, group<16>, scale_as<e4m3>, tensor_scale<f32>, nvfp4_rule, nearest_even_without_minus_zero,
                     nan_to_zero, block_literal, capped_reciprocal>;
/// The same over 16 x 16 blocks, as for weights. TransformerEngine repeats a block's scale for each of its rows.
using nvfp4_2d = with<nvfp4, block<16, 16>>;
/// pow_2_scales: one level, powers of two.
using nvfp4_powers = scheme<e2m1, group<16>, scale_as<e8m0>, power_of_two_rule, nearest_even_without_minus_zero,
                            nan_to_zero, block_literal, capped_reciprocal>;
using nvfp4_powers_2d = with<nvfp4_powers, block<16, 16>>;

/// Quantizes below the largest magnitude of a tensor that is known already (`global_amax`: of an earlier step, or of
/// all ranks): S is nvfp4 or nvfp4_2d. 0 counts as in nvfp4_rule. on(executor) may come last.
template <quantization_scheme S = nvfp4, format F, tensor_extents Extents, qtensor::detail::execution_option... On>
tensor<S, Extents> quantize(const memory_source<F, Extents>& x, float global_amax, const On&... on) {
  static_assert(S::has_tensor_scale,
                "qtensor: powers of two have one level of scales: quantize<S>(source) needs no amax.");
  return qtensor::quantize<S>(x, tensor_level::of<S>(global_amax), on...);
}

}  // namespace qtensor::compat::transformer_engine

// The same as vectors.
namespace qtensor::inline QTENSOR_ABI::simd {

template <class S, class A>
struct vector_rule<compat::transformer_engine::nvfp4_rule, S, A> {
  static constexpr bool enabled = S::has_tensor_scale, bounded = false;
  static QTENSOR_INLINE floats<A> scale(const words<A>& amax, float encode_scale) {
    const floats<A> factor(qtensor::rounded(encode_scale * qtensor::rounded(1.f / S::codes.high)));
    return simd::min(simd::mul(simd::bits_as<float>(amax), factor),
                     floats<A>(static_cast<float>(S::scale_format::max)));
  }
};

template <class S, class A>
struct vector_rule<compat::transformer_engine::power_of_two_rule, S, A> {
  static constexpr bool enabled = std::same_as<typename S::scale_format, e8m0>, bounded = true;
  static QTENSOR_INLINE floats<A> scale(const words<A>& amax, float) {
    const words<A> s = simd::bits_as<std::uint32_t>(simd::div(simd::bits_as<float>(amax), floats<A>(S::codes.high)));
    return detail::power_of_log2<A>(s, simd::ceil_of_log2f<A>(s), -127);
  }
};

template <class A>
struct vector_inverse<compat::transformer_engine::capped_reciprocal, A> {
  static constexpr bool enabled = true;
  static QTENSOR_INLINE floats<A> of(const floats<A>& scale, float tensor_scale) {
    const floats<A> most(std::numeric_limits<float>::max());
    const floats<A> inverse = simd::div(floats<A>(1.f), simd::mul(scale, floats<A>(tensor_scale)));
    return simd::select(inverse > most, most, inverse);
  }
};

template <class Code, class A>
struct vector_before<compat::transformer_engine::nearest_even_without_minus_zero, Code, A> {
  static constexpr bool enabled = true;
  static QTENSOR_INLINE floats<A> of(const floats<A>& x) { return simd::add(x, floats<A>(0.f)); }
};

}  // namespace qtensor::inline QTENSOR_ABI::simd
