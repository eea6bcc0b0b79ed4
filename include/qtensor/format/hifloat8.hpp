// HiFloat8: a tapered 8-bit float whose mantissa shrinks as the exponent grows (arXiv 2409.16626, NUMERICS 1.8).
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <qtensor/format/format.hpp>

namespace qtensor {

/// Sign, then a prefix code of 2 to 4 bits that tells how many exponent bits follow, then a sign-magnitude exponent
/// with an implicit leading one, then what is left as mantissa. One zero (00), one NaN (80), infinities 6F and EF, max
/// 2^15.
struct hif8 {
  static constexpr int bits = 8;
  static constexpr bool is_integer = false;
  static constexpr bool is_signed = true;
  static constexpr float max = exp2i(15);
  static constexpr float min = -max;
  /// Half away from zero is the only deterministic rounding the format defines.
  static constexpr bool ties_away = true;
  /// The value whose slot infinity takes: from half way to it on, values overflow.
  static constexpr float next_above_max = 1.5f * exp2i(15);
  static constexpr fixed_string name = "hif8";

  static constexpr float decode(std::uint32_t code) {
    const std::uint32_t sign = (code & 0x80) != 0 ? sign_bit : 0u;
    const std::uint32_t body = code & 0x7f;
    if (body == 0) return sign != 0 ? quiet_nan : 0.f;
    if (body == 0x6f) return float_of(infinity_bits | sign);
    if (body < 8) return float_of(bits_of(exp2i(static_cast<int>(body) - 23)) | sign);  // 0000: one power of two a code

    // 1. the prefix: 11, 10, 01 -> 4, 3, 2 exponent bits; 001 -> 1; 0001 -> none
    const std::uint32_t top = body >> 5;
    const int exponent_bits = top != 0 ? static_cast<int>(top) + 1 : body >> 4 != 0 ? 1 : 0;
    const int mantissa_bits = exponent_bits == 4 ? 1 : exponent_bits == 3 ? 2 : 3;
    // 2. the exponent: sign, then the bits below an implicit leading one
    int exponent = 0;
    if (exponent_bits > 0) {
      const std::uint32_t field = (body >> mantissa_bits) & low_bits(exponent_bits);
      const int size = (1 << (exponent_bits - 1)) + static_cast<int>(field & low_bits(exponent_bits - 1));
      exponent = (field >> (exponent_bits - 1)) != 0 ? -size : size;
    }
    // 3. the value
    const float significand = static_cast<float>((1u << mantissa_bits) + (body & low_bits(mantissa_bits)));
    return float_of(bits_of(significand * exp2i(exponent - mantissa_bits)) | sign);
  }
};

}  // namespace qtensor
