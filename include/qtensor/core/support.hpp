// Words every floor uses: indices, names known at compile time, and floats seen as bits.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <qtensor/core/config.hpp>
#include <string_view>

namespace qtensor {

/// Sizes, strides and positions, in elements unless a name says bytes. Signed; tensors beyond 2^31 elements work.
using index_t = std::ptrdiff_t;

/// "Known only at run time", for extents, block sizes and group sizes. Differs from every axis number.
inline constexpr index_t dynamic = std::numeric_limits<index_t>::min();

/// The axis that is contiguous in row-major order, counted from the end as all negative axes are.
inline constexpr index_t last_axis = -1;

/// A name that is part of a type: `static constexpr qtensor::fixed_string name = "nf4";`
template <std::size_t N>
struct fixed_string {
  char text[N + 1] = {};

  constexpr fixed_string() = default;
  constexpr fixed_string(const char (&literal)[N + 1]) {
    for (std::size_t i = 0; i < N; ++i) text[i] = literal[i];
  }
  constexpr operator std::string_view() const { return {text, N}; }
  constexpr const char* c_str() const { return text; }
  constexpr bool operator==(const fixed_string&) const = default;
};
template <std::size_t N>
fixed_string(const char (&)[N]) -> fixed_string<N - 1>;

template <std::size_t A, std::size_t B>
constexpr fixed_string<A + B> operator+(const fixed_string<A>& a, const fixed_string<B>& b) {
  fixed_string<A + B> joined;
  for (std::size_t i = 0; i < A; ++i) joined.text[i] = a.text[i];
  for (std::size_t i = 0; i < B; ++i) joined.text[A + i] = b.text[i];
  return joined;
}
template <std::size_t A, std::size_t N>
constexpr auto operator+(const fixed_string<A>& a, const char (&b)[N]) {
  return a + fixed_string(b);
}
template <std::size_t N, std::size_t B>
constexpr auto operator+(const char (&a)[N], const fixed_string<B>& b) {
  return fixed_string(a) + b;
}

namespace detail {

template <std::size_t N>
void takes_name(const fixed_string<N>&);
/// Has a `name` that can become part of another's.
template <class T>
concept named = requires {
  takes_name(T::name);
};

template <class T, class... Choices>
concept one_of = (std::same_as<T, Choices> || ...);

}  // namespace detail

/// Decimal digits of V as a name; "dynamic" for `dynamic`.
template <index_t V>
constexpr auto number_name() {
  if constexpr (V == dynamic) {
    return fixed_string("dynamic");
  } else {
    constexpr std::size_t length = [] {
      std::size_t n = V < 0 ? 2 : 1;
      for (index_t rest = V / 10; rest != 0; rest /= 10) ++n;
      return n;
    }();
    fixed_string<length> digits;
    index_t rest = V < 0 ? -V : V;
    for (std::size_t i = length; i-- > (V < 0 ? 1 : 0); rest /= 10) digits.text[i] = static_cast<char>('0' + rest % 10);
    if (V < 0) digits.text[0] = '-';
    return digits;
  }
}

constexpr std::uint32_t bits_of(float x) { return std::bit_cast<std::uint32_t>(x); }
constexpr float float_of(std::uint32_t bits) { return std::bit_cast<float>(bits); }

inline constexpr std::uint32_t sign_bit = 0x80000000u;
inline constexpr std::uint32_t magnitude_bits = 0x7fffffffu;
inline constexpr std::uint32_t infinity_bits = 0x7f800000u;
inline constexpr std::uint32_t quiet_bit = 0x00400000u;
inline constexpr float infinity = std::numeric_limits<float>::infinity();
inline constexpr float quiet_nan = std::numeric_limits<float>::quiet_NaN();

constexpr bool is_nan(float x) { return (bits_of(x) & magnitude_bits) > infinity_bits; }
constexpr bool is_finite(float x) { return (bits_of(x) & magnitude_bits) < infinity_bits; }
constexpr bool is_negative(float x) { return (bits_of(x) & sign_bit) != 0; }
constexpr float magnitude(float x) { return float_of(bits_of(x) & magnitude_bits); }
/// A NaN of the same sign and payload that does not signal.
constexpr float quieted(float nan) { return float_of(bits_of(nan) | quiet_bit); }
/// What arithmetic made. Where its operands are numbers, none of them NaN, a NaN is the negative one: x86 makes it, and
/// so did the vendors' programs that were run; other CPUs, and compilers that fold constants, make the positive one.
constexpr float with_invalid_negative(float made, bool are_numbers) {
  return is_nan(made) && are_numbers ? -quiet_nan : made;
}

/// 2^exponent for -149 <= exponent <= 127, subnormals included; built from bits, so no mode of the CPU matters.
constexpr float exp2i(int exponent) {
  return float_of(exponent >= -126 ? static_cast<std::uint32_t>(exponent + 127) << 23 : 1u << (exponent + 149));
}

/// The low `count` bits set, 0 <= count <= 32.
constexpr std::uint32_t low_bits(int count) { return count >= 32 ? 0xffffffffu : (1u << count) - 1u; }

/// Blocks of b in a, the short last one included; a >= 0, b >= 1, however large.
constexpr index_t divide_up(index_t a, index_t b) { return a / b + (a % b > 0 ? 1 : 0); }
/// The smallest multiple of b that is not below a; a >= 0, b >= 1.
constexpr index_t round_up(index_t a, index_t b) { return divide_up(a, b) * b; }

}  // namespace qtensor
