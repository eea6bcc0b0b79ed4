// Mirrors include/qtensor/policy/scale_rule.hpp: the vectors of NUMERICS 2.4 to 2.6, 4 and 11, as the rules state them.
// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <cmath>
#include <qtensor/format/hifloat8.hpp>
#include <qtensor/policy/scale_rule.hpp>
#include <vector>

using namespace qtensor;

namespace {

template <format F>
constexpr code_range range_of{static_cast<float>(F::min), static_cast<float>(F::max)};

/// The e8m0 code of a rule's scale.
template <class Rule, format Code>
int code_of(float amax) {
  const float s = Rule::template scale<Code, e8m0>(amax, range_of<Code>);
  if (std::isnan(s)) return 0xFF;
  for (std::uint32_t c = 0; c < 0xFF; ++c)
    if (e8m0::decode(c) == s) return static_cast<int>(c);
  return -1;  // no power of two
}

struct modes {
  float amax;
  int floor, ceil, even, rceil;
};
template <format Code>
void check_modes(const std::vector<modes>& rows) {
  for (const modes& r : rows) {
    INFO(std::string_view(Code::name).data(), " amax=", r.amax);
    CHECK(code_of<mx_floor, Code>(r.amax) == r.floor);
    CHECK(code_of<mx_ceil, Code>(r.amax) == r.ceil);
    CHECK(code_of<mx_even, Code>(r.amax) == r.even);
    CHECK(code_of<mx_rceil, Code>(r.amax) == r.rceil);
  }
}

template <format Code>
std::uint32_t amax_bits(float amax) {
  return bits_of(amax_scale::scale<Code, f32>(amax, range_of<Code>));
}

}  // namespace

TEST_CASE("FLOOR, CEIL, EVEN, RCEIL: the vectors of NUMERICS 2.6") {
  check_modes<e4m3>({{1.f, 119, 119, 119, 119},
                     {1.5f, 119, 120, 119, 119},
                     {1.75f, 119, 120, 119, 119},
                     {1.76f, 119, 120, 119, 120},
                     {1.9f, 119, 120, 119, 120},
                     {1.94f, 119, 120, 120, 120},
                     {2.f, 120, 120, 120, 120},
                     {448.f, 127, 128, 127, 127},
                     {451.5f, 127, 128, 127, 128},
                     {0.f, 0, 0, 0, 0},
                     {0x1p-126f, 0, 0, 0, 0}});
  check_modes<e2m1>({{1.5f, 125, 126, 125, 125},
                     {1.74f, 125, 126, 125, 126},
                     {1.75f, 125, 126, 126, 126},
                     {6.f, 127, 128, 127, 127},
                     {6.046875f, 127, 128, 127, 128}});
  check_modes<e5m2>({{1.75f, 112, 113, 112, 112},
                     {1.874f, 112, 113, 112, 113},
                     {1.875f, 112, 113, 113, 113},
                     {57344.f, 127, 128, 127, 127}});
}

TEST_CASE("power-of-two rules: FLT_MAX and the smallest subnormal stay inside e8m0") {
  constexpr float largest = 0x1.fffffep127f, smallest = 0x1p-149f;
  CHECK(code_of<mx_floor, e4m3>(largest) == 246);
  CHECK(code_of<mx_ceil, e4m3>(largest) == 247);
  CHECK(code_of<mx_rceil, e4m3>(largest) == 247);
  CHECK(code_of<mx_floor, mxint8_code>(largest) == 254);
  CHECK(code_of<mx_ceil, mxint8_code>(largest) == 254);  // clamped
  CHECK(code_of<mx_floor, e4m3>(smallest) == 0);
  CHECK(code_of<mx_ceil, e4m3>(smallest) == 0);
  CHECK(code_of<mx_even, e4m3>(smallest) == 0);
  CHECK(code_of<mx_rceil, e4m3>(smallest) == 0);
}

