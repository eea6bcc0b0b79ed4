// Mirrors include/qtensor/format/hifloat8.hpp: all positive codes as NUMERICS 1.8 lists them.
// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <cmath>
#include <qtensor/format/hifloat8.hpp>
#include <string>
#include <vector>

using namespace qtensor;

namespace {

/// Codes first, first + 1, ...: 2^exponent * (1 + k / steps), k = 0 .. steps - 1.
struct run {
  std::uint32_t first;
  int exponent, steps;
};
const std::vector<run> listing = {
    {0x08, 0, 8},   {0x10, 1, 8},   {0x18, -1, 8}, {0x20, 2, 8},  {0x28, 3, 8},   {0x30, -2, 8},  {0x38, -3, 8},
    {0x40, 4, 4},   {0x44, 5, 4},   {0x48, 6, 4},  {0x4C, 7, 4},  {0x50, -4, 4},  {0x54, -5, 4},  {0x58, -6, 4},
    {0x5C, -7, 4},  {0x60, 8, 2},   {0x62, 9, 2},  {0x64, 10, 2}, {0x66, 11, 2},  {0x68, 12, 2},  {0x6A, 13, 2},
    {0x6C, 14, 2},  {0x6E, 15, 1},  {0x70, -8, 2}, {0x72, -9, 2}, {0x74, -10, 2}, {0x76, -11, 2}, {0x78, -12, 2},
    {0x7A, -13, 2}, {0x7C, -14, 2}, {0x7E, -15, 2}};

void check_code(std::uint32_t code, double value) {
  INFO("code ", code);
  CHECK(static_cast<double>(hif8::decode(code)) == value);
  CHECK(static_cast<double>(hif8::decode(code | 0x80)) == -value);
}

}  // namespace

TEST_CASE("hif8: every code of the listing, and its negative") {
  std::size_t listed = 0;
  for (const run& r : listing)
    for (int k = 0; k < r.steps; ++k, ++listed)
      check_code(r.first + static_cast<std::uint32_t>(k),
                 std::ldexp(1.0 + static_cast<double>(k) / r.steps, r.exponent));
  for (std::uint32_t code = 1; code <= 7; ++code, ++listed)
    check_code(code, std::ldexp(1.0, static_cast<int>(code) - 23));
  CHECK(listed == 126);
}

TEST_CASE("hif8: one zero, one NaN, infinities in the slot of 1.5 * 2^15") {
  CHECK(bits_of(hif8::decode(0x00)) == 0u);
  CHECK(std::isnan(hif8::decode(0x80)));
  CHECK(hif8::decode(0x6F) == INFINITY);
  CHECK(hif8::decode(0xEF) == -INFINITY);
  CHECK(hif8::next_above_max == 1.5f * 32768.f);
}

TEST_CASE("hif8: facts") {
  CHECK(hif8::max == 32768.f);
  CHECK(hif8::min == -32768.f);
  CHECK(hif8::bits == 8);
  CHECK(hif8::ties_away);
  CHECK(hif8::decode(0x07) == 0x1p-16f);  // largest denormal
  CHECK(hif8::decode(0x7E) == 0x1p-15f);  // smallest normal
  CHECK(hif8::decode(0x38) == 0.125f);
  CHECK(std::string(std::string_view(hif8::name)) == "hif8");
}
