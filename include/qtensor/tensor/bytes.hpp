// Single codes and numbers in memory: packed codes by bit position, numbers of any format little endian by bytes.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <qtensor/format/format.hpp>

namespace qtensor::detail {

/// The `Bits` bits that start at bit `at` of `bytes`; touches only the bytes that hold them.
template <int Bits>
constexpr std::uint32_t load_bits(const std::uint8_t* bytes, index_t at) {
  const std::uint8_t* first = bytes + at / 8;
  const int shift = static_cast<int>(at % 8);
  std::uint32_t window = first[0];
  if (shift + Bits > 8) window |= static_cast<std::uint32_t>(first[1]) << 8;
  return (window >> shift) & low_bits(Bits);
}
template <int Bits>
constexpr void store_bits(std::uint8_t* bytes, index_t at, std::uint32_t code) {
  std::uint8_t* first = bytes + at / 8;
  const int shift = static_cast<int>(at % 8);
  const std::uint32_t mask = low_bits(Bits) << shift, moved = (code & low_bits(Bits)) << shift;
  first[0] = static_cast<std::uint8_t>((first[0] & ~mask) | moved);
  if (shift + Bits > 8) first[1] = static_cast<std::uint8_t>((first[1] & ~(mask >> 8)) | moved >> 8);
}

/// The code in a storage unit (a float's bits for f32), and back.
template <format F>
constexpr std::uint32_t code_of(storage_t<F> unit) {
  if constexpr (std::is_same_v<storage_t<F>, float>)
    return bits_of(unit);
  else
    return static_cast<std::uint32_t>(unit) & low_bits(F::bits);
}
template <format F>
constexpr storage_t<F> unit_from(std::uint32_t code) {
  if constexpr (std::is_same_v<storage_t<F>, float>)
    return float_of(code);
  else
    return static_cast<storage_t<F>>(code);
}

/// A code of F at an unaligned byte address, little endian.
template <format F>
constexpr std::uint32_t load_unit(const std::uint8_t* bytes) {
  std::uint32_t code = 0;
  for (std::size_t i = 0; i < sizeof(storage_t<F>); ++i) code |= static_cast<std::uint32_t>(bytes[i]) << (8 * i);
  return code;
}
template <format F>
constexpr void store_unit(std::uint8_t* bytes, std::uint32_t code) {
  for (std::size_t i = 0; i < sizeof(storage_t<F>); ++i) bytes[i] = static_cast<std::uint8_t>(code >> (8 * i));
}

}  // namespace qtensor::detail
