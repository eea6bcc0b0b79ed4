// Inputs that a wrong codec would get wrong: values, midpoints, thresholds, their float neighbours, specials, both
// signs. SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <bit>

#include "oracle/formats.hpp"

namespace oracle {

inline float float_of(std::uint32_t bits) { return std::bit_cast<float>(bits); }
inline std::uint32_t bits_of(float x) { return std::bit_cast<std::uint32_t>(x); }

/// Deterministic random words (splitmix64): the same sequence on every machine.
class random_bits {
 public:
  explicit random_bits(std::uint64_t seed) : state_(seed) {}

  std::uint32_t word() {
    std::uint64_t z = (state_ += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return static_cast<std::uint32_t>((z ^ (z >> 31)) >> 32);
  }

  /// Any float at all, NaN and infinity included.
  float any_float() { return float_of(word()); }

  /// Log-uniform magnitude in [2^low, 2^high), random sign and mantissa; -126 <= low < high <= 128.
  float log_uniform(int low, int high) {
    const auto exponent = static_cast<std::uint32_t>(low + 127) + word() % static_cast<std::uint32_t>(high - low);
    return float_of((word() & 0x807FFFFFu) | (exponent << 23));
  }

 private:
  std::uint64_t state_;
};

/// Adds the float nearest to v and its two float neighbours on either side, with both signs.
inline void add_around(std::vector<float>& out, double v) {
  if (!(std::fabs(v) < 0x1p128)) return;
  const auto middle = static_cast<std::int64_t>(bits_of(static_cast<float>(std::fabs(v))));
  for (std::int64_t bits = middle - 2; bits <= middle + 2; ++bits)
    if (bits >= 0 && bits <= 0x7F800000)
      for (std::uint32_t sign : {0u, 0x80000000u}) out.push_back(float_of(static_cast<std::uint32_t>(bits) | sign));
}

/// Zeros, subnormals, the ends of float, infinities, NaNs of every kind; both signs.
inline void add_specials(std::vector<float>& out) {
  for (std::uint32_t bits : {0x00000000u, 0x00000001u, 0x00000002u, 0x00200000u, 0x003FFFFFu, 0x00400000u, 0x00400001u,
                             0x00600000u, 0x007FFFFFu, 0x00800000u, 0x00800001u, 0x7F000000u, 0x7F7F7FFFu, 0x7F7F8000u,
                             0x7F7FFFFFu, 0x7F800000u, 0x7F800001u, 0x7FBFFFFFu, 0x7FC00000u, 0x7FFFFFFFu})
    for (std::uint32_t sign : {0u, 0x80000000u}) out.push_back(float_of(bits | sign));
}

inline std::vector<float> unique_bits(std::vector<float> x) {
  std::sort(x.begin(), x.end(), [](float a, float b) { return bits_of(a) < bits_of(b); });
  x.erase(std::unique(x.begin(), x.end(), [](float a, float b) { return bits_of(a) == bits_of(b); }), x.end());
  return x;
}

/// Everything worth asking of an encoder of f: all its values and the quarter points between them, each with
/// neighbours, the values beyond its ends, powers of two, specials, and `randoms` random numbers.
inline std::vector<float> adversarial(const format& f, std::size_t randoms = 20000) {
  std::vector<float> out;
  add_specials(out);
  const bool wide =
      f.points.size() > 1024;  // bf16, f16: values and midpoints only, and int16's are spread over the range
  std::vector<double> values = {f.below_min};
  for (const point& p : f.points) values.push_back(p.value);
  values.push_back(f.above_max);
  for (std::size_t i = 0; i < values.size(); ++i) {
    add_around(out, values[i]);
    if (i == 0) continue;
    for (double part : {0.25, 0.5, 0.75})
      if (!wide || part == 0.5) add_around(out, values[i - 1] + part * (values[i] - values[i - 1]));
  }
  for (double end : {f.min, f.max, f.below_min, f.above_max})  // far beyond, and where int32's floats grow sparse
    for (double factor : {0.5, 0.75, 0.875, 1.0, 1.03125, 1.25, 1.5, 2.0, 4.0, 1024.0}) add_around(out, end * factor);
  for (int e = -149; e < 128; ++e)
    for (double m : {1.0, 1.25, 1.5, 1.75}) add_around(out, std::ldexp(m, e));
  for (int i = 0; i < 600; ++i) add_around(out, i * 0.25);
  random_bits random(1);
  const int low = std::max(-126, std::ilogb(f.above_max) - 40), high = std::min(128, std::ilogb(f.above_max) + 3);
  for (std::size_t i = 0; i < randoms; ++i)
    out.push_back(i % 4 == 0 ? random.any_float() : random.log_uniform(low, high));
  return unique_bits(std::move(out));
}

/// All 65,536 bf16 numbers as floats; index = bits.
inline std::vector<float> every_bf16() {
  std::vector<float> out;
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) out.push_back(float_of(bits << 16));
  return out;
}

/// All 65,536 f16 numbers as floats; index = bits. NaNs keep their sign and payload.
inline std::vector<float> every_f16() {
  const format& half = format_named("f16");
  std::vector<float> out;
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const std::uint32_t sign = (bits & 0x8000u) << 16, payload = (bits & 0x3FFu) << 13;
    const bool is_nan = (bits & 0x7C00u) == 0x7C00u && payload != 0;
    out.push_back(is_nan ? float_of(sign | 0x7F800000u | payload) : static_cast<float>(half.decoded[bits]));
  }
  return out;
}

}  // namespace oracle
