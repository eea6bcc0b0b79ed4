// Memory of kernels: arrays that begin on a cache line and end with one.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstring>
#include <qtensor/core/line_memory.hpp>
#include <qtensor/simd/arch.hpp>
#include <qtensor/tensor/shape.hpp>
#include <utility>

namespace qtensor::inline QTENSOR_ABI::ops {

/// Arrays of whole cache lines: of zeros, or of whatever was there.
template <class T>
class line_array {
  using memory = qtensor::detail::line_memory;

 public:
  line_array() = default;
  explicit line_array(index_t n) : line_array(for_overwrite(n)) { std::memset(memory_.data(), 0, bytes(n)); }
  static line_array for_overwrite(index_t n) {
    line_array out;
    out.size_ = n;
    out.memory_ = memory(bytes(n));
    return out;
  }
  T* data() { return reinterpret_cast<T*>(memory_.data()); }
  const T* data() const { return reinterpret_cast<const T*>(memory_.data()); }
  index_t size() const { return size_; }
  T& operator[](index_t i) { return data()[i]; }
  const T& operator[](index_t i) const { return data()[i]; }

 private:
  static std::size_t bytes(index_t n) {
    return static_cast<std::size_t>(round_up(qtensor::detail::checked_product(n, sizeof(T)), memory::line));
  }
  index_t size_ = 0;
  memory memory_;
};

/// Arrays in one allocation, each from a line on: asks for `bytes` of all of them, of each room<T>(n).
class line_parts {
 public:
  explicit line_parts(index_t bytes) : memory_(line_array<std::uint8_t>::for_overwrite(bytes)) {}
  template <class T>
  static index_t room(index_t n) {
    constexpr index_t line = simd::cache_line;
    return round_up(n * index_t{sizeof(T)}, line);
  }
  /// The next one, of n elements with no values yet; none where n is 0.
  template <class T>
  T* take(index_t n) {
    const index_t first = std::exchange(used_, used_ + room<T>(n));
    QTENSOR_ASSERT(used_ <= memory_.size(), "parts have room");
    return n > 0 ? reinterpret_cast<T*>(memory_.data() + first) : nullptr;
  }

 private:
  line_array<std::uint8_t> memory_;
  index_t used_ = 0;
};

}  // namespace qtensor::inline QTENSOR_ABI::ops
