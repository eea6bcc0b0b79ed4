// What a format is: the constexpr facts that give a stored code its meaning.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <concepts>
#include <qtensor/core/support.hpp>
#include <type_traits>

namespace qtensor {

/// The type a code decodes to: float, or std::int64_t for integers of more than 24 bits (which float cannot hold).
template <class T>
concept decoded_value = std::same_as<T, float> || std::same_as<T, std::int64_t>;

/// An empty type with constexpr facts. A user's own format needs just these (HACKING.md, "add a format"):
///   bits        1..32, the width of a code
///   min, max    the smallest and largest finite value; encoders saturate to them
///   is_integer  codes are two's complement or unsigned integers (only these take a zero point)
///   is_signed   has negative values
///   name        a fixed_string, spelled as OCP or the C++ type would spell it
///   decode(c)   the value of code c; NaN and infinities where the format has them
/// Optional: `storage`, the unsigned or signed type that holds a code (else the smallest unsigned one that fits);
/// `ties_away`, true where round half away is the format's own rule (else ties go to even); `fraction_bits` of fixed
/// point, whose codes count 2^-fraction_bits; `next_above_max`, what would follow max if the format went on, so that
/// numbers up to the middle between them round to max before any overflows; `keeps_nan_payload`, where a NaN keeps the
/// upper bits of an f32's.
template <class F>
concept format = detail::named<F> && requires(std::uint32_t code) {
  { F::bits } -> std::convertible_to<int>;
  { F::min } -> std::convertible_to<float>;
  { F::max } -> std::convertible_to<float>;
  { F::is_integer } -> std::convertible_to<bool>;
  { F::is_signed } -> std::convertible_to<bool>;
  { F::decode(code) } -> decoded_value;
}
&&(F::bits >= 1 && F::bits <= 32);

namespace detail {

template <int Bits>
using unsigned_storage =
    std::conditional_t<(Bits <= 8), std::uint8_t, std::conditional_t<(Bits <= 16), std::uint16_t, std::uint32_t>>;

template <class F>
struct storage_of {
  using type = unsigned_storage<F::bits>;
};
template <class F>
requires requires { typename F::storage; }
struct storage_of<F> {
  using type = typename F::storage;
};

}  // namespace detail

/// The type that holds one code (one byte for the sub-byte formats, which pack several codes into it).
template <format F>
using storage_t = typename detail::storage_of<F>::type;

/// Whether codes share bytes: two of 4 bits, four of 2 bits one byte, four of 6 bits three.
template <format F>
inline constexpr bool is_packed = F::bits < 8;
/// Bits from one code to the next in memory: codes that do not share a byte have a storage unit each.
template <format F>
inline constexpr int bits_in_memory = is_packed<F> ? F::bits : 8 * static_cast<int>(sizeof(storage_t<F>));

/// The real value of a code of any format as a float (integers of more than 24 bits are rounded to nearest even).
template <format F>
constexpr float decode(std::uint32_t code) {
  return static_cast<float>(F::decode(code));
}

/// Exponent of the largest power of two not above |x|; x finite and not zero.
constexpr int floor_log2(float x) {
  const std::uint32_t bits = bits_of(x) & magnitude_bits;
  return bits >= 0x00800000u ? static_cast<int>(bits >> 23) - 127 : std::bit_width(bits) - 150;
}

/// Exponent of a format's largest finite value: OCP's emax (8 for e4m3, 2 for e2m1, 6 for int8).
template <format F>
inline constexpr int max_exponent = floor_log2(static_cast<float>(F::max));

}  // namespace qtensor
