// ggml's quantizers in a few lines each, written from NUMERICS 8.3 as a C programmer would, to compare blocks with.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cfloat>
#include <climits>
#include <cmath>
#include <cstdint>
#include <qtensor/compat/ggml.hpp>
#include <vector>

namespace plain {

using bytes = std::vector<std::uint8_t>;

/// x_i = (i - 16) / 4, the specification's example.
inline float example(qtensor::index_t i) { return static_cast<float>(i - 16) / 4.f; }

/// C's (int)x as x86 has it.
inline int to_int(float x) { return std::fabs(x) < 0x1p31f ? static_cast<int>(x) : INT_MIN; }
inline int to_int8(float x) { return static_cast<std::int8_t>(to_int(x)); }

inline void put(bytes& out, int byte) { out.push_back(static_cast<std::uint8_t>(byte)); }
inline void put_f16(bytes& out, float x) {
  const std::uint32_t code = qtensor::encode<qtensor::f16, qtensor::to_special>(x);
  put(out, static_cast<int>(code & 0xff));
  put(out, static_cast<int>(code >> 8));
}
inline void put_halves(bytes& out, const std::vector<int>& q) {
  const std::size_t half = q.size() / 2;
  for (std::size_t j = 0; j < half; ++j) put(out, (q[j] & 15) | (q[j + half] & 15) << 4);
}
inline void put_high_bits(bytes& out, const std::vector<int>& q) {
  std::uint32_t high = 0;
  for (std::size_t j = 0; j < 32; ++j) high |= static_cast<std::uint32_t>(q[j] >> 4 & 1) << j;
  for (int b = 0; b < 4; ++b) put(out, static_cast<int>(high >> (8 * b) & 0xff));
}

inline bytes q8(const float* x, bool with_sum) {
  float amax = 0;
  for (int i = 0; i < 32; ++i) amax = std::max(amax, std::fabs(x[i]));
  const float d = amax / 127, id = d != 0 ? 1 / d : 0;
  bytes out, codes;
  int sum = 0;
  for (int i = 0; i < 32; ++i) {
    const int q = to_int8(std::round(x[i] * id));
    put(codes, q);
    sum += q;
  }
  put_f16(out, d);
  if (with_sum) put_f16(out, static_cast<float>(sum) * d);
  out.insert(out.end(), codes.begin(), codes.end());
  return out;
}

/// Q4_0 and Q5_0: `levels` is 16 or 32.
inline bytes symmetric(const float* x, int levels) {
  float amax = 0, max = 0;
  for (int i = 0; i < 32; ++i)
    if (amax < std::fabs(x[i])) amax = std::fabs(x[i]), max = x[i];
  const float d = max / static_cast<float>(-levels / 2), id = d != 0 ? 1 / d : 0;
  std::vector<int> q;
  for (int i = 0; i < 32; ++i) {
    const float product = qtensor::rounded(x[i] * id);
    q.push_back(std::min(levels - 1, to_int8(product + static_cast<float>(levels / 2) + 0.5f)));
  }
  bytes out;
  put_f16(out, d);
  if (levels == 32) put_high_bits(out, q);
  put_halves(out, q);
  return out;
}

/// Q4_1 and Q5_1.
inline bytes asymmetric(const float* x, int levels) {
  float min = FLT_MAX, max = -FLT_MAX;
  for (int i = 0; i < 32; ++i) {
    if (x[i] < min) min = x[i];
    if (x[i] > max) max = x[i];
  }
  const float d = (max - min) / static_cast<float>(levels - 1), id = d != 0 ? 1 / d : 0;
  std::vector<int> q;
  for (int i = 0; i < 32; ++i) {
    const float product = qtensor::rounded((x[i] - min) * id);
    q.push_back(std::min(levels - 1, to_int8(product + 0.5f)));
  }
  bytes out;
  put_f16(out, d);
  put_f16(out, min);
  if (levels == 32) put_high_bits(out, q);
  put_halves(out, q);
  return out;
}

constexpr int doubled[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

/// The index whose distance to x is least, the first of several.
inline int search(float x, float half_scale) {
  int best = 0;
  float least = std::fabs(0 * half_scale - x);
  for (int i = 0; i < 16; ++i) {
    const float distance = std::fabs(qtensor::rounded(static_cast<float>(doubled[i]) * half_scale) - x);
    if (distance < least) best = i, least = distance;
  }
  return best;
}

inline float amax_of(const float* x, int n) {
  float amax = 0;
  for (int i = 0; i < n; ++i)
    if (amax < std::fabs(x[i])) amax = std::fabs(x[i]);
  return amax;
}

inline bytes mxfp4(const float* x) {
  const float amax = amax_of(x, 32);
  const int e = amax > 0 ? to_int(std::floor(std::log2(amax)) - 2 + 127) & 0xff : 0;
  std::vector<int> q;
  for (int i = 0; i < 32; ++i) q.push_back(search(x[i], std::ldexp(1.f, e - 128)));
  bytes out;
  put(out, e);
  put_halves(out, q);
  return out;
}

inline double ue4m3_value(int code) {
  return code < 8 ? std::ldexp(code, -9) : std::ldexp(8 + code % 8, code / 8 - 10);
}
/// Nearest, halves up; no subnormal becomes a normal number; from 248 on 448.
inline int ue4m3(float x) {
  if (!(x > 0)) return 0;
  if (x >= 248) return 0x7e;
  if (x < 0x1p-6f) return std::min(7, static_cast<int>(std::floor(std::ldexp(static_cast<double>(x), 9) + 0.5)));
  int best = 8;
  while (ue4m3_value(best) + ue4m3_value(best + 1) <= 2 * static_cast<double>(x)) ++best;
  return best;
}

inline bytes nvfp4(const float* x) {
  bytes out, codes;
  for (int g = 0; g < 4; ++g) {
    const int d = ue4m3(amax_of(x + 16 * g, 16) / 6);
    std::vector<int> q;
    for (int i = 0; i < 16; ++i) q.push_back(search(x[16 * g + i], static_cast<float>(ue4m3_value(d) / 2)));
    put(out, d);
    put_halves(codes, q);
  }
  out.insert(out.end(), codes.begin(), codes.end());
  return out;
}

/// One block of a type.
inline bytes block(int type, const float* x) {
  switch (type) {
    case 8:
      return q8(x, false);
    case 9:
      return q8(x, true);
    case 2:
      return symmetric(x, 16);
    case 6:
      return symmetric(x, 32);
    case 3:
      return asymmetric(x, 16);
    case 7:
      return asymmetric(x, 32);
    case 39:
      return mxfp4(x);
    default:
      return nvfp4(x);
  }
}

}  // namespace plain
