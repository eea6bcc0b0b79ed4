// microxcaling: its MX emulation library's shared exponents and element roundings (NUMERICS 2.1, 10).
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <qtensor/scheme/schemes.hpp>
#include <qtensor/simd/log2.hpp>
#include <qtensor/simd/scales.hpp>

namespace qtensor::compat::microxcaling {

/// 2^(floor(log2f(amax)) - emax), at least 2^-127; NaN above 2^127. log2f is taken in f32, so that what lies a few ulps
/// below a power of two counts as that power; a block of zeros counts as 2^-126.        e4m3: 1.9 -> 2^-8, 0 -> 2^-127
struct shared_exponent {
  using slot = slot::rule;
  using statistics = absolute_maximum;
  static constexpr bool power_of_two = true;
  static constexpr fixed_string name = "microxcaling::shared_exponent";

  template <format Code, format Scale>
  static constexpr float scale(float amax, code_range) {
    const int e = (amax == 0.f ? -126 : qtensor::detail::floor_of_log2f(amax)) - max_exponent<Code>;
    return e > 127 ? quiet_nan : exp2i(e < -127 ? -127 : e);
  }
};

/// flush_fp32_subnorms: codes are +0 where the shared exponent of the block, before emax, is -127 or less.
struct flush_subnormals {
  using slot = slot::subnormal_amax;
  static constexpr bool leaves_normal_numbers = true;
  static constexpr fixed_string name = "microxcaling::flush_subnormals";
  static constexpr bool flushes(std::uint32_t amax_bits) {
    return amax_bits != 0 && amax_bits < infinity_bits && qtensor::detail::floor_of_log2f(float_of(amax_bits)) <= -127;
  }
};

/// The elements' own arithmetic: they are shifted to integers of a few bits and rounded there by floor(x + 0.5) in f32,
/// which takes the largest float below 0.5 for more than 0.5; -0 becomes +0, while what rounds to zero from below is
/// -0; their exponents are floor(log2f(|x|)), which takes numbers a few ulps below a power of two for that power, so
/// that truncation reaches down a whole step more.
template <format F>
struct element_grid {
  static constexpr int fraction_bits = [] {
    if constexpr (minifloat_format<F>)
      return F::mantissa_bits;
    else
      return F::fraction_bits;
  }();
  /// Exponent of the smallest step: of subnormals, or of a fixed-point format's only step.
  static constexpr int lowest_step = [] {
    if constexpr (minifloat_format<F>)
      return 1 - F::bias - F::mantissa_bits;
    else
      return -F::fraction_bits;
  }();

  /// The largest float below half a step becomes the smallest one above it.
  static constexpr float before_nearest(float x) {
    constexpr float half = exp2i(lowest_step - 1);
    const std::uint32_t sign = bits_of(x) & sign_bit;
    return (bits_of(x) & magnitude_bits) == bits_of(half) - 1 ? float_of((bits_of(half) + 1) | sign) : x + 0.f;
  }
  /// What counts as the power above it is truncated on that power's grid.
  static constexpr float before_truncation(float x) {
    if constexpr (!minifloat_format<F>) {
      return x + 0.f;
    } else {
      const float size = magnitude(x);
      if (!(size > 0.f) || !is_finite(x)) return x + 0.f;
      const int k = qtensor::detail::floor_of_log2f(size);
      if (k == floor_log2(size) || k <= 1 - F::bias || k > 127) return x;
      const float below = exp2i(k) - exp2i(k - F::mantissa_bits);
      return is_negative(x) ? -below : below;
    }
  }
};

// Roundings of the elements, under microxcaling's names.

/// Half away from zero; its default.                                                                     2.5 -> 3
struct nearest {
  using slot = slot::rounding;
  static constexpr fixed_string name = "microxcaling::nearest";
  static constexpr bool up(bool negative, bool odd, remainder r) { return nearest_away::up(negative, odd, r); }
  template <format F>
  static constexpr float before(float x) {
    return element_grid<F>::before_nearest(x);
  }
};
/// Half to even.                                                                                         2.5 -> 2
struct even {
  using slot = slot::rounding;
  static constexpr fixed_string name = "microxcaling::even";
  static constexpr bool up(bool negative, bool odd, remainder r) { return nearest_even::up(negative, odd, r); }
  template <format F>
  static constexpr float before(float x) {
    return element_grid<F>::before_nearest(x);
  }
};
/// Toward zero, unlike CANN's floor.                                                                   -2.5 -> -2
struct floor {
  using slot = slot::rounding;
  static constexpr fixed_string name = "microxcaling::floor";
  static constexpr bool up(bool negative, bool odd, remainder r) { return toward_zero::up(negative, odd, r); }
  template <format F>
  static constexpr float before(float x) {
    return element_grid<F>::before_truncation(x);
  }
};

/// quantize_mx_op on elements of Code (e4m3, e5m2, e3m2, e2m3, e2m1, mxint8): groups of N along an axis, the last one
/// short or padded with zeros, which is the same. N may be `dynamic`.
template <format Code, class Round = nearest, index_t N = 32, index_t Axis = last_axis>
using mx = scheme<Code, group<N, Axis>, scale_as<e8m0>, shared_exponent, Round>;
/// The same with flush_fp32_subnorms.
template <format Code, class Round = nearest, index_t N = 32, index_t Axis = last_axis>
using flushed_mx = with<mx<Code, Round, N, Axis>, flush_subnormals>;

}  // namespace qtensor::compat::microxcaling

