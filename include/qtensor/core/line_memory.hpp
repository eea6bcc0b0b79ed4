// Memory that begins on a cache line.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace qtensor::detail {

/// Bytes from a cache line on, of any content. The line is found in memory that is one longer: an allocator that is
/// asked for aligned memory takes longer than a short kernel (glibc 2.36: its lists are merged again and again).
class line_memory {
 public:
  static constexpr std::size_t line = 64;
  line_memory() = default;
  explicit line_memory(std::size_t bytes) : room_(std::make_unique_for_overwrite<std::byte[]>(bytes + line)) {}
  /// Null where there is no memory.
  std::byte* data() const { return room_.get() + -reinterpret_cast<std::uintptr_t>(room_.get()) % line; }

 private:
  std::unique_ptr<std::byte[]> room_;
};

}  // namespace qtensor::detail
