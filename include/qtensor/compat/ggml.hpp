// ggml: block formats as schemes over interleaved blocks (NUMERICS 8.3).
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <qtensor/scheme/scheme.hpp>

namespace qtensor::compat::ggml {

/// Four bits with an implied zero point of 8: code c is c - 8. The codes of Q4_0.
struct q4 {
  static constexpr int bits = 4;
  static constexpr bool is_integer = false;
  static constexpr bool is_signed = true;
  static constexpr float min = -8.f;
  static constexpr float max = 7.f;
  static constexpr fixed_string name = "q4";
  static constexpr float decode(std::uint32_t code) { return static_cast<float>(static_cast<int>(code & 15u) - 8); }
};

/// Q8_0 (type 8): f16 scale d, 32 int8 codes; 34 bytes. d = amax / 127; codes round half away from x * (1 / d), with d
/// as it was before it became f16. A zero block has d = 0.
using q8_0 =
    scheme<int8, group<32>, scale_as<f16>, interleaved<>, bounded_amax<>, nearest_away, reciprocal, unrounded_scale>;

/// Q4_0 (type 2): f16 scale d, 16 bytes whose low nibbles are elements 0 to 15 and high nibbles 16 to 31; value (c - 8)
/// * d. Reading only: its own quantizer picks the signed value of the first largest magnitude, which is not a scale
/// rule here.
using q4_0 = scheme<q4, group<32>, scale_as<f16>, interleaved<split_halves>, static_only>;

/// Q4_1 (type 3): f16 scale d and offset m, nibbles as in Q4_0; value c * d + m. Reading only.
using q4_1 = scheme<uint4, group<32>, scale_as<f16>, offset<f16>, interleaved<split_halves>, static_only>;

/// MXFP4 (type 39): e8m0 scale, nibbles as in Q4_0. Reading only: its quantizer breaks ties toward the lower code.
using mxfp4 = scheme<e2m1, group<32>, scale_as<e8m0>, interleaved<split_halves>, static_only>;

}  // namespace qtensor::compat::ggml
