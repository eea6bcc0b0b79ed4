// Formats as users of the library write them, for tests of what takes any format.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <qtensor/core/support.hpp>
#include <qtensor/format/integer.hpp>

namespace of_users {

/// A list of values.
struct nf4 {
  static constexpr int bits = 4;
  static constexpr bool is_integer = false, is_signed = true;
  static constexpr float min = -1.f, max = 1.f;
  static constexpr qtensor::fixed_string name = "nf4";
  static constexpr float decode(std::uint32_t code) {
    constexpr float level[16] = {-1.f,     -0.69619f, -0.52507f, -0.39492f, -0.28444f, -0.18477f, -0.09105f, 0.f,
                                 0.07958f, 0.16093f,  0.24611f,  0.33792f,  0.44071f,  0.56262f,  0.72296f,  1.f};
    return level[code & 15];
  }
};

/// Two values, a bit each: no kernel unpacks such codes.
struct sign1 {
  static constexpr int bits = 1;
  static constexpr bool is_integer = false, is_signed = true;
  static constexpr float min = -1.f, max = 1.f;
  static constexpr qtensor::fixed_string name = "sign1";
  static constexpr float decode(std::uint32_t code) { return (code & 1) != 0 ? 1.f : -1.f; }
};

/// Codes narrower than their storage unit.
struct int12 : qtensor::integer<12, signed> {
  static constexpr qtensor::fixed_string name = "int12";
};

}  // namespace of_users
