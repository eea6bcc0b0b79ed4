// Mirrors include/qtensor/simd/ops_bf16_dot.hpp.
// SPDX-License-Identifier: BSD-3-Clause
#include <cmath>
#include <qtensor/simd/ops_bf16_dot.hpp>
#include <vector>

#include "check.hpp"

namespace simd = qtensor::simd;
using qtensor::bits_of;
using qtensor::float_of;
using qtensor::index_t;

namespace {

/// x to bf16 by the definition; where x is subnormal or NaN several answers are right.
bool rounds_to(std::uint32_t half, float x) {
  const float got = float_of(half << 16);
  if (std::isnan(x)) return std::isnan(got);
  if (std::fabs(x) < 0x1p-126f && got == 0.f) return std::signbit(got) == std::signbit(x);
  const std::uint32_t bits = bits_of(x);
  return half == (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
}

template <class A, class T>
std::vector<T> lanes_of(const xsimd::batch<T, A>& v) {
  std::vector<T> lane(v.size);
  simd::store(lane.data(), v);
  return lane;
}

}  // namespace

TEST_CASE("bf16_pairs: two floats rounded to nearest, ties to even, the first below the second") {
  check::on_every_arch([](auto arch) {
    using A = decltype(arch);
    constexpr index_t n = simd::lanes<A>;
    float low[n], high[n];
    for (int round = 0; round < 2000; ++round) {
      for (index_t i = 0; i < n; ++i) low[i] = check::hard_float(), high[i] = check::hard_float();
      const auto pairs = lanes_of<A>(simd::bf16_pairs<A>(simd::load<A>(low), simd::load<A>(high)));
      for (index_t i = 0; i < n; ++i) {
        const std::uint32_t pair = pairs[static_cast<std::size_t>(i)];
        REQUIRE(rounds_to(pair & 0xffffu, low[i]));
        REQUIRE(rounds_to(pair >> 16, high[i]));
      }
    }
  });
}

TEST_CASE("bf16_pairs_of_planes: numbers 0 and 2, then 1 and 3 of every quad") {
  check::on_every_arch([](auto arch) {
    using A = decltype(arch);
    constexpr index_t n = 4 * simd::lanes<A>;
    std::uint8_t high[n], low[n];
    for (index_t i = 0; i < n; ++i) {
      high[i] = static_cast<std::uint8_t>(check::random_bits()());
      low[i] = static_cast<std::uint8_t>(check::random_bits()());
    }
    const auto pairs = simd::bf16_pairs_of_planes<A>(simd::load<A>(high), simd::load<A>(low));
    const auto first = lanes_of<A>(pairs[0]), second = lanes_of<A>(pairs[1]);
    const auto number = [&](index_t i) { return static_cast<std::uint32_t>(high[i] << 8 | low[i]); };
    for (index_t i = 0; i < simd::lanes<A>; ++i) {
      CHECK(first[static_cast<std::size_t>(i)] == (number(4 * i) | number(4 * i + 2) << 16));
      CHECK(second[static_cast<std::size_t>(i)] == (number(4 * i + 1) | number(4 * i + 3) << 16));
    }
  });
}

TEST_CASE("bf16_table16: looks up the low 4 bits of both halves, whatever stands above") {
  check::on_every_arch([](auto arch) {
    using A = decltype(arch);
    std::uint16_t table[16];
    for (auto& t : table) t = static_cast<std::uint16_t>(check::random_bits()());
    const simd::bf16_table16<A> look_up(table);
    for (int round = 0; round < 100; ++round) {
      std::uint32_t index[simd::lanes<A>];
      for (auto& i : index) i = check::random_bits()();
      const auto got = lanes_of<A>(look_up(simd::load<A>(index)));
      for (std::size_t i = 0; i < got.size(); ++i)
        REQUIRE(got[i] == (table[index[i] & 15u] | static_cast<std::uint32_t>(table[index[i] >> 16 & 15u]) << 16));
    }
  });
}

TEST_CASE("swap_middles: elements 0, 2, 1, 3 of every four") {
  check::on_every_arch([](auto arch) {
    using A = decltype(arch);
    std::uint16_t from[2 * simd::lanes<A>];
    for (index_t i = 0; i < 2 * simd::lanes<A>; ++i) from[i] = static_cast<std::uint16_t>(i);
    const auto got = lanes_of<A>(simd::swap_middles<A>(simd::load<A>(from)));
    constexpr int order[] = {0, 2, 1, 3};
    for (std::size_t i = 0; i < got.size(); ++i) CHECK(got[i] == i / 4 * 4 + static_cast<std::size_t>(order[i % 4]));
  });
}

TEST_CASE("bf16_dot: sums of exact products; integers that fit are exact") {
  check::on_every_arch([](auto arch) {
    using A = decltype(arch);
    using dot = simd::bf16_dot<A>;
    if constexpr (dot::exists) {
      constexpr index_t n = simd::lanes<A>;
      for (int round = 0; round < 300; ++round) {
        float first[n], second[n], start[n];
        for (index_t i = 0; i < n; ++i) {
          first[i] = static_cast<float>(static_cast<int>(check::random_below(513)) - 256);
          second[i] = static_cast<float>(static_cast<int>(check::random_below(513)) - 256);
          start[i] = static_cast<float>(static_cast<int>(check::random_below(1 << 20)));
          if (std::fabs(first[i]) > 255.f) first[i] = 0.f;
          if (std::fabs(second[i]) > 255.f) second[i] = 0.f;
        }
        const float x[2] = {static_cast<float>(check::random_below(256)),
                            -static_cast<float>(check::random_below(256))};
        std::uint16_t units[2];
        for (int i = 0; i < 2; ++i) units[i] = static_cast<std::uint16_t>(bits_of(x[i]) >> 16);
        std::uint32_t pairs[n];
        simd::store(pairs, simd::bf16_pairs<A>(simd::load<A>(first), simd::load<A>(second)));
        const auto sums = lanes_of<A>(dot::dot(simd::load<A>(start), dot::load(pairs), dot::broadcast(units)));
        for (index_t i = 0; i < n; ++i)
          REQUIRE(sums[static_cast<std::size_t>(i)] == start[i] + first[i] * x[0] + second[i] * x[1]);
      }
    }
  });
}
