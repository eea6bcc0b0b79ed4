// Mirrors include/qtensor/core/rounded.hpp.
// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <cmath>
#include <initializer_list>
#include <qtensor/core/rounded.hpp>

using namespace qtensor;

namespace {

// (1 + 2^-12)^2 = 1 + 2^-11 + 2^-24; its last term is lost when the product is rounded, and kept by a fused step.
constexpr float a = 1.f + 0x1p-12f, two_roundings = 0.f, one_rounding = 0x1p-24f, minus = -(1.f + 0x1p-11f);

static_assert(rounded(a * a) + minus == two_roundings);

#if defined(__x86_64__) && defined(__GNUC__)
/// Compiled for a CPU with fused multiply-adds, which is where g++ contracts.
__attribute__((target("fma"), noinline)) float with_fma(float x, float y, float c) { return rounded(x * y) + c; }
bool cpu_has_fma() { return __builtin_cpu_supports("fma") != 0; }
#else
[[gnu::noinline]] float with_fma(float x, float y, float c) { return rounded(x * y) + c; }
bool cpu_has_fma() { return true; }
#endif

}  // namespace

TEST_CASE("rounded: returns its argument, bit for bit") {
  for (float x : {0.f, -0.f, 1.f, -3.5f, 0x1p-149f, 3.4e38f, INFINITY}) {
    CHECK(rounded(x) == x);
    CHECK(std::signbit(rounded(x)) == std::signbit(x));
  }
  CHECK(std::isnan(rounded(NAN)));
}

TEST_CASE("rounded: rounded(x * y) + c has two roundings, also where the CPU could fuse them") {
  REQUIRE(std::fma(a, a, minus) == one_rounding);  // otherwise the numbers below would prove nothing
  volatile float x = a, y = a, c = minus;
  CHECK(rounded(x * y) + c == two_roundings);
  if (cpu_has_fma())
    CHECK(with_fma(x, y, c) == two_roundings);
  else
    MESSAGE("this CPU has no fused multiply-add");
}

TEST_CASE("rounded: a double's product keeps its own rounding too") {
  constexpr double a = 1.0 + 0x1p-27, minus = -(1.0 + 0x1p-26);  // (1 + 2^-27)^2 = 1 + 2^-26 + 2^-54
  static_assert(rounded(a * a) + minus == 0.0);
  REQUIRE(std::fma(a, a, minus) == 0x1p-54);
  volatile double x = a, y = a, c = minus;
  CHECK(rounded(x * y) + c == 0.0);
  CHECK(std::signbit(rounded(-0.0)));
}
