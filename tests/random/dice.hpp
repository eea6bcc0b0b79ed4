// Random cases, each made from a seed alone, so that one that fails is run again by its seed.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <qtensor/core/support.hpp>
#include <qtensor/tensor/extents.hpp>
#include <random>
#include <vector>

#include "../main/in_full.hpp"

namespace fuzz {

using qtensor::index_t;

/// The draws of one case: the same for a seed with every compiler and standard library.
class dice {
 public:
  explicit dice(std::uint64_t seed) : bits_(seed) {}

  std::uint32_t bits() { return static_cast<std::uint32_t>(bits_() >> 16); }
  /// A whole number of [first, last], all alike.
  index_t within(index_t first, index_t last) {
    return first + static_cast<index_t>(bits_() % static_cast<std::uint64_t>(last - first + 1));
  }
  /// True once in `turns`.
  bool chance(index_t turns) { return within(1, turns) == 1; }
  template <class... Choices>
  auto one_of(Choices... choices) {
    const std::common_type_t<Choices...> all[] = {choices...};
    return all[within(0, sizeof...(choices) - 1)];
  }
  /// A count of [0, most], most often small or beside a power of two, where kernels change their step; seldom 0.
  index_t extent(index_t most) {
    index_t n = within(1, most);
    if (!chance(4)) n = std::min(n, within(1, 40));
    if (chance(3)) {
      const index_t power = index_t{1} << within(0, 12);
      n = std::min(most, power + within(-1, 1));
    }
    return chance(50) ? 0 : n;
  }

  /// `n` numbers of one kind: of a few magnitudes, of all magnitudes, of halves of a step, all alike, zeros, or any
  /// bits at all, NaNs and infinities among them; now and then some of another kind are mixed in.
  std::vector<float> numbers(index_t n) {
    std::vector<float> x(static_cast<std::size_t>(n));
    const index_t kind = within(0, 6), other = chance(2) ? within(0, 6) : kind;
    const float step = qtensor::exp2i(static_cast<int>(within(-20, 20))), same = number(1, step);
    for (float& v : x) {
      const index_t now = chance(30) ? other : kind;
      v = now == 6 ? same : number(now, step);
    }
    return x;
  }

 private:
  float number(index_t kind, float step) {
    switch (kind) {
      case 0:
        return (static_cast<float>(bits() & 0xffff) / 65536.f - 0.5f) * step;
      case 1:
        return static_cast<float>(within(-4096, 4096)) / 512.f * step;
      case 2:
        return static_cast<float>(within(-600, 600)) * 0.5f * step;
      case 3:
        return chance(2) ? 0.f : -0.f;
      default:
        const float any = qtensor::float_of(bits());
        return kind == 4 && !qtensor::is_finite(any) ? step : any;
    }
  }

  std::mt19937_64 bits_;
};

/// Calls one of several cases, all alike.
template <class... Case>
void one_case_of(dice& dice, Case... cases) {
  void (*const all[])(fuzz::dice&) = {cases...};
  all[dice.within(0, sizeof...(cases) - 1)](dice);
}

/// Calls `one_case(dice&)` for `count` seeds from 1 on, or a third of them in part. QTENSOR_FUZZ_SECONDS says how long
/// instead, from a seed of its own; QTENSOR_FUZZ_SEED asks for one case. A case that fails, by REQUIRE, is told by its
/// seed and is the last.
template <class Case>
void each_case(long count, Case&& one_case) {
  const auto start = std::chrono::steady_clock::now();
  const char *seconds = std::getenv("QTENSOR_FUZZ_SECONDS"), *only = std::getenv("QTENSOR_FUZZ_SEED");
  std::uint64_t seed = only ? std::strtoull(only, nullptr, 10) : seconds ? std::random_device{}() : 1;
  const auto goes_on = [&](long done) {
    if (only) return false;
    if (!seconds) return done < (check::full ? count : count / 3);
    return std::chrono::steady_clock::now() - start < std::chrono::duration<double>(std::atof(seconds));
  };
  long done = 0;
  do {
    INFO("QTENSOR_FUZZ_SEED=" << seed);
    dice one(seed);
    one_case(one);
    ++seed;
  } while (goes_on(++done));
}

}  // namespace fuzz
