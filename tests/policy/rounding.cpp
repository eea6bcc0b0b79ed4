// Mirrors include/qtensor/policy/rounding.hpp.
// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <array>
#include <qtensor/format/hifloat8.hpp>
#include <qtensor/format/integer.hpp>
#include <qtensor/policy/rounding.hpp>
#include <qtensor/reference/codec.hpp>
#include <string>

using namespace qtensor;

namespace {

/// What 1.75, 2.25, 2.5, 3.5, 2.75 and their negatives become; the integers decide, no format is involved.
constexpr std::array<float, 10> inputs = {1.75f, 2.25f, 2.5f, 3.5f, 2.75f, -1.75f, -2.25f, -2.5f, -3.5f, -0.5f};
template <rounding_policy R>
std::array<int, 10> integers() {
  std::array<int, 10> out{};
  for (std::size_t i = 0; i < inputs.size(); ++i) out[i] = static_cast<int>(round_to_integer<R>(inputs[i]));
  return out;
}
using ten = std::array<int, 10>;

/// A user's own decision: away from zero whenever anything is lost.
struct away_from_zero {
  using slot = slot::rounding;
  static constexpr fixed_string name = "away_from_zero";
  static constexpr bool up(bool, bool, qtensor::remainder r) { return r != qtensor::remainder::zero; }
};
struct undecided {
  using slot = slot::rounding;
  static constexpr fixed_string name = "undecided";
};
static_assert(rounding_policy<away_from_zero> && !rounding_policy<undecided>);
static_assert(deterministic_rounding<nearest_even> && !random_rounding<nearest_even>);
static_assert(random_rounding<stochastic<>> && !deterministic_rounding<stochastic<>>);
static_assert(encode<e2m1, away_from_zero>(-2.1f) == 0xD && encode<hif8, away_from_zero>(1.01f) == 0x09);

// The decision is a constant expression, made of signs, oddness and what is lost.
static_assert(!nearest_even::up(false, false, remainder::half) && nearest_even::up(false, true, remainder::half));
static_assert(nearest_away::up(true, false, remainder::half) && !nearest_away::up(true, false, remainder::below_half));

static_assert(std::is_same_v<default_rounding_t<e4m3>, nearest_even> &&
              std::is_same_v<default_rounding_t<hif8>, nearest_away>);

}  // namespace

TEST_CASE("roundings: ties and directions") {
  //                                 1.75 2.25 2.5 3.5 2.75 | and negative, then -0.5
  CHECK(integers<nearest_even>() == ten{2, 2, 2, 4, 3, -2, -2, -2, -4, 0});
  CHECK(integers<nearest_away>() == ten{2, 2, 3, 4, 3, -2, -2, -3, -4, -1});
  CHECK(integers<toward_negative>() == ten{1, 2, 2, 3, 2, -2, -3, -3, -4, -1});
  CHECK(integers<toward_positive>() == ten{2, 3, 3, 4, 3, -1, -2, -2, -3, 0});
  CHECK(integers<toward_zero>() == ten{1, 2, 2, 3, 2, -1, -2, -2, -3, 0});
  CHECK(integers<via_f16>() == integers<nearest_even>());
  CHECK(integers<away_from_zero>() == ten{2, 3, 3, 4, 3, -2, -3, -3, -4, -1});
}

TEST_CASE("roundings: what is exact stays") {
  CHECK(round_to_integer<toward_negative>(-3.f) == -3);
  CHECK(round_to_integer<toward_positive>(3.f) == 3);
  CHECK(round_to_integer<away_from_zero>(16777216.f) == 16777216);
  CHECK(round_to_integer<stochastic<>>(3.f, 0xffffffffu) == 3);
}

TEST_CASE("via_f16: nearest even twice (NUMERICS 1.5: 43C807EF -> e4m3 7C, not 7D)") {
  CHECK(encode<e4m3, via_f16>(float_of(0x43C807EF)) == 0x7C);
  CHECK(encode<e4m3>(float_of(0x43C807EF)) == 0x7D);
  CHECK(encode<e5m2, via_f16, to_special>(float_of(0x47500D65)) == 0x7A);
  CHECK(encode<e5m2, to_special>(float_of(0x47500D65)) == 0x7B);
}

TEST_CASE("philox: known answers of Random123 and of NUMERICS 5.6") {
  CHECK(philox(0, 0) == 0x6627E8D5u);
  // An index above 2^32 uses the second counter word.
  CHECK(philox(std::uint64_t{1} << 32, 0) != philox(0, 0));
  CHECK(philox(0, 1) != philox(0, 0));
  static_assert(philox(0, 0) == 0x6627E8D5u);
}

TEST_CASE("stochastic: goes up for exactly the share of random words that the discarded part is of the gap") {
  for (std::uint32_t discarded : {0u, 1u, 100u, 128u, 255u}) {
    int ups = 0;
    for (std::uint32_t word = 0; word < 256; ++word) ups += stochastic<>::up(discarded, 8, word) ? 1 : 0;
    CHECK(ups == static_cast<int>(discarded));
  }
  CHECK(stochastic<>::up(1u, 32, 0xffffffffu));
  CHECK_FALSE(stochastic<>::up(1u, 32, 0xfffffffeu));
  CHECK(stochastic<>::up(128u, 8, 0xABCDEF80u));  // only as many low bits as are discarded count
}

TEST_CASE("names") {
  CHECK(std::string(std::string_view(nearest_even::name)) == "nearest_even");
  CHECK(std::string(std::string_view(stochastic<7>::name)) == "stochastic<7>");
  CHECK(std::string(std::string_view(stochastic<0xffffffffu>::name)) == "stochastic<4294967295>");
}
