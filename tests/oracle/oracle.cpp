// The oracle against every vector of the specification's sections 1.1 to 1.8: what the library is measured with is
// measured too. SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <set>

#include "oracle/blocks.hpp"
#include "oracle/encode.hpp"
#include "oracle/inputs.hpp"

namespace {

using namespace oracle;

struct pair {
  std::uint32_t from, to;
};

/// Encodes the float with these bits.
std::uint32_t code(const char* name, std::uint32_t bits, rounding r = rounding::nearest_even,
                   overflow o = overflow::saturate) {
  return encode(format_named(name), static_cast<double>(float_of(bits)), r, o);
}

std::uint32_t code_of(const char* name, double x, rounding r = rounding::nearest_even,
                      overflow o = overflow::saturate) {
  return encode(format_named(name), x, r, o);
}

}  // namespace

TEST_CASE("oracle: every format holds the number of values its definition gives") {
  const std::pair<const char*, std::size_t> expected[] = {
      {"int8", 256},     {"uint8", 256}, {"int16", 65536},   {"uint16", 65536},    {"int4", 16},
      {"uint4", 16},     {"int2", 4},    {"uint2", 4},       {"narrow_int8", 255}, {"e4m3", 253},
      {"e4m3fnuz", 255}, {"e5m2", 247},  {"e5m2fnuz", 255},  {"e3m2", 63},         {"e2m3", 63},
      {"e2m1", 15},      {"e1m2", 15},   {"mxint8", 255},    {"hif8", 253},        {"e8m0", 255},
      {"bf16", 65279},   {"f16", 63487}, {"e4m3_ieee", 239}, {"e3m4", 223},        {"e4m3b11fnuz", 255}};
  CHECK(std::size(expected) + 1 == formats().size());  // all but int32
  for (const auto& each : expected) CHECK_MESSAGE(format_named(each.first).points.size() == each.second, each.first);
}

TEST_CASE("oracle: values ascend, codes of neighbours alternate between even and odd, and zero has its +0 code") {
  for (const format& f : formats())
    for (std::size_t i = 1; i < f.points.size(); ++i) {
      INFO(f.name, " point ", i);
      REQUIRE(f.points[i - 1].value < f.points[i].value);
      REQUIRE((f.points[i - 1].code & 1) != (f.points[i].code & 1));
      if (f.points[i].value == 0) REQUIRE(f.points[i].code == 0);
    }
}

