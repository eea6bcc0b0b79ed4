// Whole parts of log2f as it rounds, by vectors: exponents, but near powers of two (policy/scale_rule.hpp).
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <qtensor/simd/ops.hpp>

namespace qtensor::inline QTENSOR_ABI::simd {

namespace detail {

/// 2^23 steps, times ln 2, from the integer k to the middle between it and the next float, on the side away from zero
/// where k is negative and `below`, or positive and not; 0 for 0. What lies closer to 2^k has the logarithm k. None of
/// these bounds is within 1/20 of an integer, so that the square of the distance does not matter.
template <bool Below, class A>
QTENSOR_INLINE floats<A> steps_to_next_log(const ints<A>& k) {
  const words<A> bits = simd::bits_as<std::uint32_t>(simd::to_float(k));
  const floats<A> binade = simd::bits_as<float>(bits & words<A>(infinity_bits));
  const auto toward_zero = Below ? k > ints<A>(0) : k < ints<A>(0);
  const auto power = simd::mask_as<std::int32_t>((bits & words<A>(low_bits(23))) == words<A>(0u));
  constexpr float ln2 = 0.6931472f, whole = Below ? ln2 : ln2 / 2;  // above 2^k a step is twice as wide as below it
  return simd::mul(binade,
                   simd::select(simd::mask_as<float>(toward_zero & power), floats<A>(whole / 2), floats<A>(whole)));
}

}  // namespace detail

/// floor(log2f(x)) of the magnitudes of normal numbers (as bits): qtensor::detail::floor_of_log2f. Cost: 12.
template <usable_arch A>
QTENSOR_INLINE ints<A> floor_of_log2f(const words<A>& magnitude) {
  const ints<A> next = simd::bits_as<std::int32_t>(magnitude >> 23) - ints<A>(126);
  const words<A> below = words<A>(1u << 23) - (magnitude & words<A>(low_bits(23)));
  const auto rounds_up = simd::to_float(simd::bits_as<std::int32_t>(below)) <= detail::steps_to_next_log<true, A>(next);
  return next - simd::select(simd::mask_as<std::int32_t>(rounds_up), ints<A>(0), ints<A>(1));
}

/// ceil(log2f(x)) likewise: qtensor::detail::ceil_of_log2f. Cost: 12.
template <usable_arch A>
QTENSOR_INLINE ints<A> ceil_of_log2f(const words<A>& magnitude) {
  const ints<A> k = simd::bits_as<std::int32_t>(magnitude >> 23) - ints<A>(127);
  const words<A> above = magnitude & words<A>(low_bits(23));
  const auto rounds_down = simd::to_float(simd::bits_as<std::int32_t>(above)) <= detail::steps_to_next_log<false, A>(k);
  return k + simd::select(simd::mask_as<std::int32_t>(rounds_down), ints<A>(0), ints<A>(1));
}

}  // namespace qtensor::inline QTENSOR_ABI::simd
