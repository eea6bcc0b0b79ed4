// oneDNN's data types as formats, and its random numbers for stochastic rounding (NUMERICS 1.1, 5.2, 5.6).
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <qtensor/format/e8m0.hpp>
#include <qtensor/format/integer.hpp>
#include <qtensor/policy/rounding.hpp>
#include <qtensor/tensor/shape.hpp>
#include <string_view>
#include <type_traits>

namespace qtensor::compat::onednn {

// ---- Data types ----------------------------------------------------------------------------------------------------

/// Types of buffers, by their names. The document gives no numbers; these are ours.
enum class data_type { undef, f32, bf16, f16, f8_e5m2, f8_e4m3, f4_e2m1, e8m0, s32, s8, u8, s4, u4 };

namespace detail {

template <data_type Type, format F, fixed_string Name>
struct typed {
  static constexpr data_type value = Type;
  using type = F;
  static constexpr auto name = Name;
};
template <class... T>
struct type_list {};
using types = type_list<typed<data_type::f32, f32, "f32">, typed<data_type::bf16, bf16, "bf16">,
                        typed<data_type::f16, f16, "f16">, typed<data_type::f8_e5m2, e5m2, "f8_e5m2">,
                        typed<data_type::f8_e4m3, e4m3, "f8_e4m3">, typed<data_type::f4_e2m1, e2m1, "f4_e2m1">,
                        typed<data_type::e8m0, e8m0, "e8m0">, typed<data_type::s32, int32, "s32">,
                        typed<data_type::s8, int8, "s8">, typed<data_type::u8, uint8, "u8">,
                        typed<data_type::s4, int4, "s4">, typed<data_type::u4, uint4, "u4">>;

template <class Use, class... T>
constexpr bool use_type(data_type type, Use& use, type_list<T...>) {
  return ((type == T::value && (use(T{}), true)) || ...);
}

}  // namespace detail

/// Calls use(std::type_identity<F>{}) with the format F of a data type; throws where it has none (`undef`, numbers that
/// are no data type).
template <class Use>
constexpr void with_format(data_type type, Use use) {
  const auto unwrap = [&use]<class T>(T) { use(std::type_identity<typename T::type>{}); };
  require(detail::use_type(type, unwrap, detail::types{}), "oneDNN data type ", static_cast<int>(type),
          " is not one of those with a format here: f32, bf16, f16, f8_e5m2, f8_e4m3, f4_e2m1, e8m0, s32, s8, u8, s4 "
          "and u4.");
}

/// The name of a data type; "undef" where it is none of those above.
constexpr std::string_view name_of(data_type type) {
  std::string_view name = "undef";
  const auto take = [&name]<class T>(T) { name = T::name; };
  detail::use_type(type, take, detail::types{});
  return name;
}

/// Bits of an element; 0 where the data type has no format.
constexpr int bits_of_type(data_type type) {
  int bits = 0;
  const auto take = [&bits]<class T>(T) { bits = T::type::bits; };
  detail::use_type(type, take, detail::types{});
  return bits;
}

constexpr bool is_integer(data_type type) { return type >= data_type::s32 && type <= data_type::u4; }

namespace detail {

/// Throws on types that a bias and the result of a convolution do not have.
constexpr void check_plain_type(std::string_view what, data_type type) {
  require(type == data_type::f32 || type == data_type::bf16 || type == data_type::f16 || type == data_type::s32 ||
              type == data_type::s8 || type == data_type::u8,
          what, " is of type ", name_of(type), "; it is f32, bf16, f16, s32, s8 or u8.");
}

}  // namespace detail

/// Bytes of a dense array of n elements: two 4-bit codes a byte, even elements in the low half, the last half 0. Throws
/// where that overflows.
constexpr index_t byte_count(data_type type, index_t n) {
  const int bits = bits_of_type(type);
  return bits < 8 ? divide_up(n, 2) : qtensor::detail::checked_product(n, bits / 8);
}

// ---- Random numbers ------------------------------------------------------------------------------------------------

/// The word of an index in the release 3.12.1 and in its 2026-08 source: the same for all four indices of a group.
///   philox(0, 12345) == philox(3, 12345) == 0x3CFF5B8A
constexpr std::uint32_t philox(std::uint32_t index, std::uint32_t seed) {
  const std::uint32_t x = index & ~3u;
  return philox_words({x, x + 1, x, x + 3}, {seed, seed})[2];
}
/// The same in the source of 2025-03, which no program that was run still has.
///   philox_2025(0, 12345) == 0xECC61752
constexpr std::uint32_t philox_2025(std::uint32_t index, std::uint32_t seed) {
  const std::uint32_t x = index & ~3u;
  return philox_words({x, x + 1, x + 2, x + 3}, {seed, seed})[index & 3u];
}
/// The word of a 64-bit index, seed and offset.                      philox(5, 0x123456789ABCDEF, 7) == 0x35F740C8
constexpr std::uint32_t philox(std::uint64_t index, std::uint64_t seed, std::uint64_t offset) {
  const auto low = [](std::uint64_t v) { return static_cast<std::uint32_t>(v); };
  const std::uint64_t x = index & ~std::uint64_t{3};
  return philox_words({low(offset), low(offset >> 32), low(x), low(x >> 32)}, {low(seed), low(seed >> 32)})[index & 3];
}

/// Which of them a stochastic rounding draws from.
enum class generator { current, source_2025_03 };

/// What is added to the bits of a number before they are cut: 8 bits where the destination has 16, 16 bits where it has
/// 8. Fewer than are discarded, at their low end, so that the rounding is biased toward zero (NUMERICS 5.6).
constexpr std::uint32_t rounding_bias(std::uint32_t index, std::uint32_t seed, int destination_bits,
                                      generator from = generator::current) {
  const std::uint32_t bits = destination_bits == 16 ? 8 : 16, shares = 32 / bits, word = index / shares;
  const std::uint32_t drawn = from == generator::source_2025_03 ? philox_2025(word, seed) : philox(word, seed);
  return drawn >> (bits * (index % shares)) & low_bits(static_cast<int>(bits));
}

/// x on the grid of F (bf16, f16, e4m3, e5m2) as oneDNN's stochastic rounding has it: bits plus bias, cut, kept among
/// the finite numbers, and +0 below the smallest normal one, whatever the sign. A NaN stays.
///   stochastically_rounded<e4m3>(1.124f, 0x5B8A) == 1.125f
template <format F>
constexpr float stochastically_rounded(float x, std::uint32_t bias) {
  static_assert(std::is_same_v<F, bf16> || std::is_same_v<F, f16> || std::is_same_v<F, e4m3> || std::is_same_v<F, e5m2>,
                "qtensor: oneDNN rounds stochastically to bf16, f16, f8_e4m3 and f8_e5m2; `stochastic` takes any "
                "format.");
  if (is_nan(x)) return x;
  constexpr std::uint32_t cut = low_bits(23 - F::mantissa_bits);
  const float r = float_of((bits_of(x) + (bias & cut)) & ~cut);
  constexpr float smallest = F::decode(1u << F::mantissa_bits);
  if (magnitude(r) < smallest) return 0.f;
  return r < F::min ? F::min : r > F::max ? F::max : r;
}

/// The same as a rounding of schemes and of `encode`; element i draws for the index i + Offset.
///   with<S, onednn::stochastic_rounding<12345>>
template <std::uint32_t Seed = 0, std::uint32_t Offset = 0>
struct stochastic_rounding {
  using slot = slot::rounding;
  static constexpr std::uint32_t seed = Seed;
  static constexpr auto name = "onednn::stochastic_rounding<" + number_name<static_cast<index_t>(Seed)>() + "," +
                               number_name<static_cast<index_t>(Offset)>() + ">";

  /// The bias of 8-bit destinations in bits 0 to 15, that of 16-bit ones in bits 16 to 23.
  static constexpr std::uint32_t random_word(std::uint64_t index) {
    const std::uint32_t i = static_cast<std::uint32_t>(index) + Offset;
    return rounding_bias(i, Seed, 8) | rounding_bias(i, Seed, 16) << 16;
  }
  template <format F>
  static constexpr float before(float x, std::uint32_t word) {
    return stochastically_rounded<F>(x, F::bits == 16 ? word >> 16 : word & 0xFFFFu);
  }
  /// Nothing is left to round: `before` gave a number of the format.
  static constexpr bool up(std::uint32_t, int, std::uint32_t) { return false; }
};

}  // namespace qtensor::compat::onednn