TEST_CASE("oracle: extremes, normals and subnormals of sections 1.2 to 1.8") {
  struct fact {
    const char* name;
    std::uint32_t code;
    double value;
  };
  const fact facts[] = {{"bf16", 0x7F7F, static_cast<double>(float_of(0x7F7F0000u))},
                        {"bf16", 0x0080, 0x1p-126},
                        {"bf16", 1, 0x1p-133},
                        {"f16", 0x7BFF, 65504},
                        {"f16", 0x0400, 0x1p-14},
                        {"f16", 1, 0x1p-24},
                        {"e4m3", 0x7E, 448},
                        {"e4m3", 0x08, 0x1p-6},
                        {"e4m3", 0x01, 0x1p-9},
                        {"e4m3", 0x07, 7 * 0x1p-9},
                        {"e4m3", 0x20, 0x1p-3},
                        {"e5m2", 0x7B, 57344},
                        {"e5m2", 0x04, 0x1p-14},
                        {"e5m2", 0x01, 0x1p-16},
                        {"e4m3fnuz", 0x7F, 240},
                        {"e4m3fnuz", 0x08, 0x1p-7},
                        {"e4m3fnuz", 0x01, 0x1p-10},
                        {"e5m2fnuz", 0x7F, 57344},
                        {"e5m2fnuz", 0x01, 0x1p-17},
                        {"e3m2", 0x1F, 28},
                        {"e3m2", 0x04, 0.25},
                        {"e3m2", 0x01, 0.0625},
                        {"e2m3", 0x1F, 7.5},
                        {"e2m3", 0x08, 1},
                        {"e2m3", 0x01, 0.125},
                        {"e2m1", 7, 6},
                        {"e2m1", 2, 1},
                        {"e2m1", 1, 0.5},
                        {"e1m2", 7, 1.75},
                        {"e1m2", 4, 1},
                        {"e1m2", 1, 0.25},
                        {"mxint8", 127, 1.984375},
                        {"mxint8", 1, 1 / 64.0},
                        {"mxint8", 0x80, -2},
                        {"hif8", 0x6E, 32768},
                        {"hif8", 0x7E, 0x1p-15},
                        {"hif8", 0x07, 0x1p-16},
                        {"hif8", 0x01, 0x1p-22},
                        {"hif8", 0x08, 1},
                        {"hif8", 0x38, 0.125},
                        {"hif8", 0x18, 0.5},
                        {"e8m0", 0x00, 0x1p-127},
                        {"e8m0", 0xFE, 0x1p127},
                        {"e8m0", 0x7F, 1},
                        {"e3m4", 0x6F, 15.5},
                        {"e4m3_ieee", 0x77, 240},
                        {"e4m3b11fnuz", 0x7F, 30}};
  for (const fact& f : facts) CHECK_MESSAGE(decode(format_named(f.name), f.code) == f.value, f.name << " " << f.code);
  for (std::uint32_t c : {0x7Cu, 0xFCu}) CHECK(std::isinf(decode(format_named("e5m2"), c)));
  for (std::uint32_t c : {0x7Du, 0x7Eu, 0x7Fu, 0xFDu, 0xFEu, 0xFFu}) CHECK(std::isnan(decode(format_named("e5m2"), c)));
  for (std::uint32_t c : {0x7Fu, 0xFFu}) CHECK(std::isnan(decode(format_named("e4m3"), c)));
  for (const char* name : {"e4m3fnuz", "e5m2fnuz", "e4m3b11fnuz", "hif8"})
    CHECK(std::isnan(decode(format_named(name), 0x80)));
  CHECK(decode(format_named("hif8"), 0x6F) == std::numeric_limits<double>::infinity());
  CHECK(decode(format_named("hif8"), 0xEF) == -std::numeric_limits<double>::infinity());
}

TEST_CASE("oracle: the two printed tables of section 1.7 that are formulas agree with the minifloat definition") {
  const format e2m1 = detail::minifloat("e2m1", 2, 1, 1, detail::specials::none);
  const format e1m2 = detail::minifloat("e1m2", 1, 2, 1, detail::specials::none);
  for (std::uint32_t c = 0; c < 16; ++c) {
    CHECK(e2m1.decoded[c] == format_named("e2m1").decoded[c]);
    CHECK(e1m2.decoded[c] == format_named("e1m2").decoded[c]);
  }
  for (std::uint32_t c = 0; c < 32; ++c) {
    const double step = (1 + (c % 8) / 8.0) * (1 << c / 8) / 2;  // 8..15: 1+k/8, 16..23: 2(1+k/8), 24..31: 4(1+k/8)
    CHECK(decode(format_named("e2m3"), c) == (c < 8 ? c / 8.0 : step));
  }
}

TEST_CASE("oracle: the decode algorithm of section 1.8 gives the value table of section 1.8") {
  for (std::uint32_t c = 0; c < 256; ++c) {
    if (c == 0x00 || c == 0x80 || (c & 0x7F) == 0x6F) continue;
    const int x = static_cast<int>(c & 0x7F);
    double value = 0;
    if (x >> 3 == 0) {
      value = std::ldexp(1.0, (x & 7) - 23);
    } else {
      const int d = x >> 5 ? (x >> 5) + 1 : x >> 4 ? 1 : 0;
      const int mantissa_bits[] = {3, 3, 3, 2, 1}, mb = mantissa_bits[d];
      const int field = (x >> mb) & ((1 << d) - 1), low = d == 0 ? 0 : field & ((1 << (d - 1)) - 1);
      const int magnitude = d == 0 ? 0 : (1 << (d - 1)) + low;
      const bool negative = d > 0 && (field >> (d - 1)) != 0;
      value = std::ldexp(1 + (x & ((1 << mb) - 1)) / static_cast<double>(1 << mb), negative ? -magnitude : magnitude);
    }
    INFO("code ", c);
    CHECK(decode(format_named("hif8"), c) == (c & 0x80 ? -value : value));
  }
}