TEST_CASE("mx_even: rounds into NaN from 7F780000 on for e4m3 (NUMERICS 2.6)") {
  CHECK(code_of<mx_even, e4m3>(float_of(0x7F77FFFF)) == 246);
  CHECK(code_of<mx_even, e4m3>(float_of(0x7F780000)) == 0xFF);
  CHECK(code_of<mx_even, e2m1>(float_of(0x7F600000)) == 0xFF);
}

TEST_CASE("mx_floor: emax of every MX element format") {
  CHECK(code_of<mx_floor, e3m2>(1.f) == 123);
  CHECK(code_of<mx_floor, e2m3>(1.f) == 125);
  CHECK(code_of<mx_floor, e1m2>(1.f) == 127);
  CHECK(code_of<mx_floor, mxint8_code>(1.f) == 127);
  CHECK(code_of<mx_floor, mxint8_code>(1.99609375f) == 127);
}

TEST_CASE("mx_rceil: the alg 1 vectors of NUMERICS 2.5, bf16 maxima") {
  const auto bf16_value = [](std::uint32_t bits) { return float_of(bits << 16); };
  struct row {
    std::uint32_t amax;
    int e4m3_code, e5m2_code;
  };
  for (const row& r :
       {row{0x43E0, 127, 120}, row{0x43E1, 128, 121}, row{0x3F80, 119, 112}, row{0x4760, 134, 127}, row{0, 0, 0}}) {
    INFO("amax bits ", r.amax);
    CHECK(code_of<mx_rceil, e4m3>(bf16_value(r.amax)) == r.e4m3_code);
    CHECK(code_of<mx_rceil, e5m2>(bf16_value(r.amax)) == r.e5m2_code);
  }
}

TEST_CASE("mx_dynamic_range: the alg 2 vectors of NUMERICS 2.5") {
  const auto check = [](std::uint32_t amax, int zero_or_six, int seven) {
    INFO("amax bits ", amax);
    const float x = float_of(amax << 16);
    CHECK(code_of<mx_dynamic_range<0>, e2m1>(x) == zero_or_six);
    CHECK(code_of<mx_dynamic_range<6>, e2m1>(x) == zero_or_six);
    CHECK(code_of<mx_dynamic_range<7>, e2m1>(x) == seven);
  };
  check(0x40C0, 127, 127);
  check(0x40C1, 128, 127);
  check(0x40E0, 128, 127);
  check(0x40E1, 128, 128);
  check(0x40A0, 127, 127);
  check(0x0000, 0, 0);
  // 8 to 12: amax / max rounded up.
  CHECK(code_of<mx_dynamic_range<8>, e2m1>(8.f) == 127);
  CHECK(code_of<mx_dynamic_range<8>, e2m1>(8.0625f) == 128);
  CHECK(code_of<mx_dynamic_range<12>, e2m1>(12.f) == 127);
}

TEST_CASE("amax_scale: the scales of NUMERICS 11") {
  CHECK(amax_bits<int8>(2.f) == 0x3C810204);
  CHECK(amax_bits<int8>(0.f) == 0x3F800000);
  CHECK(amax_bits<int8>(3.f) == 0x3CC18306);
  CHECK(amax_bits<int8>(float_of(0x7F7FFFFF)) == 0x7C010204);
  CHECK(amax_bits<int8>(float_of(0x00000200)) == 0x00800000);
  CHECK(amax_bits<int8>(1.f) == 0x3C010204);
  CHECK(amax_bits<int4>(2.f) == 0x3E924925);
  CHECK(amax_bits<int4>(3.f) == 0x3EDB6DB7);
  CHECK(amax_bits<int4>(float_of(0x7F7FFFFF)) == 0x7E124924);
  CHECK(amax_bits<int4>(1.f) == 0x3E124925);
  CHECK(amax_bits<e4m3>(3.f) == 0x3BDB6DB7);  // NUMERICS 4, the same quotient
  CHECK(amax_bits<hif8>(3.f) == 0x38C00000);
}

