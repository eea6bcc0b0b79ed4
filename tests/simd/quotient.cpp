// Mirrors include/qtensor/simd/quotient.hpp: quotients, zero points and division types, over scales that break
// shortcuts.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/simd/encode.hpp>

#include "runs.hpp"

using namespace runs;

namespace {

template <class F, class... P>
using plain = scheme<F, per_tensor, static_only, P...>;

template <class S>
void every_scale(std::int32_t zero_point = 0) {
  for (const float s : hard_scales()) check_uniform<S>(around_halves(s), {s}, zero_point);
}

template <class S>
void every_middle() {
  for (const float s : hard_scales()) check_uniform<S>(around_middles<typename S::code_format>(s), {s});
}

}  // namespace

TEST_CASE("exact division: int8 at every half-integer, every kind of scale") {
  every_scale<plain<int8>>();
  every_scale<plain<uint4>>();
  every_scale<plain<int8, nearest_away>>();
}

/// A minifloat whose middles have as many bits as those of integers.
struct e2m5 : minifloat<2, 5, 1, specials::none> {
  static constexpr fixed_string name = "e2m5";
};

TEST_CASE("exact division: minifloats, every kind of scale") {
  every_scale<plain<e4m3>>();
  every_middle<plain<e4m3>>();
  every_middle<plain<e4m3, nan_to_zero>>();
  every_middle<plain<e5m2>>();
  every_middle<plain<e5m2, to_special>>();
  every_middle<plain<e4m3fnuz>>();
  every_middle<plain<e5m2fnuz, to_special>>();
  every_middle<plain<e2m1>>();
  every_middle<plain<e2m1, nearest_away>>();
  every_middle<plain<e2m5>>();
  every_middle<plain<hif8>>();
  every_middle<plain<hif8, nearest_even>>();
  every_middle<plain<e4m3, tensor_scale<f32>>>();
  for (const float s : hard_scales()) check_uniform<mxfp4>(around_halves(s), {s});
  check::in_full<plain<e2m3>, plain<e4m3, to_special>>([]<class S>() { every_middle<S>(); });
}

TEST_CASE("x * (1 / s), every kind of scale") {
  every_scale<plain<int8, reciprocal>>();
  every_scale<plain<e2m1, reciprocal>>();
}

TEST_CASE("scales that are no scales: zero, infinity, NaN, negative") {
  for (const float s : {0.f, -0.f, infinity, -infinity, -0.37f, -2.f}) {
    std::vector<float> x = around_halves(0.37f);
    check_uniform<plain<int8>>(x, {s});
    check_uniform<plain<uint8, zero_point<uint8>>>(x, {s}, 7);
    check_uniform<plain<e4m3, reciprocal>>(x, {s});
    check_uniform<plain<e2m1>>(x, {s});
  }
  std::vector<float> numbers;
  for (float v : around_halves(0.37f))
    if (!is_nan(v)) numbers.push_back(v);
  check_uniform<plain<int8>>(numbers, {quiet_nan});
  check_uniform<plain<e4m3>>(numbers, {quiet_nan});
  check_uniform<plain<e2m1>>(numbers, {quiet_nan});
}

TEST_CASE("NaN made of numbers is negative on every CPU, and a number's NaN keeps its sign") {
  const float nan = quiet_nan;
  const std::vector<float> x{0.f, -0.f, infinity, -infinity, 1.f, -1.f, nan, -nan};
  const auto every = [&]<class S>(element_scale s, std::vector<std::uint32_t> expected) {
    for (std::size_t i = 0; i < x.size(); ++i) CHECK(quantize_element<S>(x[i], s) == expected[i]);
    check_uniform<S>(x, s);
  };
  every.template operator()<plain<e4m3>>({infinity}, {0x00, 0x80, 0xff, 0xff, 0x00, 0x80, 0x7f, 0xff});
  every.template operator()<plain<e4m3, to_special>>({infinity}, {0x00, 0x80, 0xff, 0xff, 0x00, 0x80, 0x7f, 0xff});
  every.template operator()<plain<e5m2, nan_to_max>>({infinity}, {0x00, 0x80, 0xfb, 0xfb, 0x00, 0x80, 0x7b, 0xfb});
  every.template operator()<plain<e4m3, reciprocal>>({0x1p-140f}, {0xff, 0xff, 0x7e, 0xfe, 0x7e, 0xfe, 0x7f, 0xff});
  every.template operator()<plain<int8, nan_to_max>>({infinity}, {0, 0, 0x80, 0x80, 0, 0, 0x7f, 0x80});
  CHECK(quantize_element<plain<bf16>>(infinity, {infinity}) == 0xffc0);
  using two_levels = plain<e4m3, tensor_scale<f32>>;
  every.template operator()<two_levels>({0x1p-140f, infinity}, {0x00, 0x80, 0xff, 0xff, 0x00, 0x80, 0x7f, 0xff});
  every.template operator()<two_levels>({infinity, 0.f}, {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 0xff});
}

