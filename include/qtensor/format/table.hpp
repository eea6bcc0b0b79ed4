// What the library works out by itself from a format of at most 8 bits: its decode table and its values in order.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <optional>
#include <qtensor/format/format.hpp>

namespace qtensor {

/// Value of every code. Vector kernels look codes up here; a user's format needs nothing more to get one.
template <format F>
requires(F::bits <= 8) inline constexpr std::array<float, std::size_t{1} << F::bits> decode_table = [] {
  std::array<float, std::size_t{1} << F::bits> table{};
  for (std::uint32_t code = 0; code < table.size(); ++code) table[code] = decode<F>(code);
  return table;
}();

/// The codes an encoder may produce, by ascending value: finite, inside [F::min, F::max], +0 only where there are two
/// zeros, the lower code where two codes have one value.
template <format F>
requires(F::bits <= 8) struct sorted_codes {
  std::array<std::uint8_t, std::size_t{1} << F::bits> code{};
  int count = 0;

  constexpr sorted_codes() {
    for (std::uint32_t c = 0; c < decode_table<F>.size(); ++c) {
      const float value = decode_table<F>[c];
      if (!is_finite(value) || value < static_cast<float>(F::min) || value > static_cast<float>(F::max)) continue;
      int at = count;
      while (at > 0 && decode_table<F>[code[static_cast<std::size_t>(at - 1)]] > value) --at;
      if (at > 0 && decode_table<F>[code[static_cast<std::size_t>(at - 1)]] == value) continue;
      for (int i = count; i > at; --i) code[static_cast<std::size_t>(i)] = code[static_cast<std::size_t>(i - 1)];
      code[static_cast<std::size_t>(at)] = static_cast<std::uint8_t>(c);
      ++count;
    }
  }
  constexpr float value(int i) const { return decode_table<F>[code[static_cast<std::size_t>(i)]]; }
};
template <format F>
inline constexpr sorted_codes<F> sorted{};

/// The first code of a format that decodes to a NaN, or to the infinity of the given sign; nothing where it has none.
template <format F>
requires(F::bits <= 8) constexpr std::optional<std::uint32_t> find_nan() {
  for (std::uint32_t c = 0; c < decode_table<F>.size(); ++c)
    if (is_nan(decode_table<F>[c])) return c;
  return std::nullopt;
}
template <format F>
requires(F::bits <= 8) constexpr std::optional<std::uint32_t> find_infinity(bool negative) {
  for (std::uint32_t c = 0; c < decode_table<F>.size(); ++c)
    if (decode_table<F>[c] == (negative ? -infinity : infinity)) return c;
  return std::nullopt;
}

}  // namespace qtensor
