// What the tests of statistics share: awkward inputs of every source, and what they have as the largest magnitude.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cmath>
#include <qtensor/simd/statistics.hpp>
#include <type_traits>
#include <vector>

#include "check.hpp"

namespace simd = qtensor::simd;
using qtensor::bits_of;
using qtensor::index_t;

namespace statistics_check {

// Elements of a source as floats, by definition.
inline float value(simd::from_f32, float x) { return x; }
inline float value(simd::from_bf16, std::uint16_t x) { return qtensor::float_of(std::uint32_t{x} << 16); }
inline float value(simd::from_f16, std::uint16_t x) {
  const int e = x >> 10 & 31, m = x & 1023, sign = x >> 15 ? -1 : 1;
  if (e == 31) return m != 0 ? qtensor::quiet_nan : static_cast<float>(sign) * qtensor::infinity;
  return static_cast<float>(sign * std::ldexp(e != 0 ? 1024 + m : m, (e != 0 ? e : 1) - 25));
}

template <class Source>
std::vector<typename Source::type> inputs(index_t n) {
  std::vector<typename Source::type> v(static_cast<std::size_t>(n));
  for (auto& x : v)
    if constexpr (std::is_same_v<Source, simd::from_f32>) {
      x = check::hard_float();
    } else if (const std::uint32_t r = check::random_bits()(); r % 64 == 0) {
      x = static_cast<std::uint16_t>(r >> 16);  // now and then anything, NaN included
    } else {
      x = static_cast<std::uint16_t>((r >> 16 & 0x83ff) + 0x3800);
    }
  return v;
}

// f16 NaN payloads are not compared: value() above makes them all alike.
template <class Source>
std::uint32_t expected_amax(const typename Source::type* x, index_t n) {
  std::uint32_t m = 0;
  for (index_t i = 0; i < n; ++i) m = std::max(m, bits_of(value(Source{}, x[i])) & 0x7fffffffu);
  return m;
}
template <class Source>
bool same_amax(std::uint32_t a, std::uint32_t b) {
  return a == b || (std::is_same_v<Source, simd::from_f16> && a > 0x7f800000u && b > 0x7f800000u);
}

/// The extremes of n elements, `step` apart, one by one.
template <class Source>
simd::ordered_extremes expected_extremes(const typename Source::type* x, index_t step, index_t n) {
  simd::ordered_extremes found;
  for (index_t i = 0; i < n; ++i) {
    const std::uint32_t place = simd::in_order(bits_of(simd::number<Source>(x[i * step])));
    found.low = std::min(found.low, place), found.high = std::max(found.high, place);
  }
  return found;
}
/// The same extremes, or a NaN seen by both: which payload, and of f16 which sign, one of 16 bits has is the CPU's.
template <class Source>
bool same_extremes(const simd::ordered_extremes& a, const simd::ordered_extremes& b) {
  const auto has_nan = [](const simd::ordered_extremes& e) {
    return e.low < simd::in_order(0xff800000u) || e.high > simd::in_order(0x7f800000u);
  };
  if (sizeof(typename Source::type) == 2 && has_nan(b)) return has_nan(a);
  return a.low == b.low && a.high == b.high;
}

template <class F>
void every_source(F f) {
  f(simd::from_f32{});
  f(simd::from_bf16{});
  f(simd::from_f16{});
}

}  // namespace statistics_check
