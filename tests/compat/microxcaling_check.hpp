// microxcaling's arithmetic with the math library, to compare blocks with.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cmath>
#include <qtensor/compat/microxcaling.hpp>
#include <vector>

namespace microxcaling_check {

using namespace qtensor;

enum class how { nearest, even, floor };

/// The library's arithmetic in f32, step by step: a block to the numbers it stands for.
template <format Code>
std::vector<float> emulated(std::vector<float> x, how round, bool flush) {
  float amax = 0;
  for (float v : x) amax = std::isnan(v) || std::isnan(amax) ? quiet_nan : std::max(amax, std::fabs(v));
  float shared = std::floor(std::log2(amax == 0 ? 0x1p-126f : amax));
  if (flush && !(shared > -127))
    for (float& v : x) v *= 0.f;
  shared -= static_cast<float>(max_exponent<Code>);
  if (shared > 127) shared = quiet_nan;
  if (shared < -127) shared = -127;
  const float scale = std::isnan(shared) ? quiet_nan : std::ldexp(1.f, static_cast<int>(shared));

  constexpr int bits = compat::microxcaling::element_grid<Code>::fraction_bits;
  for (float& v : x) {
    const float a = v / scale;
    int exponent = 0;
    if constexpr (minifloat_format<Code>)
      exponent = std::isnan(a)
                     ? 0
                     : std::max(1 - Code::bias, static_cast<int>(std::floor(std::log2(a == 0 ? 1.f : std::fabs(a)))));
    const float size = std::fabs(std::ldexp(a, bits - exponent));
    float q = round == how::floor ? std::floor(size) : std::floor(size + 0.5f);
    if (round == how::even && size - std::floor(size) == 0.5f && std::fmod(q, 2.f) == 1.f) q -= 1;
    const float sign = a > 0 ? 1.f : a < 0 ? -1.f : 0.f;
    const float most = static_cast<float>(Code::max);
    const float rounded_up = std::ldexp(q, exponent - bits) * sign;
    v = (std::isnan(a) ? a : std::min(most, std::max(-most, rounded_up))) * scale;
  }
  return x;
}

}  // namespace microxcaling_check
