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
    const index_t per_byte = 8 / bits;
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

template <class L>
concept interleaved_layout = requires {
  requires L::interleaved_blocks;
};

}  // namespace qtensor
