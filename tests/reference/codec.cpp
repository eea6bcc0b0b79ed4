// Mirrors include/qtensor/reference/codec.hpp: constant expressions, defaults, stochastic rounding and users' own
// formats. The long comparison of every built-in format with the oracle is in codec_{integers,fp8,small,wide}.cpp.
// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <qtensor/reference/codec.hpp>

#include "oracle/encode.hpp"
#include "oracle/inputs.hpp"

namespace qt = qtensor;

namespace {

// One line for each promise of the contract, decided by the compiler.
static_assert(qt::encode<qt::e4m3>(0.3f) == 0x2A);
static_assert(qt::encode<qt::e4m3>(464.f) == 0x7E && qt::encode<qt::e4m3>(465.f) == 0x7E);
static_assert(qt::encode<qt::e4m3, qt::to_special>(464.f) == 0x7E &&
              qt::encode<qt::e4m3, qt::to_special>(465.f) == 0x7F);
static_assert(qt::encode<qt::e5m2, qt::to_special>(61440.f) == 0x7C &&
              qt::encode<qt::e5m2, qt::to_special>(-1e9f) == 0xFC);
static_assert(qt::encode<qt::e4m3fnuz, qt::to_special>(248.f) == 0x80 && qt::encode<qt::e4m3fnuz>(-0.f) == 0x00);
static_assert(qt::encode<qt::e2m1>(2.5f) == 4 && qt::encode<qt::e2m1, qt::nearest_away>(2.5f) == 5);
static_assert(qt::encode<qt::e2m1, qt::toward_negative>(-0.25f) == 9 &&
              qt::encode<qt::e2m1, qt::toward_positive>(-0.25f) == 8);
static_assert(qt::encode<qt::e4m3, qt::via_f16>(qt::float_of(0x43C807EF)) == 0x7C &&
              qt::encode<qt::e4m3>(qt::float_of(0x43C807EF)) == 0x7D);
static_assert(qt::encode<qt::hif8>(1.0625f) == 0x09 && qt::encode<qt::hif8, qt::nearest_even>(1.0625f) == 0x08);
static_assert(qt::encode<qt::hif8, qt::to_special>(40960.f) == 0x6F && qt::encode<qt::hif8>(40960.f) == 0x6E);
static_assert(qt::encode<qt::e8m0, qt::nearest_away>(3.f) == 0x81 &&
              qt::encode<qt::e8m0, qt::nearest_even>(3.f) == 0x80);
static_assert(qt::encode<qt::e8m0>(qt::infinity) == 0xFF && qt::encode<qt::e8m0>(-2.f) == 0x80 &&
              qt::encode<qt::e8m0>(0.f) == 0);
static_assert(qt::encode<qt::int8>(-2.5f) == 0xFE && qt::encode<qt::int8>(1e9f) == 127 &&
              qt::encode<qt::int8>(-qt::infinity) == 0x80);
static_assert(qt::encode<qt::narrow_range<qt::int8>>(-1000.f) == 0x81);
static_assert(qt::encode<qt::int32>(2147483648.f) == 0x7FFFFFFFu &&
              qt::encode<qt::int32>(-2147483648.f) == 0x80000000u);
static_assert(qt::encode<qt::mxint8_code>(-2.f) == 0x81 && qt::decode<qt::mxint8_code>(0x80) == -2.f);
static_assert(qt::encode<qt::bf16, qt::to_special>(qt::float_of(0x7F7F8000)) == 0x7F80 &&
              qt::encode<qt::bf16>(qt::float_of(0x00008001)) == 1);
static_assert(qt::encode<qt::f16, qt::to_special>(65520.f) == 0x7C00 &&
              qt::encode<qt::f16>(qt::float_of(0x387FFFFF)) == 0x0400);
static_assert(qt::encode<qt::f32>(qt::float_of(0x80000001)) == 0x80000001u);
static_assert(qt::encode<qt::e4m3>(qt::quiet_nan) == 0x7F && qt::encode<qt::e4m3, qt::nan_to_zero>(qt::quiet_nan) == 0);
static_assert(qt::encode<qt::e2m1>(qt::quiet_nan) == 0 && qt::encode<qt::e2m1, qt::nan_to_max>(-qt::quiet_nan) == 0xF);
static_assert(qt::encode<qt::e4m3, qt::nan_to_zero, qt::to_special, qt::toward_zero>(479.f) ==
              qt::encode<qt::e4m3, qt::toward_zero, qt::nan_to_zero, qt::to_special>(479.f));
static_assert(qt::round_to_integer<qt::nearest_even>(2.5f) == 2 && qt::round_to_integer<qt::nearest_even>(-3.5f) == -4);
static_assert(qt::round_to_integer<qt::toward_negative>(-0.25f) == -1 &&
              qt::round_to_integer<qt::nearest_even>(qt::quiet_nan) == 0);

/// A format as a user writes one: no layout, just a list of values. `Table` is its decode table.
template <const auto& Table>
struct listed {
  static constexpr int bits = 4;
  static constexpr bool is_integer = false;
  static constexpr bool is_signed = true;
  static constexpr float min = *std::min_element(Table.begin(), Table.end());
  static constexpr float max = *std::max_element(Table.begin(), Table.end());
  static constexpr qt::fixed_string name = "listed";
  static constexpr float decode(std::uint32_t code) { return Table[code & 15]; }
};

/// Uneven steps and no symmetry, codes in order of value.
constexpr std::array<float, 16> uneven = {-1.f,  -0.7f, -0.53f, -0.39f, -0.28f, -0.18f, -0.09f, 0.f,
                                          0.08f, 0.16f, 0.25f,  0.34f,  0.44f,  0.56f,  0.72f,  1.f};
/// e2m1 without its formula.
constexpr std::array<float, 16> fp4 = {0.f,  .5f,  1.f,  1.5f,  2.f,  3.f,  4.f,  6.f,
                                       -0.f, -.5f, -1.f, -1.5f, -2.f, -3.f, -4.f, -6.f};
/// Nothing but magnitudes.
constexpr std::array<float, 16> positive = {0.f, .25f, .5f, .75f, 1.f,  1.5f, 2.f,  3.f,
                                            4.f, 6.f,  8.f, 12.f, 16.f, 24.f, 32.f, 48.f};

template <const auto& Table>
oracle::format as_oracle() {
  oracle::format f;
  f.name = "listed";
  f.bits = 4;
  for (float v : Table) f.decoded.push_back(static_cast<double>(v));
  oracle::detail::collect(f);
  f.negative_zero.reset();  // a list has one zero
  f.above_max = f.max * 2;
  f.below_min = f.min < 0 ? f.min * 2 : -f.points[1].value;
  return f;
}

template <class Rounding, const auto& Table>
void compare_listed(oracle::rounding r) {
  const oracle::format f = as_oracle<Table>();
  for (float x : oracle::adversarial(f)) {
    if (std::isnan(x)) continue;
    const std::uint32_t ours = qt::encode<listed<Table>, Rounding>(x),
                        theirs = oracle::encode(f, static_cast<double>(x), r);
    INFO("x bits ", oracle::bits_of(x), " rounding ", std::string(Rounding::name.c_str()));
    REQUIRE(ours == theirs);
  }
}

template <const auto& Table>
void compare_listed_all() {
  compare_listed<qt::nearest_even, Table>(oracle::rounding::nearest_even);
  compare_listed<qt::nearest_away, Table>(oracle::rounding::nearest_away);
  compare_listed<qt::toward_negative, Table>(oracle::rounding::toward_negative);
  compare_listed<qt::toward_positive, Table>(oracle::rounding::toward_positive);
  compare_listed<qt::toward_zero, Table>(oracle::rounding::toward_zero);
}

/// How often, of `words` random words, x goes to the neighbour away from zero. Checks that it always goes to a
/// neighbour.
template <class Format>
double share_of_upper(const char* name, float x, std::uint32_t words) {
  const oracle::format& f = oracle::format_named(name);
  const std::uint32_t low = oracle::encode(f, static_cast<double>(x), oracle::rounding::toward_zero);
  const std::uint32_t high = oracle::encode(
      f, static_cast<double>(x), x < 0 ? oracle::rounding::toward_negative : oracle::rounding::toward_positive);
  std::uint32_t up = 0;
  for (std::uint32_t i = 0; i < words; ++i) {
    const std::uint32_t code = qt::encode<Format, qt::stochastic<>>(x, qt::philox(i, 0));
    REQUIRE((code == low || code == high));
    if (code == high && high != low) ++up;
  }
  return up / static_cast<double>(words);
}

}  // namespace