TEST_CASE("zero points after rounding: the ends of the format, and far outside") {
  for (const std::int32_t z : {0, 1, 128, 255}) every_scale<plain<uint8, zero_point<uint8>>>(z);
  for (const std::int32_t z : {-128, -1, 127})
    for (const float s : {1.f, 0.0173f, 0x1p-126f})
      check_uniform<plain<int8, zero_point<int8>>>(around_halves(s), {s}, z);
  for (const std::int32_t z : {-2147483647 - 1, -(1 << 22), -70000, -257, 300, 1 << 22, (1 << 24) + 1, 2147483647})
    for (const float s : {1.f, 3e-9f, 0x1p-20f})
      check_uniform<plain<int8, zero_point<int32>>>(around_halves(s), {s}, z);
  for (const std::int32_t z : {0, 15}) check_uniform<plain<uint4, zero_point<uint4>>>(around_halves(0.3f), {0.3f}, z);
}

TEST_CASE("zero points before rounding: x = .5, s = 1, zp = 1 gives 2; the ends, and far outside") {
  using S = plain<int8, zero_point<int32>, zp_before_round>;
  std::int8_t code = 0;
  const float half = 0.5f;
  simd::encode_uniform<S>(&half, 1, {1.f}, 1, &code);
  CHECK(code == 2);
  for (const std::int32_t z : {-2147483647 - 1, -16777217, -128, -1, 0, 3, 127, 16777217, 2147483647})
    for (const float s : {1.f, 0.0173f, 3e-9f}) check_uniform<S>(around_halves(s), {s}, z);
  for (const std::int32_t z : {0, 255})
    check_uniform<plain<uint8, zero_point<uint8>, zp_before_round, nearest_away>>(around_halves(0.1f), {0.1f}, z);
}

TEST_CASE("quotients rounded to f16 or bf16 first") {
  for (const float s : {1.f, 0.0173f, 300.f, 1e-6f}) {
    check_uniform<plain<int8, divide_in<f16>>>(around_halves(s), {s});
    check_uniform<plain<uint8, zero_point<uint8>, divide_in<bf16>>>(around_halves(s), {s}, 100);
    check_uniform<plain<e4m3, divide_in<f16>>>(around_halves(s), {s});
    check_uniform<plain<e5m2, divide_in<bf16>, reciprocal>>(around_halves(s), {s});
    check_uniform<plain<int8, via_f16, reciprocal>>(around_halves(s), {s});
  }
}

TEST_CASE("quotients that have to be IEEE's, every kind of scale") {
  for (const std::int32_t z : {0, 3, -128}) every_scale<plain<int8, zero_point<int32>, zp_before_round>>(z);
  every_scale<plain<uint4, divide_in<f16>>>();
  every_scale<plain<int8, via_f16>>();
  every_middle<plain<e5m2, via_f16, to_special>>();
  every_middle<plain<e4m3, divide_in<bf16>, nan_to_zero>>();
  every_middle<plain<e2m1, divide_in<f16>, nearest_away, tensor_scale<f32>>>();
  every_scale<plain<int8, toward_negative>>();
  every_scale<plain<uint4, toward_positive>>();
  every_scale<plain<int8, zero_point<int8>, toward_zero>>(3);
  every_middle<plain<e4m3, toward_positive>>();
  every_middle<plain<e5m2, toward_zero, to_special>>();
  check::in_full<plain<e4m3, via_f16, to_special>>([]<class S>() { every_middle<S>(); });
}

TEST_CASE("tensor scales: the product of both divides, or the reciprocal of one over the other") {
  for (const float t : {1.f, 0.3f, 1e-3f, 0x1p-100f})
    for (const float s : {1.f, 0.0625f, 448.f}) {
      check_uniform<with<nvfp4, tensor_scale<f32>>>(around_halves(s * t), {s, t});
      check_uniform<with<nvfp4, tensor_scale<f32>, exact_division>>(around_halves(s * t), {s, t});
    }
}
