// Mirrors include/qtensor/format/minifloat.hpp: facts and value tables as NUMERICS 1.3 to 1.7 list them.
// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <cmath>
#include <qtensor/format/minifloat.hpp>
#include <string>
#include <vector>

using namespace qtensor;

namespace {

/// The row of the specification's table, codes of special values as it prints them.
struct row {
  const char* name;
  int bits, exponent_bits, mantissa_bits, bias;
  double max, min_normal, min_subnormal;
  bool infinity, nan;
};

template <minifloat_format F>
void check_row(const row& r) {
  INFO(r.name);
  CHECK(std::string(std::string_view(F::name)) == r.name);
  CHECK(F::bits == r.bits);
  CHECK(F::exponent_bits == r.exponent_bits);
  CHECK(F::mantissa_bits == r.mantissa_bits);
  CHECK(F::bias == r.bias);
  CHECK_FALSE(F::is_integer);
  CHECK(F::is_signed);
  CHECK(static_cast<double>(F::max) == r.max);
  CHECK(static_cast<double>(F::min) == -r.max);
  CHECK(static_cast<double>(F::decode(1u << F::mantissa_bits)) == r.min_normal);
  CHECK(static_cast<double>(F::decode(1)) == r.min_subnormal);
  CHECK(F::has_infinity == r.infinity);
  CHECK(F::has_nan == r.nan);
  CHECK(F::decode(F::max_code) == F::max);
}

/// Every code from the formula of section 1, in double arithmetic; NaN and infinity where `special` says.
enum class kind { finite, infinite, not_a_number };
template <minifloat_format F, class Special>
void check_every_code(Special special) {
  for (std::uint32_t code = 0; code < (1u << F::bits); ++code) {
    INFO("code ", code);
    const float value = F::decode(code);
    const bool negative = (code >> (F::bits - 1)) != 0;
    const int e = static_cast<int>((code >> F::mantissa_bits) & ((1u << F::exponent_bits) - 1));
    const double m = static_cast<double>(code & ((1u << F::mantissa_bits) - 1)) / (1u << F::mantissa_bits);
    const double size = e != 0 ? std::ldexp(1.0 + m, e - F::bias) : std::ldexp(m, 1 - F::bias);
    switch (special(code)) {
      case kind::not_a_number:
        CHECK(std::isnan(value));
        break;
      case kind::infinite:
        CHECK(std::isinf(value));
        CHECK(std::signbit(value) == negative);
        break;
      case kind::finite:
        CHECK(static_cast<double>(value) == (negative ? -size : size));
        CHECK(std::signbit(value) == negative);
    }
  }
}
kind none(std::uint32_t) { return kind::finite; }

template <minifloat_format F>
void check_magnitudes(const std::vector<float>& values) {
  REQUIRE(values.size() == (1u << (F::bits - 1)));
  for (std::uint32_t code = 0; code < values.size(); ++code) {
    INFO("code ", code);
    CHECK(F::decode(code) == values[code]);
    CHECK(F::decode(code | F::sign_mask) == -values[code]);
  }
}

}  // namespace

TEST_CASE("minifloats: layout, bias, largest and smallest values") {
  check_row<e4m3>({"e4m3", 8, 4, 3, 7, 448, 0x1p-6, 0x1p-9, false, true});
  check_row<e5m2>({"e5m2", 8, 5, 2, 15, 57344, 0x1p-14, 0x1p-16, true, true});
  check_row<e4m3fnuz>({"e4m3fnuz", 8, 4, 3, 8, 240, 0x1p-7, 0x1p-10, false, true});
  check_row<e5m2fnuz>({"e5m2fnuz", 8, 5, 2, 16, 57344, 0x1p-15, 0x1p-17, false, true});
  check_row<e3m2>({"e3m2", 6, 3, 2, 3, 28, 0.25, 0.0625, false, false});
  check_row<e2m3>({"e2m3", 6, 2, 3, 1, 7.5, 1.0, 0.125, false, false});
  check_row<e2m1>({"e2m1", 4, 2, 1, 1, 6, 1.0, 0.5, false, false});
  check_row<e1m2>({"e1m2", 4, 1, 2, 1, 1.75, 1.0, 0.25, false, false});
}

TEST_CASE("e4m3: every code; NaN is 7F and FF, there is no infinity") {
  check_every_code<e4m3>([](std::uint32_t c) { return (c & 0x7F) == 0x7F ? kind::not_a_number : kind::finite; });
  CHECK(e4m3::max_code == 0x7E);
  CHECK(e4m3::nan_code == 0x7F);
  CHECK(e4m3::decode(0x20) == 0.125f);
  CHECK(e4m3::decode(0x07) == 7 * 0x1p-9f);
}