TEST_CASE("oracle: f32 to bf16 and f16 vectors of section 1.2") {
  for (pair v : {pair{0x3F808000, 0x3F80},
                 {0x3F818000, 0x3F82},
                 {0x3F808001, 0x3F81},
                 {0x7F7FFFFF, 0x7F80},
                 {0x00000001, 0x0000},
                 {0x00008000, 0x0000},
                 {0x00008001, 0x0001},
                 {0x80000000, 0x8000},
                 {0x7F7F7FFF, 0x7F7F},
                 {0x7F7F8000, 0x7F80},
                 {0x007FC000, 0x0080},
                 {0x7F800001, 0x7FC0}})
    CHECK_MESSAGE(code("bf16", v.from, rounding::nearest_even, overflow::to_special) == v.to, v.from);
  for (pair v : {pair{0x477FE000, 0x7BFF},
                 {0x477FEFFF, 0x7BFF},
                 {0x477FF000, 0x7C00},
                 {0x38800000, 0x0400},
                 {0x387FFFFF, 0x0400},
                 {0x33800000, 0x0001},
                 {0x33000000, 0x0000},
                 {0x33000001, 0x0001},
                 {0x3F801000, 0x3C00},
                 {0x3F803000, 0x3C02},
                 {0x00000001, 0x0000},
                 {0xC2C80000, 0xD640}})
    CHECK_MESSAGE(code("f16", v.from, rounding::nearest_even, overflow::to_special) == v.to, v.from);
}

TEST_CASE("oracle: bf16 and f16 NaNs are quiet and keep sign and upper payload, as section 1.2 says for bf16") {
  CHECK(code("bf16", 0xFFFFFFFF) == 0xFFFF);
  CHECK(code("bf16", 0x7F812345) == 0x7FC1);
  CHECK(code("f16", 0x7F802000) == 0x7E01);
  CHECK(code("f16", 0xFFFFFFFF) == 0xFFFF);
}

TEST_CASE("oracle: OFP8 vectors and thresholds of section 1.5") {
  struct row {
    std::uint32_t bits, e4m3_sat, e4m3_special, e5m2_sat, e5m2_special;
  };
  const row rows[] = {
      {0x00000000, 0x00, 0x00, 0x00, 0x00}, {0x80000000, 0x80, 0x80, 0x80, 0x80}, {0x3F800000, 0x38, 0x38, 0x3C, 0x3C},
      {0x3F880000, 0x38, 0x38, 0x3C, 0x3C}, {0x3F900000, 0x39, 0x39, 0x3C, 0x3C}, {0x3F980000, 0x3A, 0x3A, 0x3D, 0x3D},
      {0xBF880000, 0xB8, 0xB8, 0xBC, 0xBC}, {0x3A800000, 0x00, 0x00, 0x14, 0x14}, {0x3B000000, 0x01, 0x01, 0x18, 0x18},
      {0x3B400000, 0x02, 0x02, 0x1A, 0x1A}, {0x3BA00000, 0x02, 0x02, 0x1D, 0x1D}, {0x3C700000, 0x08, 0x08, 0x24, 0x24},
      {0x43700000, 0x77, 0x77, 0x5C, 0x5C}, {0x43E00000, 0x7E, 0x7E, 0x5F, 0x5F}, {0x43E80000, 0x7E, 0x7E, 0x5F, 0x5F},
      {0x43E88000, 0x7E, 0x7F, 0x5F, 0x5F}, {0xC47A0000, 0xFE, 0xFF, 0xE4, 0xE4}, {0x37800000, 0x00, 0x00, 0x01, 0x01},
      {0x37000000, 0x00, 0x00, 0x00, 0x00}, {0x37400000, 0x00, 0x00, 0x01, 0x01}, {0x37C00000, 0x00, 0x00, 0x02, 0x02},
      {0x47600000, 0x7E, 0x7F, 0x7B, 0x7B}, {0x476FFF00, 0x7E, 0x7F, 0x7B, 0x7B}, {0x47700000, 0x7E, 0x7F, 0x7B, 0x7C},
      {0x7F800000, 0x7E, 0x7F, 0x7B, 0x7C}, {0xFF800000, 0xFE, 0xFF, 0xFB, 0xFC}, {0x7FC00000, 0x7F, 0x7F, 0x7E, 0x7E},
      {0x3DCCCCCD, 0x1D, 0x1D, 0x2E, 0x2E}, {0x3E99999A, 0x2A, 0x2A, 0x35, 0x35}, {0xC0490FDB, 0xC5, 0xC5, 0xC2, 0xC2}};
  for (const row& r : rows) {
    INFO("bits ", r.bits);
    CHECK(code("e4m3", r.bits) == r.e4m3_sat);
    CHECK(code("e4m3", r.bits, rounding::nearest_even, overflow::to_special) == r.e4m3_special);
    CHECK(code("e5m2", r.bits) == r.e5m2_sat);
    CHECK(code("e5m2", r.bits, rounding::nearest_even, overflow::to_special) == r.e5m2_special);
  }
  const auto special = overflow::to_special;
  CHECK(code_of("e4m3", 464, rounding::nearest_even, special) == 0x7E);
  CHECK(code("e4m3", bits_of(464.f) + 1, rounding::nearest_even, special) == 0x7F);
  CHECK(code("e5m2", bits_of(61440.f) - 1, rounding::nearest_even, special) == 0x7B);
  CHECK(code_of("e5m2", 61440, rounding::nearest_even, special) == 0x7C);
  CHECK(code_of("e4m3", 0x1p-10) == 0);
  CHECK(code_of("e5m2", 0x1p-17) == 0);
}