TEST_CASE(
    "codec: a user's own list of values rounds to the nearest one, ties to the even code, on both sides of zero") {
  compare_listed_all<uneven>();
  compare_listed_all<fp4>();
  compare_listed_all<positive>();
}

TEST_CASE("codec: e2m1 as a user's list gives e2m1's codes, but for the sign of zero") {
  for (float x : oracle::adversarial(oracle::format_named("e2m1"))) {
    if (std::isnan(x)) continue;
    const std::uint32_t code = qt::encode<qt::e2m1>(x);
    INFO("x bits ", oracle::bits_of(x));
    REQUIRE(qt::encode<listed<fp4>>(x) == (code == 8 ? 0 : code));
  }
}

TEST_CASE("codec: a NaN in a format of values only becomes the code of 0") {
  CHECK(qt::encode<listed<uneven>>(qt::quiet_nan) == 7);
  CHECK(qt::encode<listed<uneven>, qt::nan_to_zero>(-qt::quiet_nan) == 7);
  CHECK(qt::encode<listed<uneven>, qt::nan_to_max>(-qt::quiet_nan) == 0);
}

TEST_CASE("codec: Philox gives the published first word, and neither index nor seed is lost") {
  CHECK(qt::philox(0, 0) == 0x6627e8d5u);
  CHECK(qt::philox(std::uint64_t{1} << 32, 0) != qt::philox(0, 0));
  CHECK(qt::philox(1, 0) != qt::philox(0, 0));
  CHECK(qt::philox(0, 1) != qt::philox(0, 0));
}

