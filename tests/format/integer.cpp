// Mirrors include/qtensor/format/integer.hpp.
// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <qtensor/format/integer.hpp>
#include <string>

using namespace qtensor;

namespace {

template <format F>
void check_facts(const char* name, int bits, bool is_signed, double min, double max) {
  INFO(name);
  CHECK(std::string(std::string_view(F::name)) == name);
  CHECK(F::bits == bits);
  CHECK(F::is_integer);
  CHECK(F::is_signed == is_signed);
  CHECK(static_cast<double>(F::min) == min);
  CHECK(static_cast<double>(F::max) == max);
}

/// Codes count up from 0 to the largest value, then from the smallest value to -1 where there are negative ones.
template <format F>
void check_every_code(int negatives, int positives) {
  for (int code = 0; code < positives; ++code)
    CHECK(F::decode(static_cast<std::uint32_t>(code)) == static_cast<float>(code));
  for (int i = 0; i < negatives; ++i)
    CHECK(F::decode(static_cast<std::uint32_t>(positives + i)) == static_cast<float>(i - negatives));
}

struct int3 : integer<3, signed> {
  static constexpr fixed_string name = "int3";
};
struct q15 : fixed_point<16, 15> {
  static constexpr fixed_string name = "q15";
};

}  // namespace

TEST_CASE("integers: ranges and names of NUMERICS 1.1") {
  check_facts<int8>("int8", 8, true, -128, 127);
  check_facts<uint8>("uint8", 8, false, 0, 255);
  check_facts<int16>("int16", 16, true, -32768, 32767);
  check_facts<uint16>("uint16", 16, false, 0, 65535);
  check_facts<int32>("int32", 32, true, -2147483648.0, 2147483647.0);
  check_facts<int4>("int4", 4, true, -8, 7);
  check_facts<uint4>("uint4", 4, false, 0, 15);
  check_facts<int2>("int2", 2, true, -2, 1);
  check_facts<uint2>("uint2", 2, false, 0, 3);
}

TEST_CASE("integers: every code is two's complement or plain binary") {
  check_every_code<int8>(128, 128);
  check_every_code<uint8>(0, 256);
  check_every_code<int4>(8, 8);
  check_every_code<uint4>(0, 16);
  check_every_code<int2>(2, 2);
  check_every_code<uint2>(0, 4);
  check_every_code<int16>(32768, 32768);
  check_every_code<uint16>(0, 65536);
}

TEST_CASE("integers: bits above the code's are ignored") {
  CHECK(int4::decode(0xF7) == 7.f);
  CHECK(uint2::decode(0xFE) == 2.f);
  CHECK(int8::decode(0xFFFFFF80u) == -128.f);
}

TEST_CASE("int32: decodes exactly, which a float could not") {
  static_assert(std::is_same_v<decltype(int32::decode(0)), std::int64_t>);
  CHECK(int32::decode(16777217) == 16777217);
  CHECK(int32::decode(0x80000000u) == -2147483648LL);
  CHECK(int32::decode(0xFFFFFFFFu) == -1);
  CHECK(int32::max == 2147483647);
}

TEST_CASE("narrow_range: a type of its own without the most negative code") {
  check_facts<narrow_range<int8>>("narrow_range<int8>", 8, true, -127, 127);
  check_facts<narrow_range<int4>>("narrow_range<int4>", 4, true, -7, 7);
  check_facts<narrow_range<int32>>("narrow_range<int32>", 32, true, -2147483647.0, 2147483647.0);
  CHECK_FALSE(std::is_same_v<narrow_range<int8>, int8>);
  CHECK(narrow_range<int8>::decode(0x80) == -128.f);  // existing data may hold it; it is never made
}

TEST_CASE("mxint8_code: code / 64, symmetric range") {
  CHECK(std::string(std::string_view(mxint8_code::name)) == "mxint8");
  CHECK_FALSE(mxint8_code::is_integer);
  CHECK(mxint8_code::is_signed);
  CHECK(mxint8_code::max == 1.984375f);
  CHECK(mxint8_code::min == -1.984375f);
  for (int code = 0; code < 256; ++code)
    CHECK(mxint8_code::decode(static_cast<std::uint32_t>(code)) ==
          static_cast<float>(code < 128 ? code : code - 256) / 64.f);
}

TEST_CASE("integer and fixed_point: bases of other widths") {
  static_assert(format<int3> && format<q15>);
  check_every_code<int3>(4, 4);
  CHECK(q15::decode(0x4000) == 0.5f);
  CHECK(q15::decode(0xC000) == -0.5f);
  CHECK(q15::max == 32767.f / 32768.f);
}
