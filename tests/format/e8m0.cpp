// Mirrors include/qtensor/format/e8m0.hpp.
// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <cmath>
#include <qtensor/format/e8m0.hpp>
#include <string>

using namespace qtensor;

TEST_CASE("e8m0: code c is 2^(c - 127), FF is NaN, there is no zero, sign or infinity") {
  for (int code = 0; code < 255; ++code) {
    INFO("code ", code);
    CHECK(static_cast<double>(e8m0::decode(static_cast<std::uint32_t>(code))) == std::ldexp(1.0, code - 127));
  }
  CHECK(std::isnan(e8m0::decode(0xFF)));
  CHECK(e8m0::nan_code == 0xFF);
}

TEST_CASE("e8m0: code 0 is the subnormal float 00400000, code FE is 2^127") {
  CHECK(bits_of(e8m0::decode(0)) == 0x00400000u);
  CHECK(bits_of(e8m0::decode(0xFE)) == 0x7F000000u);
  CHECK(e8m0::min == e8m0::decode(0));
  CHECK(e8m0::max == e8m0::decode(e8m0::max_code));
  CHECK(e8m0::max_code == 0xFE);
  CHECK_FALSE(e8m0::is_signed);
  CHECK(std::string(std::string_view(e8m0::name)) == "e8m0");
}