TEST_CASE("oracle: rounding through f16 differs from direct rounding exactly as section 1.5 lists") {
  struct row {
    const char* name;
    std::uint32_t bits, direct, through;
  };
  const row rows[] = {
      {"e4m3", 0xBD0805D9, 0x91, 0x90}, {"e4m3", 0x43C807EF, 0x7D, 0x7C}, {"e4m3", 0x3F2800DE, 0x33, 0x32},
      {"e4m3", 0xC3A803E5, 0xFB, 0xFA}, {"e4m3", 0xC0080A19, 0xC1, 0xC0}, {"e4m3", 0xBF48099C, 0xB5, 0xB4},
      {"e5m2", 0x45D0081F, 0x6F, 0x6E}, {"e5m2", 0x47500D65, 0x7B, 0x7A}, {"e5m2", 0xBB6FF4C0, 0x9B, 0x9C},
      {"e5m2", 0xC2EFF7ED, 0xD7, 0xD8}, {"e5m2", 0x3F500E58, 0x3B, 0x3A}, {"e5m2", 0x3D6FFE6C, 0x2B, 0x2C}};
  for (const row& r : rows) {
    INFO(r.name, " bits ", r.bits);
    CHECK(code(r.name, r.bits, rounding::nearest_even, overflow::to_special) == r.direct);
    CHECK(code(r.name, r.bits, rounding::via_f16, overflow::to_special) == r.through);
  }
  const double nan = std::numeric_limits<double>::quiet_NaN();  // oneDNN's NaN into e2m1: S | 7
  CHECK(encode(format_named("e2m1"), nan, rounding::via_f16, overflow::saturate, nan_rule::to_max) == 7);
  CHECK(encode(format_named("e2m1"), -nan, rounding::via_f16, overflow::saturate, nan_rule::to_max) == 0xF);
}

TEST_CASE("oracle: fnuz vectors of section 1.6") {
  struct row {
    const char* name;
    double x;
    std::uint32_t saturated, special;
  };
  const double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  const row rows[] = {{"e4m3fnuz", 1, 0x40, 0x40},     {"e5m2fnuz", 1, 0x40, 0x40},     {"e4m3fnuz", -1, 0xC0, 0xC0},
                      {"e5m2fnuz", -1, 0xC0, 0xC0},    {"e4m3fnuz", 240, 0x7F, 0x7F},   {"e4m3fnuz", 247, 0x7F, 0x7F},
                      {"e4m3fnuz", 248, 0x7F, 0x80},   {"e4m3fnuz", 300, 0x7F, 0x80},   {"e4m3fnuz", 0x1p-11, 0, 0},
                      {"e4m3fnuz", 0x1p-10, 1, 1},     {"e5m2fnuz", 57344, 0x7F, 0x7F}, {"e5m2fnuz", 61439, 0x7F, 0x7F},
                      {"e5m2fnuz", 61440, 0x7F, 0x80}, {"e5m2fnuz", 0x1p-17, 1, 1},     {"e5m2fnuz", 0x1p-18, 0, 0},
                      {"e4m3fnuz", inf, 0x7F, 0x80},   {"e5m2fnuz", -inf, 0xFF, 0x80},  {"e4m3fnuz", nan, 0x80, 0x80},
                      {"e5m2fnuz", -nan, 0x80, 0x80},  {"e4m3fnuz", -0.0, 0, 0},        {"e4m3fnuz", -0x1p-12, 0, 0}};
  for (const row& r : rows) {
    INFO(r.name, " x ", r.x);
    CHECK(code_of(r.name, r.x) == r.saturated);
    CHECK(code_of(r.name, r.x, rounding::nearest_even, overflow::to_special) == r.special);
  }
}

