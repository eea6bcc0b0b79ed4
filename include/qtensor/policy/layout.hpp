// Layout policies: where codes and scales lie in memory.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <qtensor/policy/slot.hpp>

namespace qtensor {

// Orders of sub-byte codes. `bit(i, n, bits)` is the first bit of code i in a run of n codes, bit 0 the lowest of byte
// 0.

/// Code 0 in the lowest bits. ONNX, oneDNN, torchao, CANN; six-bit codes run across bytes.
struct low_first {
  static constexpr fixed_string name = "low_first";
  static constexpr index_t bit(index_t i, index_t, int bits) { return i * bits; }
};
/// Code 0 in the highest bits of its byte (4- and 2-bit codes).
struct high_first {
  static constexpr fixed_string name = "high_first";
  static constexpr index_t bit(index_t i, index_t, int bits) {
    const index_t per_byte = bits < 8 ? 8 / bits : 1;
    return (i / per_byte * per_byte + (per_byte - 1 - i % per_byte)) * bits;
  }
};
/// Byte j holds codes j (low) and j + n/2 (high) of a block of n 4-bit codes. ggml.
struct split_halves {
  static constexpr fixed_string name = "split_halves";
  static constexpr index_t bit(index_t i, index_t n, int bits) {
    const index_t half = n / 2;
    return i < half ? 2 * bits * i : 2 * bits * (i - half) + bits;
  }
};

/// Five-bit codes in blocks of n: bit 4 of code i is bit i of the first n / 8 bytes, the low nibbles follow as in
/// split_halves. ggml's Q5. Its codes lie in two places, so it loads and stores them itself instead of naming one bit.
struct high_bits_then_halves {
  static constexpr fixed_string name = "high_bits_then_halves";
  static constexpr int code_bits = 5;
  static constexpr std::uint32_t load(const std::uint8_t* bytes, index_t i, index_t n) {
    const index_t low = split_halves::bit(i, n, 4);
    const std::uint32_t nibble = (std::uint32_t{bytes[n / 8 + low / 8]} >> (low % 8)) & 15u;
    return nibble | ((std::uint32_t{bytes[i / 8]} >> (i % 8)) & 1u) << 4;
  }
  static constexpr void store(std::uint8_t* bytes, index_t i, index_t n, std::uint32_t code) {
    const index_t low = split_halves::bit(i, n, 4);
    std::uint8_t& nibbles = bytes[n / 8 + low / 8];
    std::uint8_t& high = bytes[i / 8];
    nibbles = static_cast<std::uint8_t>((nibbles & ~(15u << (low % 8))) | (code & 15u) << (low % 8));
    high = static_cast<std::uint8_t>((high & ~(1u << (i % 8))) | ((code >> 4) & 1u) << (i % 8));
  }
};

/// Codes, scales, zero points in an array each; rows of codes (along the contiguous axis) start on a byte. The default.
template <class CodeOrder = low_first>
struct planar {
  using slot = slot::layout;
  using order = CodeOrder;
  static constexpr auto name = "planar<" + CodeOrder::name + ">";
};

/// Block after block, each its scale, then its offset if it has one, then its codes, little endian, without padding. A
/// short last block takes a whole block's room. For groups along the contiguous axis. ggml.
template <class CodeOrder = low_first>
struct interleaved {
  using slot = slot::layout;
  using order = CodeOrder;
  static constexpr bool interleaved_blocks = true;
  static constexpr auto name = "interleaved<" + CodeOrder::name + ">";
};

/// As interleaved, with the sum of a block's codes times its scale, stored as F, behind the scale: what a product needs
/// of a block that meets zero points or offsets. Written with the codes, never read for their values. ggml's Q8_1.
template <class CodeOrder, class F>
struct interleaved_with_sum {
  using slot = slot::layout;
  using order = CodeOrder;
  using code_sum_format = F;
  static constexpr bool interleaved_blocks = true;
  static constexpr auto name = "interleaved_with_sum<" + CodeOrder::name + ", " + F::name + ">";
};

/// As interleaved, with `Groups` groups in a block: their scales, then their codes, a group's codes in an order of
/// their own. ggml's NVFP4: four groups of 16.
template <index_t Groups, class CodeOrder = low_first>
struct interleaved_groups {
  static_assert(Groups > 0, "qtensor: interleaved_groups<N> needs at least one group in a block.");
  using slot = slot::layout;
  using order = CodeOrder;
  static constexpr bool interleaved_blocks = true;
  static constexpr index_t groups = Groups;
  static constexpr auto name = "interleaved_groups<" + number_name<Groups>() + ", " + CodeOrder::name + ">";
};

template <class L>
concept code_layout = requires {
  typename L::order;
};
template <class L>
concept interleaved_layout = requires {
  requires L::interleaved_blocks;
};

}  // namespace qtensor
