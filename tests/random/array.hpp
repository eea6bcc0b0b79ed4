// What random programs over raw memory share: arrays that begin anywhere, and multi-dimensional extents.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstring>

#include "dice.hpp"

namespace fuzz {

/// `bytes` bytes at any multiple of `unit` behind a 16-byte boundary, between others that nobody may write; now and
/// then they end where the memory does, so that a sanitizer sees what reads behind them.
class array {
 public:
  array(dice& d, index_t bytes, index_t unit) : first_(d.chance(2) ? 0 : unit * d.within(0, 64 / unit)), bytes_(bytes) {
    memory_.assign(static_cast<std::size_t>(first_ + bytes + (d.chance(2) ? 0 : 64)), untouched);
  }

  std::uint8_t* data() { return memory_.data() + first_; }
  const std::uint8_t* data() const { return memory_.data() + first_; }
  index_t bytes() const { return bytes_; }
  /// Element i of little-endian elements of 4, 8, 16 or 32 bits; 4-bit ones lie low first.
  std::uint32_t get(index_t i, int bits) const {
    std::uint32_t code = 0;
    if (bits == 4) return data()[i / 2] >> (i % 2 * 4) & 15u;
    std::memcpy(&code, data() + i * (bits / 8), static_cast<std::size_t>(bits / 8));
    return code;
  }
  void set(index_t i, int bits, std::uint32_t code) {
    if (bits != 4)
      std::memcpy(data() + i * (bits / 8), &code, static_cast<std::size_t>(bits / 8));
    else
      data()[i / 2] =
          static_cast<std::uint8_t>((data()[i / 2] & (i % 2 == 0 ? 0xF0u : 0x0Fu)) | (code & 15u) << (i % 2 * 4));
  }
  friend bool operator==(const array& a, const array& b) { return a.memory_ == b.memory_; }

 private:
  static constexpr std::uint8_t untouched = 0xA5;
  index_t first_, bytes_;
  std::vector<std::uint8_t> memory_;
};

/// `rank` extents of at most `most` elements together: most often one of them is long.
inline std::vector<index_t> shape(dice& d, index_t rank, index_t most) {
  std::vector<index_t> out(static_cast<std::size_t>(rank));
  const index_t long_one = d.within(0, rank - 1);
  index_t left = most;
  for (index_t k = 0; k < rank; ++k) {
    const index_t at = (long_one + k) % rank;
    const index_t n = d.extent(std::max<index_t>(1, k == 0 ? left : std::min<index_t>(left, 70)));
    out[static_cast<std::size_t>(at)] = n;
    left /= std::max<index_t>(1, n);
  }
  return out;
}

/// A divisor of n, which is at least 1.
inline index_t divisor(dice& d, index_t n) {
  std::vector<index_t> all;
  for (index_t i = 1; i <= n; ++i)
    if (n % i == 0) all.push_back(i);
  return all[static_cast<std::size_t>(d.within(0, static_cast<index_t>(all.size()) - 1))];
}

template <class List>
std::string text(const List& list) {
  std::string out = "{";
  for (const auto v : list) out += ' ' + std::to_string(v);
  return out + " }";
}

}  // namespace fuzz
