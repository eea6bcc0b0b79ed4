// Mirrors include/qtensor/format/format.hpp.
// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <cmath>
#include <qtensor/format/e8m0.hpp>
#include <qtensor/format/hifloat8.hpp>
#include <qtensor/format/integer.hpp>
#include <qtensor/format/wide.hpp>

#include "format/of_users.hpp"

using namespace qtensor;

namespace {

/// A format as a user writes one: QLoRA's NF4, sixteen levels and no formula.
using of_users::nf4;
static_assert(format<nf4>);

// What is not a format, by the fact that is missing.
struct without_decode {
  static constexpr int bits = 4;
  static constexpr bool is_integer = false, is_signed = true;
  static constexpr float min = -1.f, max = 1.f;
  static constexpr fixed_string name = "x";
};
struct decodes_to_double : without_decode {
  static constexpr double decode(std::uint32_t code) { return code; }
};
struct of_no_bits : without_decode {
  static constexpr int bits = 0;
  static constexpr float decode(std::uint32_t) { return 0.f; }
};
struct of_33_bits : of_no_bits {
  static constexpr int bits = 33;
};
static_assert(!format<without_decode> && !format<decodes_to_double> && !format<of_no_bits> && !format<of_33_bits> &&
              !format<float>);

template <class... F>
constexpr bool all_formats = (format<F> && ...);
static_assert(
    all_formats<int8, uint8, int16, uint16, int32, int4, uint4, int2, uint2, narrow_range<int8>, mxint8_code>);
static_assert(all_formats<e4m3, e5m2, e4m3fnuz, e5m2fnuz, e3m2, e2m3, e2m1, e1m2, hif8, e8m0, bf16, f16, f32>);
static_assert(all_formats<const int8, const nf4>);

// A code is held by the type a format names, else by the smallest unsigned one.
static_assert(std::is_same_v<storage_t<int8>, std::int8_t> && std::is_same_v<storage_t<uint8>, std::uint8_t>);
static_assert(std::is_same_v<storage_t<int16>, std::int16_t> && std::is_same_v<storage_t<uint16>, std::uint16_t>);
static_assert(std::is_same_v<storage_t<int32>, std::int32_t> && std::is_same_v<storage_t<f32>, float>);
static_assert(std::is_same_v<storage_t<bf16>, std::uint16_t> && std::is_same_v<storage_t<f16>, std::uint16_t>);
static_assert(std::is_same_v<storage_t<e4m3>, std::uint8_t> && std::is_same_v<storage_t<e8m0>, std::uint8_t>);
static_assert(std::is_same_v<storage_t<int4>, std::uint8_t> && std::is_same_v<storage_t<nf4>, std::uint8_t>);
static_assert(std::is_same_v<storage_t<narrow_range<int8>>, std::int8_t>);

static_assert(is_packed<int4> && is_packed<e2m3> && is_packed<int2> && is_packed<nf4>);
static_assert(!is_packed<int8> && !is_packed<e4m3> && !is_packed<f32>);

}  // namespace

TEST_CASE("decode: any format's code as a float; 32-bit integers are rounded to nearest even") {
  CHECK(decode<int8>(0xFF) == -1.f);
  CHECK(decode<nf4>(15) == 1.f);
  CHECK(decode<f32>(0x40490FDB) == 3.14159274f);
  CHECK(decode<int32>(0x7FFFFFFF) == 2147483648.f);
  CHECK(decode<int32>(0x80000000) == -2147483648.f);
  CHECK(decode<int32>(16777217) == 16777216.f);
  CHECK(decode<int32>(16777219) == 16777220.f);
}

TEST_CASE("floor_log2: exact at and around every power of two, subnormals included") {
  for (int e = -149; e <= 127; ++e) {
    INFO("exponent ", e);
    const float power = std::ldexp(1.f, e);
    CHECK(floor_log2(power) == e);
    CHECK(floor_log2(-power) == e);
    if (e > -149) CHECK(floor_log2(std::nextafter(power, 0.f)) == e - 1);
    if (e > -149 && e < 127) CHECK(floor_log2(std::nextafter(power, infinity)) == e);
  }
}

TEST_CASE("max_exponent: OCP's emax, from NUMERICS 1.3 to 1.7") {
  CHECK(max_exponent<e4m3> == 8);
  CHECK(max_exponent<e5m2> == 15);
  CHECK(max_exponent<e3m2> == 4);
  CHECK(max_exponent<e2m3> == 2);
  CHECK(max_exponent<e2m1> == 2);
  CHECK(max_exponent<e1m2> == 0);
  CHECK(max_exponent<mxint8_code> == 0);
  CHECK(max_exponent<int8> == 6);
  CHECK(max_exponent<hif8> == 15);
}
