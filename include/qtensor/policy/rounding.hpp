// Rounding policies: which neighbour a value between two codes goes to.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <qtensor/format/wide.hpp>
#include <qtensor/policy/slot.hpp>

namespace qtensor {

/// What lies below the last kept digit: nothing, less than half, exactly half, more.
enum class remainder { zero, below_half, half, above_half };

/// Ties to even. IEEE default; ONNX, StableHLO, OCP MX, CANN "rint".            2.5 -> 2, -0.5 -> -0
struct nearest_even {
  using slot = slot::rounding;
  static constexpr fixed_string name = "nearest_even";
  static constexpr bool up(bool, bool odd, remainder r) { return r > remainder::half || (r == remainder::half && odd); }
};

/// Ties away from zero. CANN "round", ggml q8_0, microxcaling's default.        2.5 -> 3, -0.5 -> -1
struct nearest_away {
  using slot = slot::rounding;
  static constexpr fixed_string name = "nearest_away";
  static constexpr bool up(bool, bool, remainder r) { return r >= remainder::half; }
};

/// Toward minus infinity. CANN "floor" (not microxcaling's, which is toward_zero). 2.5 -> 2, -0.5 -> -1
struct toward_negative {
  using slot = slot::rounding;
  static constexpr fixed_string name = "toward_negative";
  static constexpr bool up(bool negative, bool, remainder r) { return negative && r != remainder::zero; }
};

/// Toward plus infinity. ONNX's round_mode "up" for e8m0.                        2.5 -> 3, -0.5 -> -0
struct toward_positive {
  using slot = slot::rounding;
  static constexpr fixed_string name = "toward_positive";
  static constexpr bool up(bool negative, bool, remainder r) { return !negative && r != remainder::zero; }
};

/// Truncation. microxcaling "floor", ONNX's round_mode "down".                   2.5 -> 2, -0.5 -> -0
struct toward_zero {
  using slot = slot::rounding;
  static constexpr fixed_string name = "toward_zero";
  static constexpr bool up(bool, bool, remainder) { return false; }
};

/// Nearest even twice, through f16 first: oneDNN's f32 -> FP8 (NUMERICS 0.5). 0x43C807EF -> e4m3 7C, not 7D.
struct via_f16 {
  using slot = slot::rounding;
  using intermediate = f16;
  static constexpr fixed_string name = "via_f16";
  static constexpr bool up(bool negative, bool odd, remainder r) { return nearest_even::up(negative, odd, r); }
};

/// Unbiased stochastic rounding: a value goes to a neighbour with a probability equal to its closeness. The random word
/// of element i is the first word of Philox4x32-10 with counter {i_lo, i_hi, 0, 0} and key {Seed, Seed} (NUMERICS 5.6);
/// as many of its low bits as are discarded are added to the discarded digits, and a carry goes up.
template <std::uint32_t Seed = 0>
struct stochastic {
  using slot = slot::rounding;
  static constexpr auto name = "stochastic<" + number_name<static_cast<index_t>(Seed)>() + ">";
  static constexpr std::uint32_t seed = Seed;
  /// `discarded` of `width` (1 .. 32) bits lies below the last kept digit.
  static constexpr bool up(std::uint32_t discarded, int width, std::uint32_t random_word) {
    return ((std::uint64_t{discarded} + (random_word & low_bits(width))) >> width) != 0;
  }
};

// A rounding may also look at the whole number first: an optional
//        template <format F> static constexpr float before(float x)
// gives the number that is rounded in x's place, NaNs and infinities included. Vendors' float tricks live there. A
// random rounding's takes the word too, `before<F>(x, random_word)`, and may bring its own generator,
// `random_word(index)` of a 64-bit element index. For kernels it may say what it comes to where x lies near F's
// range: `using ordinary = nearest_away`, say, or truncated_sum.

/// The lowest value of a format plus int(x + (0.5 - lowest)), where the sum is rounded to f32: what C code does.
struct truncated_sum {};

template <class P>
concept deterministic_rounding = fills<P, slot::rounding> && requires(bool b, remainder r) {
  { P::up(b, b, r) } -> std::same_as<bool>;
};
template <class P>
concept random_rounding = fills<P, slot::rounding> && requires(std::uint32_t word, int width) {
  { P::up(word, width, word) } -> std::same_as<bool>;
};
namespace detail {
struct member_before {
  int before;
};
template <class P>
struct with_member_before : P, member_before {};  // two members of that name, unless P has none
}  // namespace detail
/// Has anything called `before`.
template <class P>
concept names_before = !std::is_final_v<P> && !requires {
  &detail::with_member_before<P>::before;
};
/// Looks at whole numbers first.
template <class P, class F>
concept rounds_before = requires(float x) {
  { P::template before<F>(x) } -> std::same_as<float>;
}
|| requires(float x, std::uint32_t word) {
  { P::template before<F>(x, word) } -> std::same_as<float>;
};
/// What a user's own rounding has to offer: a constexpr decision whether the magnitude steps up. It never calls the
/// math library, so it serves integers, minifloats and tables alike.
template <class P>
concept rounding_policy = deterministic_rounding<P> || random_rounding<P>;

/// nearest_even, or nearest_away for formats that say `ties_away` (hif8).
template <format F>
struct default_rounding {
  using type = nearest_even;
};
template <format F>
requires requires { requires F::ties_away; }
struct default_rounding<F> {
  using type = nearest_away;
};
template <format F>
using default_rounding_t = typename default_rounding<F>::type;

/// Philox4x32-10: the four words of a counter under a key.
constexpr std::array<std::uint32_t, 4> philox_words(std::array<std::uint32_t, 4> counter,
                                                    std::array<std::uint32_t, 2> key) {
  auto [c0, c1, c2, c3] = counter;
  auto [k0, k1] = key;
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = std::uint64_t{0xD2511F53u} * c0, b = std::uint64_t{0xCD9E8D57u} * c2;
    c0 = static_cast<std::uint32_t>(b >> 32) ^ c1 ^ k0;
    c1 = static_cast<std::uint32_t>(b);
    c2 = static_cast<std::uint32_t>(a >> 32) ^ c3 ^ k1;
    c3 = static_cast<std::uint32_t>(a);
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return {c0, c1, c2, c3};
}

/// The first word for a 64-bit element index. Known answer: philox(0, 0) = 0x6627e8d5.
constexpr std::uint32_t philox(std::uint64_t index, std::uint32_t seed) {
  return philox_words({static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(index >> 32), 0, 0},
                      {seed, seed})[0];
}

}  // namespace qtensor