TEST_CASE("amax_scale: stays inside the normal numbers of the scale format") {
  CHECK(amax_scale::scale<int8, f16>(1e-9f, range_of<int8>) == 0x1p-14f);
  CHECK(amax_scale::scale<int8, f16>(1e30f, range_of<int8>) == 65504.f);
  CHECK(amax_scale::scale<int8, bf16>(1e-45f, range_of<int8>) == 0x1p-126f);
  CHECK(amax_scale::scale<int8, e4m3>(1e-9f, range_of<int8>) == 0x1p-6f);
  CHECK(amax_scale::scale<int8, e4m3>(1e9f, range_of<int8>) == 448.f);
}

TEST_CASE("bounded_amax: min_scale bounds 1 / scale, a zero block has scale 0 (NUMERICS 4)") {
  const auto bits = []<class Rule>(Rule, float amax) {
    return bits_of(Rule::template scale<e4m3, f32>(amax, range_of<e4m3>));
  };
  CHECK(bits(bounded_amax<>{}, 3.f) == 0x3BDB6DB7);
  CHECK(bits(bounded_amax<1000>{}, 3.f) == 0x3A83126F);
  CHECK(bits(bounded_amax<100>{}, 3.f) == 0x3BDB6DB7);
  CHECK(bits(bounded_amax<10>{}, 100.f) == 0x3DCCCCCD);
  CHECK(bits(bounded_amax<>{}, 0.f) == 0);
  CHECK(bits(bounded_amax<1000>{}, infinity) == 0x7F800000);  // not finite, so not bounded
  CHECK(bits(bounded_amax<1, 2>{}, 4480.f) == bits_of(2.f));
  CHECK(bits_of(bounded_amax<>::scale<int8, f32>(3.f, range_of<int8>)) == 0x3CC18306);
  CHECK(bits_of(bounded_amax<>::scale<e5m2, f32>(3.f, range_of<e5m2>)) == 0x385B6DB7);
}

TEST_CASE("reciprocal_amax: CANN's int8 on A2 and A3, scale and multiplier each by reciprocals (NUMERICS 4)") {
  const auto scale = [](float amax) { return bits_of(reciprocal_amax<>::scale<int8, f32>(amax, range_of<int8>)); };
  CHECK(scale(3.f) == 0x3CC18306);
  CHECK(scale(float_of(0x3F0F0000)) == 0x3B902040);  // by division 3B902041
  CHECK(bits_of(reciprocal_amax<>::multiplier<int8>(3.f, range_of<int8>)) == 0x42295556);
  CHECK(scale(0.f) == 0);
  CHECK(reciprocal_amax<>::multiplier<int8>(0.f, range_of<int8>) == infinity);
  CHECK(reciprocal_amax<100>::scale<int8, f32>(3.f, range_of<int8>) == 0.01f);
  CHECK(reciprocal_amax<100>::multiplier<int8>(3.f, range_of<int8>) == 100.f);
  CHECK(reciprocal_amax<1>::multiplier<int8>(3.f, range_of<int8>) == float_of(0x42295556));
  CHECK(multiplying_rule<reciprocal_amax<>>);
  CHECK_FALSE(multiplying_rule<bounded_amax<>>);
}

TEST_CASE("nvfp4_scale: torchao's vectors of NUMERICS 2.4, before they are stored") {
  const auto one_level = [](float amax) { return nvfp4_scale::scale<e2m1, e4m3>(amax, range_of<e2m1>); };
  CHECK(one_level(6.f) == 1.f);
  CHECK(one_level(0.f) == 0x1p-6f);
  CHECK(one_level(0.05f) == 0x1p-6f);  // below the smallest normal
  CHECK(one_level(3000.f) == 448.f);
  const float whole_tensor = nvfp4_scale::tensor_scale<e2m1, e4m3>(3000.f, range_of<e2m1>);
  CHECK(whole_tensor == 3000.f / 2688.f);
  CHECK(nvfp4_scale::tensor_scale<e2m1, e4m3>(0.f, range_of<e2m1>) == 1.f);
  CHECK(nvfp4_scale::tensor_scale<e2m1, e4m3>(1e-42f, range_of<e2m1>) == 1.f);  // 2688 * 2^-150 is more
  CHECK(nvfp4_scale::tensor_scale<e2m1, e4m3>(2e-42f, range_of<e2m1>) == 0x1p-149f);
  CHECK(nvfp4_scale::scale<e2m1, e4m3>(3000.f, range_of<e2m1>, whole_tensor) == 448.f);
}

