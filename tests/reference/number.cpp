// Mirrors include/qtensor/reference/number.hpp.
// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <limits>
#include <qtensor/reference/number.hpp>
#include <qtensor/scheme/schemes.hpp>

#include "core/sentence.hpp"
#include "oracle/inputs.hpp"

using namespace qtensor;

namespace {

using u8 = scheme<uint8, per_tensor, zero_point<uint8>, static_only, zp_before_round, nan_to_zero>;
using i32 = scheme<int32, per_tensor, zero_point<int32>, static_only, zp_before_round>;

/// number_type rounds by the CPU; quantize_element is the definition.
template <class S>
void check_rounding() {
  const std::int32_t zero = S::has_zero_point ? 3 : 0;
  for (float scale : {1.f, .1f, 3e-3f, 0x1p-140f, 0x1p120f, 0.f})
    for (float k : {0.f,        .5f,        1.5f,       2.5f,         -.5f,          -2.5f,     126.5f,
                    127.5f,     254.5f,     -128.5f,    2147483520.f, -2147483648.f, 4e9f,      1e30f,
                    8388607.5f, 4194303.5f, 16777215.f, infinity,     -infinity,     quiet_nan, -0.f})
      for (float x : {k * scale, std::nextafter(k * scale, infinity), k}) {
        INFO(name<S>.c_str(), " x=", x, " scale=", scale);
        const auto ours = number_type<S>{scale, zero}(x);
        CHECK(ours.code == quantize_element<S>(x, {scale}, zero));
        CHECK(bits_of(ours.real()) == bits_of(dequantize_element<S>(ours.code, {scale}, zero)));
      }
}

}  // namespace

TEST_CASE("number: the CPU's rounding gives the codes of quantize_element, in every integer scheme") {
  check_rounding<u8>();
  check_rounding<i32>();
  check_rounding<with<i32, zp_after_round>>();
  check_rounding<int8_per_tensor>();
  check_rounding<uint8_per_tensor>();
  check_rounding<with<u8, stored_range<3, 200>>>();
  check_rounding<with<u8, zp_after_round, nan_to_zero_point>>();
  check_rounding<scheme<int4, per_tensor, static_only>>();
  check_rounding<scheme<uint2, per_tensor, zero_point<uint2>, static_only>>();
  check_rounding<scheme<e4m3, per_tensor, static_only>>();
  check_rounding<with<int8_per_tensor, reciprocal, nearest_away>>();
}

TEST_CASE("number: usable in constant expressions") {
  constexpr number_type<u8> type{.5f, 10};
  static_assert(type(50.f).code == 110);
  static_assert(type(50.f).real() == 50.f);
  static_assert(add(type(50.f), type(60.f)).code == 230);
  static_assert(max(2, 3) == 3);
  CHECK(type(50.f) == type.of_code(110));
}

TEST_CASE("number: requantize of the example in NUMERICS 7.4") {
  const auto in = requantize_to<u8>(.5f, 10);
  const auto accumulator = requantize_to<i32>(.25f);
  const auto out = requantize_to<u8>(1.f, 5);
  CHECK(accumulator(in.of_code(110)).integer() == 200);
  CHECK(accumulator(in.of_code(130)).integer() == 240);
  CHECK(accumulator(in.of_code(250)).integer() == 480);
  auto sum = accumulator(in(0.f));
  for (std::uint32_t code : {110u, 130u, 250u}) sum = add(sum, accumulator(in.of_code(code)));
  CHECK(sum.integer() == 920);
  CHECK(sum.real() == 230.f);
  CHECK(out(sum).code == 235);
  // In the type of the input the sum saturates.
  CHECK(add(in.of_code(110), in.of_code(130)).code == 230);
  CHECK(add(add(in.of_code(110), in.of_code(130)), in.of_code(250)).code == 255);
}

