// Mirrors include/qtensor/simd/ops_packed.hpp.
// SPDX-License-Identifier: BSD-3-Clause
#include <array>
#include <cmath>
#include <qtensor/simd/ops_packed.hpp>

#include "check.hpp"

namespace simd = qtensor::simd;
using qtensor::bits_of;
using qtensor::float_of;
using qtensor::index_t;

namespace {

// The definition: code i occupies bits [Bits * i, Bits * (i + 1)), bit 0 being the lowest of byte 0.
std::uint32_t code_of(const std::vector<std::uint8_t>& packed, int bits, index_t i) {
  std::uint32_t code = 0;
  for (index_t b = 0; b < bits; ++b) {
    const index_t at = bits * i + b;
    code |= static_cast<std::uint32_t>(packed[static_cast<std::size_t>(at / 8)] >> (at % 8) & 1) << b;
  }
  return code;
}

template <int Bits, class Arch>
void check_spread() {
  if constexpr (simd::spreads_codes<Bits, Arch>) {
    constexpr index_t n = 4 * simd::lanes<Arch>;
    for (int round = 0; round < 50; ++round)
      for (const bool at_start : {false, true}) {
        const auto packed = check::random_codes<std::uint8_t>(n * Bits / 8);
        check::fenced<std::uint8_t> from(packed, at_start);
        std::array<std::uint8_t, static_cast<std::size_t>(n)> codes;
        simd::store(codes.data(), simd::spread_codes<Bits, Arch>(from.data()));
        for (index_t i = 0; i < n; ++i)
          if (codes[static_cast<std::size_t>(i)] != code_of(packed, Bits, i)) FAIL(Bits, " bits: code ", i);
      }
  }
}

template <int Bits, class Arch>
void check_packed() {
  constexpr index_t n = 4 * simd::lanes<Arch>;
  for (int round = 0; round < 50; ++round) {
    const auto codes = check::random_codes<std::uint8_t>(n);  // upper bits are not clean
    std::vector<std::uint8_t> packed(static_cast<std::size_t>(n));
    simd::store(packed.data(), simd::packed_codes<Bits, Arch>(simd::load<Arch>(codes.data())));
    for (index_t i = 0; i < n; ++i)
      if (code_of(packed, Bits, i) != (codes[static_cast<std::size_t>(i)] & qtensor::low_bits(Bits)))
        FAIL(Bits, " bits: code ", i);
  }
}

// x * 2^power where that is a normal number or zero, as bits of bf16; else nothing.
struct stepped {
  bool counts;
  std::uint32_t bits;
  stepped(std::uint32_t number, int power) {
    const float x = float_of(number << 16), y = std::ldexp(x, power);
    counts =
        x == 0.f || !std::isfinite(x) || (std::fabs(x) >= 0x1p-126f && std::fabs(y) >= 0x1p-126f && std::isfinite(y));
    bits = std::isfinite(x) ? bits_of(y) >> 16 : number;
  }
};

}  // namespace

TEST_CASE("spread_codes: codes in order, no byte beyond theirs is read") {
  check::on_every_arch([](auto arch) {
    static_assert(simd::spreads_codes<4, decltype(arch)> && simd::spreads_codes<6, decltype(arch)>);
    check_spread<2, decltype(arch)>();
    check_spread<3, decltype(arch)>();
    check_spread<4, decltype(arch)>();
    check_spread<5, decltype(arch)>();
    check_spread<6, decltype(arch)>();
    check_spread<7, decltype(arch)>();
  });
}

TEST_CASE("packed_codes: the lower bits of bytes, side by side") {
  check::on_every_arch([](auto arch) {
    check_packed<2, decltype(arch)>();
    check_packed<3, decltype(arch)>();
    check_packed<4, decltype(arch)>();
    check_packed<5, decltype(arch)>();
    check_packed<6, decltype(arch)>();
    check_packed<7, decltype(arch)>();
  });
}

TEST_CASE("nibble_words: the low four bits of each word, no byte beyond theirs is read") {
  check::on_every_arch([](auto arch) {
    using A = decltype(arch);
    constexpr index_t n = simd::lanes<A>;
    for (int round = 0; round < 50; ++round) {
      const auto packed = check::random_codes<std::uint8_t>(n / 2);
      check::fenced<std::uint8_t> from(packed, round % 2 == 0);
      std::array<std::uint32_t, static_cast<std::size_t>(n)> codes;
      simd::store(codes.data(), simd::nibble_words<A>(from.data()));
      for (index_t i = 0; i < n; ++i)
        if ((codes[static_cast<std::size_t>(i)] & 15) != code_of(packed, 4, i)) FAIL("code ", i);
    }
  });
}

TEST_CASE("step_exponents: times a power of two; zeros, infinities and NaN stay, and are foreign to the finite form") {
  check::on_every_arch([](auto arch) {
    using A = decltype(arch);
    constexpr auto n = static_cast<std::size_t>(2 * simd::lanes<A>);
    for (std::uint32_t number = 0; number < 0x10000u; number += number < 0x100u ? 1u : 0x3bu)
      for (const int power : {-100, -30, -1, 0, 1, 57, 126}) {
        const stepped want(number, power);
        if (!want.counts) continue;
        // Every second lane is 1 times 2.
        std::array<std::uint16_t, n> numbers, steps, all, finite;
        for (std::size_t i = 0; i < n; ++i) {
          numbers[i] = static_cast<std::uint16_t>(i % 2 == 0 ? number : 0x3f80u);
          steps[i] = static_cast<std::uint16_t>(i % 2 == 0 ? power * 128 : 128);
        }
        const auto v = simd::load<A>(numbers.data()), s = simd::load<A>(steps.data());
        simd::store(all.data(), simd::step_exponents<A>(v, s));
        simd::store(finite.data(), simd::step_finite_exponents<A>(v, s));
        const bool is_finite = (number & 0x7f80u) != 0x7f80u;
        for (std::size_t i = 0; i < n; ++i) {
          const std::uint32_t expected = i % 2 == 0 ? want.bits : 0x4000u;
          if (all[i] != expected || (is_finite && finite[i] != expected)) FAIL(number, " times 2^", power, " lane ", i);
        }
      }
  });
}

TEST_CASE("join_sixes: the low six bits of four batches, side by side") {
  check::on_every_arch([](auto arch) {
    using A = decltype(arch);
    if constexpr (simd::has_join_sixes<A>) {
      constexpr index_t n = 4 * simd::lanes<A>;
      const auto codes = check::random_codes<std::uint8_t>(4 * n);
      std::vector<std::uint8_t> packed(static_cast<std::size_t>(3 * n));
      const auto part = [&](index_t k) { return simd::load<A>(codes.data() + k * n); };
      const auto joined = simd::join_sixes(part(0), part(1), part(2), part(3));
      for (std::size_t k = 0; k < 3; ++k) simd::store(packed.data() + static_cast<index_t>(k) * n, joined[k]);
      for (index_t i = 0; i < 4 * n; ++i)
        if (code_of(packed, 6, i) != (codes[static_cast<std::size_t>(i)] & 63u)) FAIL("code ", i);
    }
  });
  CHECK(simd::has_join_sixes<simd::best_arch> ==
        (simd::features::vbmi || std::same_as<simd::best_arch, simd::avx2_arch>));
}