TEST_CASE("codec: stochastic rounding goes to a neighbour, as often as its closeness says") {
  constexpr std::uint32_t words = 4096;
  constexpr double five_sigma = 5 * 0.5 / 64;  // 5 sqrt(p (1 - p) / 4096) at most
  for (float sign : {1.f, -1.f}) {
    CHECK(share_of_upper<qt::int8>("int8", sign * 2.25f, words) == doctest::Approx(0.25).epsilon(five_sigma));
    CHECK(share_of_upper<qt::int8>("int8", sign * 0.875f, words) == doctest::Approx(0.875).epsilon(five_sigma));
    CHECK(share_of_upper<qt::e4m3>("e4m3", sign * 17.5f, words) == doctest::Approx(0.75).epsilon(five_sigma));
    CHECK(share_of_upper<qt::e4m3>("e4m3", sign * 0x1.8p-10f, words) == doctest::Approx(0.75).epsilon(five_sigma));
    CHECK(share_of_upper<qt::e2m1>("e2m1", sign * 4.5f, words) == doctest::Approx(0.25).epsilon(five_sigma));
    CHECK(share_of_upper<qt::hif8>("hif8", sign * 1.03125f, words) == doctest::Approx(0.25).epsilon(five_sigma));
    CHECK(share_of_upper<qt::bf16>("bf16", sign * (1 + 3 * 0x1p-9f), words) ==
          doctest::Approx(0.75).epsilon(five_sigma));
    CHECK(share_of_upper<qt::f16>("f16", sign * (1 + 0x1p-12f), words) == doctest::Approx(0.25).epsilon(five_sigma));
    CHECK(share_of_upper<qt::mxint8_code>("mxint8", sign * (0.5f + 1 / 128.f), words) ==
          doctest::Approx(0.5).epsilon(five_sigma));
  }
}

TEST_CASE("codec: stochastic rounding keeps exact values, and saturates what lies beyond the largest one") {
  for (std::uint32_t i = 0; i < 256; ++i) {
    const std::uint32_t word = qt::philox(i, 7);
    for (std::uint32_t code = 0; code < 0x7F; ++code) {
      REQUIRE(qt::encode<qt::e4m3, qt::stochastic<>>(qt::decode<qt::e4m3>(code), word) == code);
      REQUIRE(qt::encode<qt::int8, qt::stochastic<>>(static_cast<float>(code), word) == code);
    }
    CHECK(qt::encode<qt::e4m3, qt::stochastic<>>(1e9f, word) == 0x7E);
    CHECK(qt::encode<qt::e4m3, qt::stochastic<>>(-qt::infinity, word) == 0xFE);
    CHECK(qt::encode<qt::e4m3, qt::stochastic<>>(qt::quiet_nan, word) == 0x7F);
  }
}

TEST_CASE("codec: rounding to integers agrees with the oracle's int32 inside its range, and stops at 2^62") {
  const oracle::format& f = oracle::format_named("int32");
  for (float x : oracle::adversarial(f)) {
    if (!(std::fabs(x) < 0x1p31f)) continue;
    const auto expected = [&](oracle::rounding r) {
      return static_cast<std::int32_t>(oracle::encode(f, static_cast<double>(x), r));
    };
    INFO("x ", x);
    REQUIRE(qt::round_to_integer<qt::nearest_even>(x) == expected(oracle::rounding::nearest_even));
    REQUIRE(qt::round_to_integer<qt::nearest_away>(x) == expected(oracle::rounding::nearest_away));
    REQUIRE(qt::round_to_integer<qt::toward_negative>(x) == expected(oracle::rounding::toward_negative));
    REQUIRE(qt::round_to_integer<qt::toward_positive>(x) == expected(oracle::rounding::toward_positive));
    REQUIRE(qt::round_to_integer<qt::toward_zero>(x) == expected(oracle::rounding::toward_zero));
  }
  CHECK(qt::round_to_integer<qt::nearest_even>(qt::infinity) == std::int64_t{1} << 62);
  CHECK(qt::round_to_integer<qt::nearest_even>(-1e30f) == -(std::int64_t{1} << 62));
}