TEST_CASE("oracle: MX element vectors of section 1.7") {
  struct row {
    std::uint32_t bits;
    std::uint32_t e2m1[3], e1m2[3], e2m3, e3m2;
  };  // nearest even, nearest away, toward negative
  const row rows[] = {{bits_of(.125f), {0, 0, 0}, {0, 1, 0}, 0x01, 0x02},
                      {bits_of(.25f), {0, 1, 0}, {1, 1, 1}, 0x02, 0x04},
                      {bits_of(.375f), {1, 1, 0}, {2, 2, 1}, 0x03, 0x06},
                      {bits_of(.625f), {1, 1, 1}, {2, 3, 2}, 0x05, 0x09},
                      {bits_of(.75f), {2, 2, 1}, {3, 3, 3}, 0x06, 0x0A},
                      {bits_of(.875f), {2, 2, 1}, {4, 4, 3}, 0x07, 0x0B},
                      {bits_of(1.125f), {2, 2, 2}, {4, 5, 4}, 0x09, 0x0C},
                      {bits_of(1.25f), {2, 3, 2}, {5, 5, 5}, 0x0A, 0x0D},
                      {bits_of(1.375f), {3, 3, 2}, {6, 6, 5}, 0x0B, 0x0E},
                      {bits_of(1.625f), {3, 3, 3}, {6, 7, 6}, 0x0D, 0x0E},
                      {bits_of(1.75f), {4, 4, 3}, {7, 7, 7}, 0x0E, 0x0F},
                      {bits_of(1.875f), {4, 4, 3}, {7, 7, 7}, 0x0F, 0x10},
                      {bits_of(2.5f), {4, 5, 4}, {7, 7, 7}, 0x12, 0x11},
                      {bits_of(3.5f), {6, 6, 5}, {7, 7, 7}, 0x16, 0x13},
                      {bits_of(5.f), {6, 7, 6}, {7, 7, 7}, 0x1A, 0x15},
                      {bits_of(5.0000005f), {7, 7, 6}, {7, 7, 7}, 0x1A, 0x15},
                      {bits_of(7.f), {7, 7, 7}, {7, 7, 7}, 0x1E, 0x17},
                      {bits_of(7.75f), {7, 7, 7}, {7, 7, 7}, 0x1F, 0x18},
                      {bits_of(30.f), {7, 7, 7}, {7, 7, 7}, 0x1F, 0x1F},
                      {bits_of(-.25f), {8, 9, 9}, {9, 9, 9}, 0x22, 0x24},
                      {bits_of(-.3f), {9, 9, 9}, {9, 9, 0xA}, 0x22, 0x25},
                      {bits_of(-1.1f), {0xA, 0xA, 0xB}, {0xC, 0xC, 0xD}, 0x29, 0x2C},
                      {bits_of(-2.5f), {0xC, 0xD, 0xD}, {0xF, 0xF, 0xF}, 0x32, 0x31},
                      {bits_of(-5.f), {0xE, 0xF, 0xF}, {0xF, 0xF, 0xF}, 0x3A, 0x35},
                      {bits_of(-6.5f), {0xF, 0xF, 0xF}, {0xF, 0xF, 0xF}, 0x3D, 0x36},
                      {bits_of(-0.f), {8, 8, 8}, {8, 8, 8}, 0x20, 0x20}};
  const rounding modes[] = {rounding::nearest_even, rounding::nearest_away, rounding::toward_negative};
  for (const row& r : rows) {
    INFO("x ", float_of(r.bits));
    for (int m = 0; m < 3; ++m) {
      CHECK(code("e2m1", r.bits, modes[m]) == r.e2m1[m]);
      CHECK(code("e1m2", r.bits, modes[m]) == r.e1m2[m]);
    }
    CHECK(code("e2m3", r.bits) == r.e2m3);
    CHECK(code("e3m2", r.bits) == r.e3m2);
  }
}

