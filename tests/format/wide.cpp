// Mirrors include/qtensor/format/wide.hpp: the facts of NUMERICS 1.2, and every code.
// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <cmath>
#include <qtensor/format/wide.hpp>
#include <string>

using namespace qtensor;

TEST_CASE("bf16: the upper half of a float, every code") {
  for (std::uint32_t code = 0; code < 65536; ++code) {
    const float value = bf16::decode(code), half = float_of(code << 16);
    INFO("code ", code);
    if (std::isnan(half))
      REQUIRE(std::isnan(value));
    else
      REQUIRE(bits_of(value) == bits_of(half));
  }
  CHECK(bf16::decode(0x7F7F) == 3.3895314e38f);
  CHECK(bf16::decode(0x0080) == 0x1p-126f);
  CHECK(bf16::decode(0x0001) == 0x1p-133f);
  CHECK(bf16::max_code == 0x7F7F);
  CHECK(bf16::infinity_code == 0x7F80);
  CHECK(bf16::nan_code == 0x7FC0);
  CHECK(std::string(std::string_view(bf16::name)) == "bf16");
}

TEST_CASE("f16: binary16, every code") {
  for (std::uint32_t code = 0; code < 65536; ++code) {
    const int e = static_cast<int>(code >> 10 & 31), m = static_cast<int>(code & 1023);
    const float value = f16::decode(code);
    INFO("code ", code);
    if (e == 31 && m != 0)
      REQUIRE(std::isnan(value));
    else {
      const double size = e == 31 ? INFINITY : e == 0 ? std::ldexp(m, -24) : std::ldexp(1024 + m, e - 25);
      REQUIRE(static_cast<double>(std::fabs(value)) == size);
      REQUIRE(std::signbit(value) == (code >= 0x8000));
    }
  }
  CHECK(f16::max == 65504.f);
  CHECK(f16::max_code == 0x7BFF);
  CHECK(f16::decode(0x0400) == 0x1p-14f);
  CHECK(f16::decode(0x0001) == 0x1p-24f);
  CHECK(f16::infinity_code == 0x7C00);
  CHECK(f16::nan_code == 0x7E00);
  CHECK(std::string(std::string_view(f16::name)) == "f16");
}

TEST_CASE("f32: a code is the float's bits") {
  for (std::uint32_t bits : {0u, 0x80000000u, 1u, 0x3F800000u, 0x7F7FFFFFu, 0xFF800000u, 0x7FC00001u})
    CHECK(bits_of(f32::decode(bits)) == bits);
  CHECK(f32::max == 0x1.fffffep127f);
  CHECK(f32::min == -0x1.fffffep127f);
  CHECK(f32::bits == 32);
  CHECK(std::string(std::string_view(f32::name)) == "f32");
}