TEST_CASE("min_max: scales and zero points of NUMERICS 11") {
  struct row {
    float low, high;
    std::uint32_t scale;
    int zero;
  };
  for (const row& r : {row{-3.f, 2.f, 0x3CA0A0A1, 153}, row{0.f, 4.f, 0x3C808081, 0}, row{-4.f, 0.f, 0x3C808081, 255},
                       row{0.f, 0.f, 0x3F800000, 0}, row{0.f, 5.f, 0x3CA0A0A1, 0}}) {
    INFO("low ", r.low, " high ", r.high);
    const float scale = min_max::scale<f32>(r.low, r.high, range_of<uint8>);
    CHECK(bits_of(scale) == r.scale);
    CHECK(std::nearbyint(min_max::zero_point(r.low, scale, range_of<uint8>)) == r.zero);
  }
}

TEST_CASE("peak_scale: the number of largest magnitude becomes the lowest code") {
  CHECK(peak_scale::scale<int4, f16>(4.f, range_of<int4>) == -0.5f);
  CHECK(peak_scale::scale<int4, f16>(-4.f, range_of<int4>) == 0.5f);
  CHECK(bits_of(peak_scale::scale<int4, f16>(0.f, range_of<int4>)) == 0x80000000u);
}

TEST_CASE("offset_min_max: scale over the block's own range, its minimum as offset") {
  CHECK(offset_min_max::scale<uint4, f16>(2.f, 9.5f, range_of<uint4>) == 0.5f);
  CHECK(offset_min_max::offset(2.f, 9.5f) == 2.f);
  CHECK(offset_min_max::scale<uint4, f16>(3.f, 3.f, range_of<uint4>) == 0.f);
}

TEST_CASE("floor_of_log2f and ceil_of_log2f: the math library's, next to every power of two and between") {
  for (int k = -149; k <= 127; ++k) {
    const std::uint32_t power = bits_of(exp2i(k));
    for (int step = -100; step <= 100; ++step) {
      const float x = float_of(power + static_cast<std::uint32_t>(step));
      if (!(x > 0.f) || !is_finite(x)) continue;
      INFO("bits ", bits_of(x));
      CHECK(detail::floor_of_log2f(x) == static_cast<int>(std::floor(std::log2(x))));
      CHECK(detail::ceil_of_log2f(x) == static_cast<int>(std::ceil(std::log2(x))));
    }
  }
  for (std::uint32_t bits = 1; bits < infinity_bits; bits += 65521)
    REQUIRE(detail::floor_of_log2f(float_of(bits)) == static_cast<int>(std::floor(std::log2(float_of(bits)))));
  for (std::uint32_t bits = infinity_bits - 60; bits < infinity_bits; ++bits) {
    CHECK(detail::floor_of_log2f(float_of(bits)) == static_cast<int>(std::floor(std::log2(float_of(bits)))));
    CHECK(detail::ceil_of_log2f(float_of(bits)) == 128);
  }
}

TEST_CASE("concepts: what a rule computes from") {
  CHECK(peak_rule<peak_scale>);
  CHECK(offset_rule<offset_min_max>);
  CHECK(two_level_rule<nvfp4_scale>);
  CHECK_FALSE(two_level_rule<amax_scale>);
  CHECK(amax_rule<amax_scale>);
  CHECK(amax_rule<mx_floor>);
  CHECK(power_of_two_rule<mx_rceil>);
  CHECK(power_of_two_rule<mx_dynamic_range<7>>);
  CHECK_FALSE(power_of_two_rule<nvfp4_scale>);
  CHECK(extremes_rule<min_max>);
  CHECK_FALSE(extremes_rule<static_only>);
  CHECK_FALSE(amax_rule<static_only>);
}
