// bf16, f16 and f32: what sources and scales are stored in (NUMERICS 1.2).
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <concepts>
#include <qtensor/format/minifloat.hpp>

namespace qtensor {

/// The upper half of an f32. Our conversions keep subnormals and never turn a NaN into infinity.
struct bf16 : minifloat<8, 7, 127, specials::ieee> {
  static constexpr fixed_string name = "bf16";
  static constexpr bool keeps_nan_payload = true;
};

/// IEEE binary16, max 65504.
struct f16 : minifloat<5, 10, 15, specials::ieee> {
  static constexpr fixed_string name = "f16";
  static constexpr bool keeps_nan_payload = true;
};

/// IEEE binary32: a code is the float's bits.
struct f32 {
  using storage = float;
  static constexpr int bits = 32;
  static constexpr bool is_integer = false;
  static constexpr bool is_signed = true;
  static constexpr float max = std::numeric_limits<float>::max();
  static constexpr float min = -max;
  static constexpr fixed_string name = "f32";
  static constexpr float decode(std::uint32_t code) { return float_of(code); }
};

/// Formats of codes wider than a byte that have arithmetic in floats: integers of 16 bits, signed ones of 32, bf16,
/// f16.
template <class F>
concept wide_code_format = format<F> &&((F::is_integer && (F::bits == 16 || (F::bits == 32 && F::is_signed))) ||
                                        std::same_as<F, bf16> || std::same_as<F, f16>);

}  // namespace qtensor
