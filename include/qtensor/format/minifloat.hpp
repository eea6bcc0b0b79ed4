// Sign, exponent, mantissa: FP8, FP6 and FP4, and the base that bf16 and f16 share (NUMERICS 1.2 to 1.7).
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <qtensor/format/format.hpp>

namespace qtensor {

/// What the top codes of a minifloat mean.
enum class specials {
  none,                  // every code is finite: e2m1, e2m3, e3m2, e1m2
  nan_only,              // all ones is NaN, no infinity: e4m3 (others write "FN")
  nan_is_negative_zero,  // the code of -0 is the only NaN, no infinity, one zero: the "fnuz" formats
  ieee,                  // the top exponent holds infinity and NaNs: e5m2, f16, bf16
};

namespace detail {

/// The facts of a minifloat that its value needs; decode is here because a class cannot call its own functions for
/// `max`.
template <int ExponentBits, int MantissaBits, int Bias, specials Specials>
struct minifloat_codes {
  static constexpr std::uint32_t magnitude_mask = low_bits(ExponentBits + MantissaBits);
  static constexpr std::uint32_t sign_mask = 1u << (ExponentBits + MantissaBits);
  static constexpr std::uint32_t infinity_code = low_bits(ExponentBits) << MantissaBits;
  static constexpr std::uint32_t max_code = Specials == specials::ieee       ? infinity_code - 1
                                            : Specials == specials::nan_only ? magnitude_mask - 1
                                                                             : magnitude_mask;
  static constexpr std::uint32_t nan_code = Specials == specials::ieee       ? infinity_code | 1u << (MantissaBits - 1)
                                            : Specials == specials::nan_only ? magnitude_mask
                                                                             : sign_mask;

  static constexpr float finite(std::uint32_t magnitude_code) {
    // A float's exponent field: the bits are the float's own (and subnormals need no multiplication).
    if constexpr (ExponentBits == 8 && Bias == 127) return float_of(magnitude_code << (23 - MantissaBits));
    const std::uint32_t mantissa = magnitude_code & low_bits(MantissaBits);
    const int exponent = static_cast<int>(magnitude_code >> MantissaBits);
    const float significand = static_cast<float>(exponent != 0 ? mantissa + (1u << MantissaBits) : mantissa);
    return significand * exp2i((exponent != 0 ? exponent : 1) - Bias - MantissaBits);
  }

  static constexpr float decode(std::uint32_t code) {
    const std::uint32_t magnitude_code = code & magnitude_mask;
    const std::uint32_t sign = (code & sign_mask) != 0 ? sign_bit : 0u;
    if (Specials == specials::nan_is_negative_zero && magnitude_code == 0 && sign != 0) return quiet_nan;
    if (magnitude_code <= max_code) return float_of(bits_of(finite(magnitude_code)) | sign);
    if (Specials == specials::ieee && magnitude_code == infinity_code) return float_of(infinity_bits | sign);
    return float_of(bits_of(quiet_nan) | sign);
  }
};

}  // namespace detail

/// Base of the minifloats. A code is S | E | M; its value is (-1)^S 2^(E-Bias) (1 + M/2^m), or (-1)^S 2^(1-Bias) M/2^m
/// when E is 0. Magnitude codes grow with the value, so the next value above max is `max_code + 1` for every
/// `Specials`.
template <int ExponentBits, int MantissaBits, int Bias, specials Specials>
struct minifloat {
  static constexpr int bits = 1 + ExponentBits + MantissaBits;
  static constexpr int exponent_bits = ExponentBits;
  static constexpr int mantissa_bits = MantissaBits;
  static constexpr int bias = Bias;
  static constexpr specials special_values = Specials;
  static constexpr bool is_integer = false;
  static constexpr bool is_signed = true;

 private:
  using codes = detail::minifloat_codes<ExponentBits, MantissaBits, Bias, Specials>;

 public:
  /// Everything but the sign, and the sign.
  static constexpr std::uint32_t magnitude_mask = codes::magnitude_mask;
  static constexpr std::uint32_t sign_mask = codes::sign_mask;
  /// Codes of the largest finite value, of +infinity (ieee only) and of the quiet NaN we emit, without its sign.
  static constexpr std::uint32_t max_code = codes::max_code;
  static constexpr std::uint32_t infinity_code = codes::infinity_code;
  static constexpr std::uint32_t nan_code = codes::nan_code;
  static constexpr bool has_infinity = Specials == specials::ieee;
  static constexpr bool has_nan = Specials != specials::none;

  static constexpr float max = codes::decode(max_code);
  static constexpr float min = -max;

  /// Exact: every value is a float.
  static constexpr float decode(std::uint32_t code) { return codes::decode(code); }
};

template <class F>
concept minifloat_format = format<F> && requires {
  { F::exponent_bits } -> std::convertible_to<int>;
  { F::mantissa_bits } -> std::convertible_to<int>;
  { F::bias } -> std::convertible_to<int>;
  { F::special_values } -> std::convertible_to<specials>;
};

/// OCP FP8, max 448, NaN 0x7F and 0xFF, no infinity.
struct e4m3 : minifloat<4, 3, 7, specials::nan_only> {
  static constexpr fixed_string name = "e4m3";
};
/// OCP FP8, max 57344, IEEE specials.
struct e5m2 : minifloat<5, 2, 15, specials::ieee> {
  static constexpr fixed_string name = "e5m2";
};
/// max 240, NaN 0x80 only.
struct e4m3fnuz : minifloat<4, 3, 8, specials::nan_is_negative_zero> {
  static constexpr fixed_string name = "e4m3fnuz";
};
/// max 57344, NaN 0x80 only.
struct e5m2fnuz : minifloat<5, 2, 16, specials::nan_is_negative_zero> {
  static constexpr fixed_string name = "e5m2fnuz";
};
/// OCP FP6, max 28.
struct e3m2 : minifloat<3, 2, 3, specials::none> {
  static constexpr fixed_string name = "e3m2";
};
/// OCP FP6, max 7.5.
struct e2m3 : minifloat<2, 3, 1, specials::none> {
  static constexpr fixed_string name = "e2m3";
};
/// OCP FP4: 0 .5 1 1.5 2 3 4 6.
struct e2m1 : minifloat<2, 1, 1, specials::none> {
  static constexpr fixed_string name = "e2m1";
};
/// CANN's uniform FP4: 0 .25 .. 1.75.
struct e1m2 : minifloat<1, 2, 1, specials::none> {
  static constexpr fixed_string name = "e1m2";
};

}  // namespace qtensor
