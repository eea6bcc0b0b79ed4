// Batches in plain C++: xsimd::batch for scalar_arch, with the members and operators kernels use.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <qtensor/simd/abi.hpp>
#include <qtensor/simd/ops_intrinsics.hpp>

#include <xsimd/xsimd.hpp>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace qtensor::inline QTENSOR_ABI::simd {

/// Four lanes of plain C++: kernels run on it where no vector unit is known, and tests compare it with the others.
/// `xsimd::batch<T, scalar_arch>` is ours, below.
struct scalar_arch {};

namespace detail {

inline constexpr std::size_t portable_bytes = 16;

// Integer lanes wrap around, as vector registers do: arithmetic happens in 32 unsigned bits, then drops the upper ones.
template <class T>
using wrapping = std::conditional_t<std::is_integral_v<T>, std::uint32_t, T>;

}  // namespace detail

}  // namespace qtensor::inline QTENSOR_ABI::simd

namespace xsimd {

/// One truth value per lane.
template <class T>
class batch_bool<T, qtensor::simd::scalar_arch> {
 public:
  static constexpr std::size_t size = qtensor::simd::detail::portable_bytes / sizeof(T);

  batch_bool() = default;
  batch_bool(bool value) { lane.fill(value); }

  bool get(std::size_t i) const { return lane[i]; }

  friend batch_bool operator&(const batch_bool& a, const batch_bool& b) {
    return each(a, b, [](bool x, bool y) { return x && y; });
  }
  friend batch_bool operator|(const batch_bool& a, const batch_bool& b) {
    return each(a, b, [](bool x, bool y) { return x || y; });
  }
  friend batch_bool operator^(const batch_bool& a, const batch_bool& b) {
    return each(a, b, [](bool x, bool y) { return x != y; });
  }
  friend batch_bool operator~(const batch_bool& a) {
    return each(a, a, [](bool x, bool) { return !x; });
  }

  std::array<bool, size> lane;

 private:
  template <class F>
  static batch_bool each(const batch_bool& a, const batch_bool& b, F f) {
    batch_bool r;
    for (std::size_t i = 0; i < size; ++i) r.lane[i] = f(a.lane[i], b.lane[i]);
    return r;
  }
};

/// Sixteen bytes of lanes. Every operation acts lane by lane exactly as the scalar operator does; integers wrap around.
template <class T>
class batch<T, qtensor::simd::scalar_arch> {
 public:
  static constexpr std::size_t size = qtensor::simd::detail::portable_bytes / sizeof(T);
  using value_type = T;
  using arch_type = qtensor::simd::scalar_arch;
  using batch_bool_type = batch_bool<T, arch_type>;

  batch() = default;
  batch(T value) { lane.fill(value); }

  static batch load_unaligned(const T* from) {
    batch r;
    std::memcpy(r.lane.data(), from, sizeof r.lane);
    return r;
  }
  static batch load_aligned(const T* from) { return load_unaligned(from); }
  void store_unaligned(T* to) const { std::memcpy(to, lane.data(), sizeof lane); }
  void store_aligned(T* to) const { store_unaligned(to); }
  T get(std::size_t i) const { return lane[i]; }

  friend batch operator+(const batch& a, const batch& b) {
    return each(a, b, [](wrap x, wrap y) { return x + y; });
  }
  friend batch operator-(const batch& a, const batch& b) {
    return each(a, b, [](wrap x, wrap y) { return x - y; });
  }
  friend batch operator*(const batch& a, const batch& b) {
    return each(a, b, [](wrap x, wrap y) { return x * y; });
  }
  friend batch operator/(const batch& a, const batch& b) {
    return each(a, b, [](T x, T y) { return x / y; });
  }
  friend batch operator&(const batch& a, const batch& b) {
    return each_bits(a, b, [](word x, word y) { return x & y; });
  }
  friend batch operator|(const batch& a, const batch& b) {
    return each_bits(a, b, [](word x, word y) { return x | y; });
  }
  friend batch operator^(const batch& a, const batch& b) {
    return each_bits(a, b, [](word x, word y) { return x ^ y; });
  }
  friend batch operator~(const batch& a) {
    return each_bits(a, a, [](word x, word) { return ~x; });
  }
  friend batch operator-(const batch& a) {
    if constexpr (std::is_floating_point_v<T>) {
      return each(a, a, [](T x, T) { return -x; });
    } else {
      return batch(T(0)) - a;
    }
  }
  friend batch operator<<(const batch& a, int count) {
    return each(a, a, [count](wrap x, wrap) { return x << count; });
  }
  friend batch operator>>(const batch& a, int count) {
    return each(a, a, [count](T x, T) { return x >> count; });
  }

  friend batch_bool_type operator==(const batch& a, const batch& b) {
    return compare(a, b, [](T x, T y) { return x == y; });
  }
  friend batch_bool_type operator!=(const batch& a, const batch& b) {
    return compare(a, b, [](T x, T y) { return x != y; });
  }
  friend batch_bool_type operator<(const batch& a, const batch& b) {
    return compare(a, b, [](T x, T y) { return x < y; });
  }
  friend batch_bool_type operator<=(const batch& a, const batch& b) {
    return compare(a, b, [](T x, T y) { return x <= y; });
  }
  friend batch_bool_type operator>(const batch& a, const batch& b) { return b < a; }
  friend batch_bool_type operator>=(const batch& a, const batch& b) { return b <= a; }

  batch& operator+=(const batch& b) { return *this = *this + b; }
  batch& operator-=(const batch& b) { return *this = *this - b; }
  batch& operator*=(const batch& b) { return *this = *this * b; }
  batch& operator/=(const batch& b) { return *this = *this / b; }
  batch& operator&=(const batch& b) { return *this = *this & b; }
  batch& operator|=(const batch& b) { return *this = *this | b; }
  batch& operator^=(const batch& b) { return *this = *this ^ b; }
  batch& operator<<=(int count) { return *this = *this << count; }
  batch& operator>>=(int count) { return *this = *this >> count; }

  std::array<T, size> lane;

 private:
  using wrap = qtensor::simd::detail::wrapping<T>;
  static_assert(sizeof(T) <= 4, "qtensor: batches have lanes of 8, 16 or 32 bits.");
  using narrow_word = std::conditional_t<sizeof(T) == 2, std::uint16_t, std::uint8_t>;
  using word = std::conditional_t<sizeof(T) == 4, std::uint32_t, narrow_word>;

  template <class F>
  static batch each(const batch& a, const batch& b, F f) {
    batch r;
    for (std::size_t i = 0; i < size; ++i) r.lane[i] = static_cast<T>(f(a.lane[i], b.lane[i]));
    return r;
  }
  template <class F>
  static batch each_bits(const batch& a, const batch& b, F f) {
    batch r;
    for (std::size_t i = 0; i < size; ++i) {
      const word bits = static_cast<word>(f(std::bit_cast<word>(a.lane[i]), std::bit_cast<word>(b.lane[i])));
      r.lane[i] = std::bit_cast<T>(bits);
    }
    return r;
  }
  template <class F>
  static batch_bool_type compare(const batch& a, const batch& b, F f) {
    batch_bool_type r;
    for (std::size_t i = 0; i < size; ++i) r.lane[i] = f(a.lane[i], b.lane[i]);
    return r;
  }
};

}  // namespace xsimd