TEST_CASE("number: add, multiply, max and min of floats, integers, booleans and bf16") {
  CHECK(add(1.5f, 2.f) == 3.5f);
  CHECK(add(std::int8_t{127}, std::int8_t{1}) == std::int8_t{-128});
  CHECK(multiply(std::uint16_t{0xffff}, std::uint16_t{0xffff}) == std::uint16_t{1});
  CHECK(add(std::numeric_limits<std::int64_t>::max(), std::int64_t{1}) == std::numeric_limits<std::int64_t>::min());
  CHECK(add(true, false));
  CHECK(!multiply(true, false));
  CHECK(max(true, false));
  CHECK(!min(true, false));
  CHECK(std::isnan(max(1.f, quiet_nan)));
  CHECK(std::isnan(min(std::numeric_limits<double>::quiet_NaN(), 1.0)));
  CHECK(std::signbit(min(0.f, -0.f)));
  CHECK(std::signbit(min(-0.f, 0.f)));
  CHECK(!std::signbit(max(0.0, -0.0)));
  CHECK(!std::signbit(max(-0.0, 0.0)));
  const real<bf16> big(256.f), one(1.f);
  CHECK(static_cast<float>(add(big, one)) == 256.f);  // 257 is a tie of bf16
  CHECK(static_cast<float>(multiply(real<f16>(300.f), real<f16>(300.f))) == infinity);
}

TEST_CASE("number: max and min give a NaN as it is, the first of two, and zeros by their sign") {
  const auto check = []<class T, class Word>(T, const std::vector<Word>& words) {
    for (const Word p : words)
      for (const Word q : words) {
        const T a = std::bit_cast<T>(p), b = std::bit_cast<T>(q);
        const bool zeros = a == T(0) && b == T(0), first_is_negative = std::signbit(a);
        const Word larger = a != a ? p : b != b ? q : zeros ? (first_is_negative ? q : p) : a > b ? p : q;
        const Word smaller = a != a ? p : b != b ? q : zeros ? (first_is_negative ? p : q) : a < b ? p : q;
        CHECK(std::bit_cast<Word>(max(a, b)) == larger);
        CHECK(std::bit_cast<Word>(min(a, b)) == smaller);
      }
  };
  check(0.f, std::vector<std::uint32_t>{0, 0x80000000u, 1, 0x80000001u, 0x3f800000u, 0xbf800000u, 0x7f7fffffu,
                                        0x7f800000u, 0xff800000u, 0x7fc00000u, 0xffc00001u, 0x7fc12345u});
  check(0.0, std::vector<std::uint64_t>{0, 1ull << 63, 1, 0x3ff0000000000000u, 0xbff0000000000000u, 0x7ff0000000000000u,
                                        0xfff0000000000000u, 0x7ff8000000000001u, 0xfff8000000000002u});
}

TEST_CASE("number: convert_to dequantizes and rounds; real keeps every code") {
  CHECK(convert_to<f32>{}(requantize_to<u8>(.5f, 10).of_code(110)) == 50.f);
  CHECK(static_cast<float>(convert_to<bf16>{}(257.f)) == 256.f);
  CHECK(convert_to<f32>{}(real<f16>::of_code(0x3c00)) == 1.f);
  for (std::uint32_t c = 0; c < 0x10000; ++c) {
    const auto r = real<bf16>::of_code(static_cast<std::uint16_t>(c));
    if (!std::isnan(static_cast<float>(r))) CHECK(real<bf16>(static_cast<float>(r)).code == c);
  }
}

TEST_CASE("number: requantize_to refuses scales and zero points that no type has") {
  CHECK(sentence([] { requantize_to<u8>(0.f); }).find("finite and positive") != std::string::npos);
  CHECK(sentence([] { requantize_to<u8>(quiet_nan); }).find("finite and positive") != std::string::npos);
  CHECK(sentence([] { requantize_to<u8>(1.f, 256); }).find("it must be a code, 0 to 255") != std::string::npos);
  CHECK(requantize_to<i32>(1.f, 2147483647).zero_point == 2147483647);
  CHECK(sentence([] { requantize_to<i32>(1.f, 2147483648); }).find("it must be a code") != std::string::npos);
  using with_f16 = scheme<int8, per_tensor, scale_as<f16>, static_only>;
  CHECK(requantize_to<with_f16>(.1f).scale == 0.0999755859375f);
  CHECK(sentence([] { requantize_to<with_f16>(1e-9f); }).find("f16 stores as 0") != std::string::npos);
  CHECK(sentence([] { requantize_to<int8_per_tensor>(1.f, 1); }).find("symmetric") != std::string::npos);
}