TEST_CASE("oracle: E8M0 vectors of section 1.7, down and up") {
  struct row {
    std::uint32_t bits, down, up;
  };
  const row rows[] = {{0x3F800000, 0x7F, 0x7F}, {0x3FC00000, 0x7F, 0x80}, {0x40000000, 0x80, 0x80},
                      {0x00400000, 0, 0},       {0x00600000, 0x00, 0x01}, {0x00800000, 0x01, 0x01},
                      {0x00000000, 0, 0},       {0x7F800000, 0xFF, 0xFF}, {0x7F7FFFFF, 0xFE, 0xFE},
                      {0x7FC00000, 0xFF, 0xFF}, {0xBFC00000, 0x7F, 0x80}};
  for (const row& r : rows) {
    INFO("bits ", r.bits);
    CHECK(code("e8m0", r.bits, rounding::toward_zero) == r.down);
    CHECK(code("e8m0", r.bits, rounding::toward_positive) == r.up);
  }
  CHECK(code_of("e8m0", 3, rounding::nearest_away) == 0x81);  // ml_dtypes, torch, ONNX
  CHECK(code_of("e8m0", 3, rounding::nearest_even) == 0x80);  // gfloat
  CHECK(code("e8m0", 0x7F7FFFFF, rounding::nearest_even, overflow::to_special) == 0xFF);
}

TEST_CASE("oracle: HiF8 vectors of section 1.8") {
  struct row {
    std::uint32_t bits, special, saturated;
  };
  const row rows[] = {{0x3F880000, 0x09, 0x09},        {0x3F866666, 0x08, 0x08},        {0x3FF80000, 0x10, 0x10},
                      {0x3FF7FCB9, 0x0F, 0x0F},        {0x3F780000, 0x08, 0x08},        {0x3EF00000, 0x37, 0x37},
                      {0x40F80000, 0x28, 0x28},        {0x41100000, 0x29, 0x29},        {0x41700000, 0x2F, 0x2F},
                      {0x42FE0000, 0x4C, 0x4C},        {0x42F00000, 0x4C, 0x4C},        {0x42EFCCCD, 0x4B, 0x4B},
                      {0x43200000, 0x4D, 0x4D},        {0x437F0000, 0x60, 0x60},        {0x43A00000, 0x61, 0x61},
                      {0x439FF333, 0x60, 0x60},        {0x47000000, 0x6E, 0x6E},        {0x471FFF00, 0x6E, 0x6E},
                      {0x47200000, 0x6F, 0x6E},        {0x4E6E6B28, 0x6F, 0x6E},        {0x38200000, 0x7F, 0x7F},
                      {0x37C00000, 0x7E, 0x7E},        {0x37BEB852, 0x07, 0x07},        {0x34800000, 0x01, 0x01},
                      {0x34C00000, 0x02, 0x02},        {0x34000000, 0x01, 0x01},        {0x33FFBE77, 0x00, 0x00},
                      {0xB4000000, 0x81, 0x81},        {0xB089705F, 0x00, 0x00},        {0x7F800000, 0x6F, 0x6E},
                      {0xFF800000, 0xEF, 0xEE},        {0x7FC00000, 0x80, 0x80},        {0x40490FDB, 0x15, 0x15},
                      {0xC2C80000, 0xCA, 0xCA},        {0x3DCCCCCD, 0x52, 0x52},        {0x80000000, 0x00, 0x00},
                      {bits_of(65504.f), 0x6F, 0x6E},  {bits_of(0x1p-24f), 0x00, 0x00}, {bits_of(0x1p-14f), 0x7C, 0x7C},
                      {bits_of(3.140625f), 0x15, 0x15}};
  for (const row& r : rows) {
    INFO("bits ", r.bits);
    CHECK(code("hif8", r.bits, rounding::nearest_away, overflow::to_special) == r.special);
    CHECK(code("hif8", r.bits, rounding::nearest_away) == r.saturated);
  }
  const double nan = std::numeric_limits<double>::quiet_NaN();  // the saturating casts of CANN
  CHECK(encode(format_named("hif8"), nan, rounding::nearest_away, overflow::saturate, nan_rule::to_zero) == 0);
}

