// The power-of-two scale of the MX formats (NUMERICS 1.7).
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <qtensor/format/format.hpp>

namespace qtensor {

/// 2^(code - 127); 0xFF is NaN. No sign, no zero, no infinity. Code 0 is 2^-127, a subnormal float.
struct e8m0 {
  static constexpr int bits = 8;
  static constexpr bool is_integer = false;
  static constexpr bool is_signed = false;
  static constexpr float min = exp2i(-127);
  static constexpr float max = exp2i(127);
  static constexpr std::uint32_t max_code = 0xfe;
  static constexpr std::uint32_t nan_code = 0xff;
  static constexpr fixed_string name = "e8m0";

  static constexpr float decode(std::uint32_t code) {
    return (code & 0xff) == nan_code ? quiet_nan : exp2i(static_cast<int>(code & 0xff) - 127);
  }
};

}  // namespace qtensor
