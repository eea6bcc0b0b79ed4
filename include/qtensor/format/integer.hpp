// Two's complement and unsigned integers, and the fixed-point mxint8 (NUMERICS 1.1, 1.7).
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <qtensor/format/format.hpp>

namespace qtensor {

/// Base of the integer formats: `Bits` wide, two's complement when `Sign` is `signed`, plain binary when `unsigned`.
template <int Bits, class Sign>
struct integer {
  static constexpr int bits = Bits;
  static constexpr bool is_integer = true;
  static constexpr bool is_signed = std::is_signed_v<Sign>;
  using value_type = std::conditional_t<(Bits <= 24), float, std::int64_t>;
  static constexpr value_type max = static_cast<value_type>((std::int64_t{1} << (Bits - is_signed)) - 1);
  static constexpr value_type min = is_signed ? -max - 1 : 0;

  static constexpr value_type decode(std::uint32_t code) {
    const std::int64_t low = code & low_bits(Bits);
    const bool negative = is_signed && ((low >> (Bits - 1)) & 1) != 0;
    return static_cast<value_type>(negative ? low - (std::int64_t{1} << Bits) : low);
  }
};

struct int8 : integer<8, signed> {
  using storage = std::int8_t;
  static constexpr fixed_string name = "int8";
};
struct uint8 : integer<8, unsigned> {
  static constexpr fixed_string name = "uint8";
};
struct int16 : integer<16, signed> {
  using storage = std::int16_t;
  static constexpr fixed_string name = "int16";
};
struct uint16 : integer<16, unsigned> {
  static constexpr fixed_string name = "uint16";
};
struct int32 : integer<32, signed> {
  using storage = std::int32_t;
  static constexpr fixed_string name = "int32";
};
struct int4 : integer<4, signed> {
  static constexpr fixed_string name = "int4";
};
struct uint4 : integer<4, unsigned> {
  static constexpr fixed_string name = "uint4";
};
struct int2 : integer<2, signed> {
  static constexpr fixed_string name = "int2";
};
struct uint2 : integer<2, unsigned> {
  static constexpr fixed_string name = "uint2";
};

/// The same codes without the most negative one: [-127, 127] for int8. A type of its own, as symmetric quantizers and
/// TFLite weights promise it.
template <format Integer>
struct narrow_range : Integer {
  static_assert(
      Integer::is_integer && Integer::is_signed,
      "qtensor: narrow_range takes away the most negative code, so it needs a signed integer format (int8, ...).");
  static constexpr auto min = -Integer::max;
  static constexpr auto name = "narrow_range<" + Integer::name + ">";
};

/// Base of two's complement fractions: code * 2^-FractionBits, symmetric (the most negative code decodes, but is never
/// made).
template <int Bits, int FractionBits>
struct fixed_point {
  static constexpr int bits = Bits;
  static constexpr int fraction_bits = FractionBits;
  static constexpr bool is_integer = false;
  static constexpr bool is_signed = true;
  static constexpr float max = integer<Bits, signed>::max * exp2i(-FractionBits);
  static constexpr float min = -max;

  static constexpr float decode(std::uint32_t code) {
    return integer<Bits, signed>::decode(code) * exp2i(-FractionBits);
  }
};

/// Elements of OCP MXINT8: two's complement times 2^-6, -127/64 .. 127/64. OCP has one name for the element and for the
/// scheme, and so have we: `mxint8` (scheme/schemes.hpp) is both.
struct mxint8_code : fixed_point<8, 6> {
  static constexpr fixed_string name = "mxint8";
};

}  // namespace qtensor