TEST_CASE("oracle: integers round ties to even, saturate, and have one zero") {
  struct row {
    const char* name;
    double x;
    std::uint32_t code;
  };
  const row rows[] = {{"int8", 2.5, 2},
                      {"int8", 3.5, 4},
                      {"int8", -2.5, 0xFE},
                      {"int8", 1e9, 127},
                      {"int8", -128.5, 0x80},
                      {"int8", -0.5, 0},
                      {"int8", -0.0, 0},
                      {"narrow_int8", -1000, 0x81},
                      {"int4", 7.5, 7},
                      {"int4", -8.5, 8},
                      {"int4", -1, 0xF},
                      {"int2", -1, 3},
                      {"int2", 1.5, 1},
                      {"uint2", 2.5, 2},
                      {"uint2", -1, 0},
                      {"uint8", 254.5, 254},
                      {"uint8", 255.5, 255},
                      {"int16", -32768.5, 0x8000},
                      {"uint16", 65535.5, 65535},
                      {"int32", 2147483520, 2147483520u},
                      {"int32", 2147483648.0, 2147483647u},
                      {"int32", -2147483648.0, 0x80000000u},
                      {"int32", -1e10, 0x80000000u},
                      {"int32", 2.5, 2},
                      {"int32", -3.5, 0xFFFFFFFCu},
                      {"int32", 8388607.5, 8388608}};
  for (const row& r : rows) CHECK_MESSAGE(code_of(r.name, r.x) == r.code, r.name << " " << r.x);
  CHECK(code_of("int8", -2.5, rounding::nearest_away) == 0xFD);
  CHECK(code_of("int8", -2.5, rounding::toward_positive) == 0xFE);
  CHECK(code_of("int8", -2.25, rounding::toward_negative) == 0xFD);
  CHECK(code_of("int8", 300, rounding::nearest_even, overflow::to_special) == 127);
}

TEST_CASE("oracle: every finite code encodes to itself under every rounding") {
  for (const format& f : formats())
    for (const point& p : f.points)
      for (rounding r : {rounding::nearest_even, rounding::nearest_away, rounding::toward_negative,
                         rounding::toward_positive, rounding::toward_zero}) {
        INFO(f.name, " code ", p.code, " ", name_of(r));
        REQUIRE(encode(f, p.value, r, overflow::to_special) == p.code);
      }
}

TEST_CASE("oracle: directed roundings bracket the number, nearest ones pick the closer bracket") {
  for (const format& f : formats()) {
    if (f.only_magnitudes || f.points.size() > 1024) continue;
    for (float x : adversarial(f, 2000)) {
      if (!(x >= f.min && x <= f.max)) continue;
      const double low = decode(f, encode(f, x, rounding::toward_negative)),
                   high = decode(f, encode(f, x, rounding::toward_positive));
      const double nearest = decode(f, encode(f, x, rounding::nearest_even)),
                   zero = decode(f, encode(f, x, rounding::toward_zero));
      INFO(f.name, " x ", x);
      REQUIRE((low <= x && x <= high));
      REQUIRE((nearest == low || nearest == high));
      REQUIRE(std::fabs(nearest - x) <= std::min(x - low, high - x));
      REQUIRE(std::fabs(zero) <= std::fabs(x));
    }
  }
}

TEST_CASE("oracle: random inputs are the same on every machine") {
  random_bits random(1);
  const std::uint32_t first = random.word(), second = random.word();
  CHECK(first == 0x910A2DECu);   // splitmix64, seed 1: 910A2DEC89025CC1
  CHECK(second == 0xBEEB8DA1u);  // then BEEB8DA1658EEC67
}
