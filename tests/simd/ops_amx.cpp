// Mirrors include/qtensor/simd/ops_amx.hpp.
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <qtensor/simd/ops_amx.hpp>
#include <vector>

#include "check.hpp"

namespace simd = qtensor::simd;
using qtensor::index_t;

namespace {
struct keeping {
  static constexpr bool runs_beside = true;
};
struct refusing {
  static constexpr bool runs_beside = false;
};
struct silent {};

/// Calls check(unit) with the matrix registers of every architecture that has some which this process may use.
template <class Check>
void for_each_unit(const Check& check) {
  simd::archs::for_each([&](auto arch) {
    using unit = simd::square_unit<decltype(arch)>;
    if constexpr (unit::exists)
      if (unit::is_granted()) check(unit{});
  });
}
}  // namespace

TEST_CASE("runs_beside: only of those that say so") {
  CHECK(simd::runs_beside<keeping>);
  CHECK(!simd::runs_beside<refusing>);
  CHECK(!simd::runs_beside<silent>);
}
TEST_CASE("square_unit: exists where this is compiled for AMX, for AVX-512 alone") {
  simd::archs::for_each([](auto arch) {
    using A = decltype(arch);
    CHECK(simd::square_unit<A>::exists == (simd::features::amx && simd::lanes<A> == 16));
  });
}
TEST_CASE("uses_squares: never where nobody allows it") {
  simd::archs::for_each([](auto arch) {
    using A = decltype(arch);
    const bool can = simd::uses_squares<A>();
    simd::squares_allowed = false;
    CHECK(!simd::uses_squares<A>());
    simd::squares_allowed = true;
    CHECK(simd::uses_squares<A>() == can);
    if constexpr (simd::square_unit<A>::exists) CHECK(can == simd::square_unit<A>::is_granted());
  });
}
TEST_CASE("square_unit: sums of unsigned units times signed codes, modulo 2^32, at any stride") {
  for_each_unit([](auto registers) {
    using unit = decltype(registers);
    for (const index_t stride : {64, 80, 256}) {
      const index_t bytes = 15 * stride + 64;
      check::fenced<std::uint8_t> x(bytes), w(bytes);
      for (index_t i = 0; i < bytes; ++i) {
        x[i] = check::random_below(4) == 0 ? 255 : static_cast<std::uint8_t>(check::random_bits()());
        w[i] = check::random_below(4) == 0 ? 0x80 : static_cast<std::uint8_t>(check::random_bits()());
      }
      check::fenced<std::int32_t> start(16), sums(16 * 16);
      for (index_t c = 0; c < 16; ++c) start[c] = static_cast<std::int32_t>(check::random_bits()());
      {
        const typename unit::session session;
        unit::template load<3>(start.data(), 0);
        unit::template load<4>(x.data(), stride);
        unit::template stream<5>(w.data(), stride);
        unit::template dot<3, 4, 5>();
        unit::template dot<3, 4, 5>();
        unit::template store<3>(sums.data(), 64);
      }
      for (index_t r = 0; r < 16; ++r)
        for (index_t c = 0; c < 16; ++c) {
          auto want = static_cast<std::uint32_t>(start[c]);
          for (index_t k = 0; k < 64; ++k)
            want += 2u * static_cast<std::uint32_t>(x[r * stride + k] *
                                                    static_cast<std::int8_t>(w[k / 4 * stride + 4 * c + k % 4]));
          REQUIRE(static_cast<std::uint32_t>(sums[r * 16 + c]) == want);
        }
    }
  });
}
TEST_CASE("square_unit: steps of fewer quads, of signed units, and nothing beyond is read") {
  for_each_unit([](auto registers) {
    using unit = decltype(registers);
    for (index_t quads = 1; quads <= 16; ++quads) {
      const index_t stride = 4 * quads + 12;
      check::fenced<std::int8_t> x(15 * stride + 4 * quads), w(quads * 64);
      for (auto* codes : {&x, &w})
        for (index_t i = 0; i < codes->size(); ++i)
          (*codes)[i] = check::random_below(4) == 0 ? -128 : static_cast<std::int8_t>(check::random_bits()());
      check::fenced<std::int32_t> sums(16 * 16);
      {
        const typename unit::session session(quads);
        unit::template load<5>(x.data(), stride);
        unit::template load<7>(w.data(), 64);
        unit::template dot_signed<2, 5, 7>();
        unit::template zero<2>();
        unit::template dot_signed<2, 5, 7>();
        unit::template store<2>(sums.data(), 64);
      }
      for (index_t r = 0; r < 16; ++r)
        for (index_t c = 0; c < 16; ++c) {
          std::int32_t want = 0;
          for (index_t k = 0; k < 4 * quads; ++k) want += x[r * stride + k] * w[k / 4 * 64 + 4 * c + k % 4];
          REQUIRE(sums[r * 16 + c] == want);
        }
    }
  });
}
TEST_CASE("square_unit: a session goes on after another one, and where nobody disturbed it") {
  for_each_unit([](auto registers) {
    using unit = decltype(registers);
    std::vector<std::int8_t> ones(16 * 64, 1);
    std::vector<std::int32_t> sums(16 * 16);
    const auto sums_are = [&](std::int32_t want) {
      unit::template store<1>(sums.data(), 64);
      return std::all_of(sums.begin(), sums.end(), [&](std::int32_t s) { return s == want; });
    };
    typename unit::session whole;
    unit::template load<4>(ones.data(), 64);
    unit::template load<6>(ones.data(), 64);
    unit::template zero<1>();
    whole.resume();
    unit::template dot_signed<1, 4, 6>();
    CHECK(sums_are(64));
    {
      const typename unit::session few(4);
      unit::template load<4>(ones.data(), 64);
      unit::template load<6>(ones.data(), 64);
      unit::template zero<1>();
      unit::template dot_signed<1, 4, 6>();
      CHECK(sums_are(16));
    }
    whole.resume();
    unit::template load<4>(ones.data(), 64);
    unit::template load<6>(ones.data(), 64);
    unit::template zero<1>();
    unit::template dot_signed<1, 4, 6>();
    CHECK(sums_are(64));
  });
}
