// Mirrors include/qtensor/core/support.hpp.
// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <qtensor/core/support.hpp>
#include <string>

using namespace qtensor;

namespace {

std::string text(std::string_view name) { return std::string(name); }

static_assert(fixed_string("ab") + fixed_string("c") == fixed_string("abc"));
static_assert("a" + fixed_string("bc") == fixed_string("ab") + "c");
static_assert(exp2i(-149) == std::numeric_limits<float>::denorm_min() && exp2i(127) == 0x1p127f);

}  // namespace

TEST_CASE("fixed_string: joins with names and literals, views as text, ends with a zero") {
  constexpr auto joined = "zero_point<" + fixed_string("int8") + ">";
  CHECK(text(joined) == "zero_point<int8>");
  CHECK(std::string(joined.c_str()) == "zero_point<int8>");
  CHECK(text(fixed_string("")) == "");
  CHECK(text(fixed_string("") + "x" + fixed_string("")) == "x");
  CHECK(fixed_string("e4m3") == fixed_string("e4m3"));
  CHECK_FALSE(fixed_string("e4m3") == fixed_string("e5m2"));
}

TEST_CASE("number_name: decimal digits, a sign where negative, `dynamic` by name") {
  CHECK(text(number_name<0>()) == "0");
  CHECK(text(number_name<7>()) == "7");
  CHECK(text(number_name<-1>()) == "-1");
  CHECK(text(number_name<128>()) == "128");
  CHECK(text(number_name<-10>()) == "-10");
  CHECK(text(number_name<std::numeric_limits<index_t>::max()>()) == "9223372036854775807");
  CHECK(text(number_name<dynamic>()) == "dynamic");
}

TEST_CASE("dynamic differs from every axis number, and last_axis counts from the end") {
  CHECK(dynamic < -1000);
  CHECK(last_axis == -1);
  CHECK(sizeof(index_t) == sizeof(void*));
}

TEST_CASE("exp2i: every power of two a float has, subnormals included") {
  for (int e = -149; e <= 127; ++e) {
    INFO("exponent ", e);
    CHECK(exp2i(e) == std::ldexp(1.f, e));
  }
}

TEST_CASE("bits_of and float_of: each the other's inverse, NaN payloads kept") {
  for (std::uint32_t bits :
       {0u, 0x80000000u, 1u, 0x3f800000u, 0x7f7fffffu, 0x7f800000u, 0xff800000u, 0x7fc12345u, 0xffffffffu})
    CHECK(bits_of(float_of(bits)) == bits);
}

TEST_CASE("is_nan, is_finite, is_negative, magnitude: decided on bits") {
  struct row {
    std::uint32_t bits;
    bool nan, finite, negative;
  };
  for (const row& r :
       {row{0x00000000, false, true, false}, row{0x80000000, false, true, true}, row{0x00000001, false, true, false},
        row{0x7f7fffff, false, true, false}, row{0x7f800000, false, false, false}, row{0xff800000, false, false, true},
        row{0x7f800001, true, false, false}, row{0xffc00000, true, false, true}}) {
    INFO("bits ", r.bits);
    CHECK(is_nan(float_of(r.bits)) == r.nan);
    CHECK(is_finite(float_of(r.bits)) == r.finite);
    CHECK(is_negative(float_of(r.bits)) == r.negative);
    CHECK(bits_of(magnitude(float_of(r.bits))) == (r.bits & 0x7fffffffu));
  }
  CHECK(is_nan(quiet_nan));
  CHECK(bits_of(quieted(float_of(0xff800001u))) == 0xffc00001u);
  CHECK(bits_of(quieted(quiet_nan)) == bits_of(quiet_nan));
  CHECK(bits_of(infinity) == infinity_bits);
}

TEST_CASE("low_bits: 0 to 32 of them") {
  CHECK(low_bits(0) == 0u);
  CHECK(low_bits(1) == 1u);
  CHECK(low_bits(23) == 0x7fffffu);
  CHECK(low_bits(31) == 0x7fffffffu);
  CHECK(low_bits(32) == 0xffffffffu);
}

TEST_CASE("divide_up: counts blocks, the short last one included") {
  CHECK(divide_up(0, 32) == 0);
  CHECK(divide_up(1, 32) == 1);
  CHECK(divide_up(32, 32) == 1);
  CHECK(divide_up(33, 32) == 2);
  CHECK(divide_up(index_t{1} << 40, 3) == 366503875926);
  constexpr index_t most = std::numeric_limits<index_t>::max();
  static_assert(divide_up(most, 2) == index_t{1} << 62);
  static_assert(divide_up(8, most) == 1);
  static_assert(divide_up(most, most) == 1);
}