TEST_CASE("e5m2: every code; infinity is 7C, NaN is 7D to 7F") {
  check_every_code<e5m2>([](std::uint32_t c) {
    return (c & 0x7F) == 0x7C ? kind::infinite : (c & 0x7F) > 0x7C ? kind::not_a_number : kind::finite;
  });
  CHECK(e5m2::max_code == 0x7B);
  CHECK(e5m2::infinity_code == 0x7C);
  CHECK(e5m2::nan_code == 0x7E);
}

TEST_CASE("fnuz: every code; 80 is the only NaN, and there is one zero") {
  const auto special = [](std::uint32_t c) { return c == 0x80 ? kind::not_a_number : kind::finite; };
  check_every_code<e4m3fnuz>(special);
  check_every_code<e5m2fnuz>(special);
  CHECK(e4m3fnuz::max_code == 0x7F);
  CHECK(e4m3fnuz::nan_code == 0x80);
  CHECK(e5m2fnuz::nan_code == 0x80);
  CHECK(e4m3fnuz::decode(0x40) == 1.f);
  CHECK(e5m2fnuz::decode(0x40) == 1.f);
}

TEST_CASE("FP4 and FP6: the value lists of NUMERICS 1.7, all codes finite") {
  check_magnitudes<e2m1>({0, .5f, 1, 1.5f, 2, 3, 4, 6});
  check_magnitudes<e1m2>({0, .25f, .5f, .75f, 1, 1.25f, 1.5f, 1.75f});
  check_magnitudes<e2m3>({0,      .125f, .25f,   .375f, .5f,    .625f, .75f,  .875f, 1,     1.125f, 1.25f,
                          1.375f, 1.5f,  1.625f, 1.75f, 1.875f, 2,     2.25f, 2.5f,  2.75f, 3,      3.25f,
                          3.5f,   3.75f, 4,      4.5f,  5,      5.5f,  6,     6.5f,  7,     7.5f});
  check_magnitudes<e3m2>({0,     .0625f, .125f, .1875f, .25f,  .3125f, .375f, .4375f, .5f,  .625f, .75f,
                          .875f, 1,      1.25f, 1.5f,   1.75f, 2,      2.5f,  3,      3.5f, 4,     5,
                          6,     7,      8,     10,     12,    14,     16,    20,     24,   28});
  check_every_code<e2m1>(none);
  check_every_code<e1m2>(none);
  check_every_code<e2m3>(none);
  check_every_code<e3m2>(none);
  CHECK(std::signbit(e2m1::decode(8)));  // -0 is a code
}

TEST_CASE("minifloats: magnitude codes grow with the value, one above max would be the next value") {
  for (std::uint32_t code = 0; code < e4m3::max_code; ++code) CHECK(e4m3::decode(code) < e4m3::decode(code + 1));
  for (std::uint32_t code = 0; code < e5m2::max_code; ++code) CHECK(e5m2::decode(code) < e5m2::decode(code + 1));
  for (std::uint32_t code = 0; code < e3m2::max_code; ++code) CHECK(e3m2::decode(code) < e3m2::decode(code + 1));
}

TEST_CASE("minifloats: bits above the code's are ignored") {
  CHECK(e2m1::decode(0xF7) == 6.f);
  CHECK(e2m1::decode(0x1F) == -6.f);
  CHECK(e3m2::decode(0xC1) == 0.0625f);
}

// Formats of others from the same base (ml_dtypes).
namespace {
struct e3m4 : minifloat<3, 4, 3, specials::ieee> {
  static constexpr fixed_string name = "e3m4";
};
struct e4m3b11fnuz : minifloat<4, 3, 11, specials::nan_is_negative_zero> {
  static constexpr fixed_string name = "e4m3b11fnuz";
};
static_assert(minifloat_format<e3m4> && minifloat_format<e4m3b11fnuz> && e3m4::max == 15.5f &&
              e3m4::infinity_code == 0x70 && e4m3b11fnuz::max == 30.f);
}  // namespace

TEST_CASE("minifloat: a base for further formats") {
  CHECK(e3m4::decode(0x01) == 0x1p-6f);
  CHECK(std::isinf(e3m4::decode(0xF0)));
  CHECK(e4m3b11fnuz::decode(0x7F) == 30.f);
  CHECK(std::isnan(e4m3b11fnuz::decode(0x80)));
}
