// Mirrors include/qtensor/format/table.hpp.
// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <qtensor/format/e8m0.hpp>
#include <qtensor/format/hifloat8.hpp>
#include <qtensor/format/integer.hpp>
#include <qtensor/format/minifloat.hpp>
#include <qtensor/format/table.hpp>
#include <vector>

using namespace qtensor;

namespace {

/// Levels in no order, with a repeated value, two infinities and a NaN; values beyond max are never made.
struct shuffled {
  static constexpr int bits = 3;
  static constexpr bool is_integer = false, is_signed = true;
  static constexpr float min = -2.f, max = 3.f;
  static constexpr fixed_string name = "shuffled";
  static constexpr float decode(std::uint32_t code) {
    constexpr float level[8] = {3.f, -2.f, infinity, 0.5f, 9.f, -infinity, 0.5f, quiet_nan};
    return level[code & 7];
  }
};

template <format F>
std::vector<int> codes_in_order() {
  return {sorted<F>.code.begin(), sorted<F>.code.begin() + sorted<F>.count};
}

}  // namespace

TEST_CASE("decode_table: the value of every code, worked out by the compiler") {
  static_assert(decode_table<e2m1>[7] == 6.f && decode_table<int4>[8] == -8.f);
  CHECK(decode_table<e2m1>.size() == 16);
  CHECK(decode_table<e4m3>.size() == 256);
  for (std::uint32_t code = 0; code < 64; ++code) CHECK(decode_table<e2m3>[code] == e2m3::decode(code));
  CHECK(decode_table<shuffled>[4] == 9.f);
}

TEST_CASE("sorted: codes by ascending value") {
  CHECK(codes_in_order<int4>() == std::vector<int>{8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7});
  CHECK(codes_in_order<uint2>() == std::vector<int>{0, 1, 2, 3});
  for (int i = 1; i < sorted<hif8>.count; ++i) CHECK(sorted<hif8>.value(i - 1) < sorted<hif8>.value(i));
  CHECK(sorted<hif8>.count == 2 * 126 + 1);
}

TEST_CASE(
    "sorted: +0 only where there are two zeros, the lower code of two equal values, nothing but finite values in "
    "range") {
  CHECK(codes_in_order<e2m1>() == std::vector<int>{15, 14, 13, 12, 11, 10, 9, 0, 1, 2, 3, 4, 5, 6, 7});
  CHECK(codes_in_order<shuffled>() == std::vector<int>{1, 3, 0});
  CHECK(sorted<narrow_range<int8>>.count == 255);
  CHECK(sorted<narrow_range<int8>>.value(0) == -127.f);
  CHECK(sorted<e4m3>.count == 253);
  CHECK(sorted<mxint8_code>.count == 255);
}

TEST_CASE("find_nan and find_infinity: the first code that decodes to one, nothing where there is none") {
  CHECK(find_nan<e4m3>() == 0x7F);
  CHECK(find_nan<e5m2>() == 0x7D);
  CHECK(find_nan<e4m3fnuz>() == 0x80);
  CHECK(find_nan<hif8>() == 0x80);
  CHECK(find_nan<e8m0>() == 0xFF);
  CHECK_FALSE(find_nan<e2m1>().has_value());
  CHECK_FALSE(find_nan<int8>().has_value());
  CHECK(find_infinity<e5m2>(false) == 0x7C);
  CHECK(find_infinity<e5m2>(true) == 0xFC);
  CHECK(find_infinity<hif8>(true) == 0xEF);
  CHECK(find_infinity<shuffled>(true) == 5);
  CHECK_FALSE(find_infinity<e4m3>(false).has_value());
}