// The same as vectors.
namespace qtensor::inline QTENSOR_ABI::simd {

template <class S, class A>
struct vector_rule<compat::microxcaling::shared_exponent, S, A> {
  static constexpr bool enabled = std::same_as<typename S::scale_format, e8m0>, bounded = true;
  static QTENSOR_INLINE floats<A> scale(const words<A>& amax, float) {
    constexpr int emax = max_exponent<typename S::code_format>;
    const ints<A> e = simd::floor_of_log2f<A>(amax) - ints<A>(emax);
    const floats<A> power = detail::power_of_log2<A>(amax, e, -126 - emax);
    return simd::select(simd::mask_as<float>(e > ints<A>(127)), floats<A>(quiet_nan), power);
  }
};

namespace detail {

template <class Code, class A>
struct before_nearest {
  static constexpr bool enabled = true;
  static QTENSOR_INLINE floats<A> of(const floats<A>& x) {
    constexpr std::uint32_t half = bits_of(exp2i(compat::microxcaling::element_grid<Code>::lowest_step - 1));
    const words<A> bits = simd::bits_as<std::uint32_t>(x);
    const auto just_below = simd::mask_as<float>((bits & words<A>(magnitude_bits)) == words<A>(half - 1));
    const floats<A> above = simd::bits_as<float>((bits & words<A>(sign_bit)) | words<A>(half + 1));
    return simd::select(just_below, above, simd::add(x, floats<A>(0.f)));
  }
};
template <class Code, class A>
struct before_truncation {
  static constexpr bool enabled = true;
  static QTENSOR_INLINE floats<A> of(const floats<A>& x) {
    const floats<A> same = simd::add(x, floats<A>(0.f));
    if constexpr (!minifloat_format<Code>) {
      return same;
    } else {
      // The last number of Code before the next power of two, where that power is what x counts as.
      constexpr std::uint32_t last = (1u << 23) - (1u << (24 - Code::mantissa_bits));
      const words<A> bits = simd::bits_as<std::uint32_t>(x), size = bits & words<A>(magnitude_bits);
      const ints<A> e = simd::bits_as<std::int32_t>(size >> 23) - ints<A>(127), k = simd::floor_of_log2f<A>(size);
      const auto rounds = (k > e) & (k > ints<A>(1 - Code::bias)) & (k < ints<A>(128));
      const floats<A> below = simd::bits_as<float>((bits & words<A>(sign_bit | infinity_bits)) | words<A>(last));
      return simd::select(simd::mask_as<float>(rounds), below, same);
    }
  }
};

}  // namespace detail

template <class Code, class A>
struct vector_before<compat::microxcaling::nearest, Code, A> : detail::before_nearest<Code, A> {};
template <class Code, class A>
struct vector_before<compat::microxcaling::even, Code, A> : detail::before_nearest<Code, A> {};
template <class Code, class A>
struct vector_before<compat::microxcaling::floor, Code, A> : detail::before_truncation<Code, A> {};

}  // namespace qtensor::inline QTENSOR_ABI::simd
