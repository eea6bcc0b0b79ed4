// Mirrors include/qtensor/policy/special_values.hpp: each policy's promise on one element or one block.
// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <qtensor/policy/special_values.hpp>
#include <qtensor/reference/quantize.hpp>
#include <qtensor/scheme/schemes.hpp>
#include <vector>

using namespace qtensor;

namespace {

struct block_result {
  std::uint32_t scale;
  std::vector<int> codes;
  bool operator==(const block_result&) const = default;
};

/// One block of S over these numbers.
template <class S>
block_result made(const std::vector<float>& x) {
  tensor<S, extents<dynamic>> t(extents<dynamic>(x.size()));
  reference::quantize([&](const auto& i) { return x[static_cast<std::size_t>(i[0])]; }, t.span());
  block_result r{t.view().scale_code({0}), {}};
  for (std::size_t i = 0; i < x.size(); ++i) r.codes.push_back(static_cast<int>(t.code(static_cast<index_t>(i))));
  return r;
}

}  // namespace

TEST_CASE("overflow: saturate to the largest value of the sign, to_special to infinity, else NaN, else saturating") {
  CHECK(encode<e4m3, saturate>(465.f) == 0x7E);
  CHECK(encode<e4m3, to_special>(465.f) == 0x7F);
  CHECK(encode<e5m2, to_special>(-1e9f) == 0xFC);
  CHECK(encode<e5m2, saturate>(-1e9f) == 0xFB);
  CHECK(encode<e2m1, to_special>(100.f) == 7);
  CHECK(encode<int8, to_special>(-1000.f) == 0x80);
  CHECK(encode<e4m3fnuz, to_special>(300.f) == 0x80);
  CHECK(encode<hif8, to_special>(-infinity) == 0xEF);
}

TEST_CASE("nan policies: an element of a float format") {
  CHECK(encode<e4m3, nan_propagates>(-quiet_nan) == 0xFF);
  CHECK(encode<e4m3, nan_to_zero>(quiet_nan) == 0x00);
  CHECK(encode<e4m3, nan_to_zero_point>(quiet_nan) == 0x00);
  CHECK(encode<e4m3, nan_to_max>(-quiet_nan) == 0xFE);
  CHECK(encode<e2m1, nan_propagates>(quiet_nan) == 0);
  CHECK(encode<e2m1, nan_to_max>(quiet_nan) == 7);
  CHECK(encode<e4m3, nan_to_lowest>(quiet_nan) == 0xFE);
  CHECK(encode<e4m3fnuz, nan_to_lowest>(-quiet_nan) == 0xFF);
  CHECK(encode<e8m0, nan_to_lowest>(quiet_nan) == 0);
  CHECK(encode<e2m1, nan_to_opposite_zero>(quiet_nan) == 8);
  CHECK(encode<e2m1, nan_to_opposite_zero>(-quiet_nan) == 0);
  CHECK(encode<e4m3fnuz, nan_to_opposite_zero>(quiet_nan) == 0);  // it has one zero
}

TEST_CASE("nan policies: an element of an integer format with zero point 9") {
  const element_scale one{1.f};
  CHECK(quantize_element<uint8_per_tensor>(quiet_nan, one, 9) == 9);
  CHECK(quantize_element<with<uint8_per_tensor, nan_to_zero>>(quiet_nan, one, 9) == 0);
  CHECK(quantize_element<with<uint8_per_tensor, nan_to_zero_point>>(quiet_nan, one, 9) == 9);
  CHECK(quantize_element<with<uint8_per_tensor, nan_to_max>>(quiet_nan, one, 9) == 255);
  CHECK(quantize_element<with<uint8_per_tensor, nan_to_max>>(-quiet_nan, one, 9) == 0);
  CHECK(quantize_element<with<uint8_per_tensor, nan_to_lowest>>(quiet_nan, one, 9) == 0);
  CHECK(quantize_element<with<int8_per_tensor, nan_to_lowest>>(quiet_nan, one) == 0x80);
  CHECK(quantize_element<with<uint8_per_tensor, nan_to_opposite_zero>>(quiet_nan, one, 9) == 9);
}

TEST_CASE("block policies: a block of {1, infinity, 0, -2} (NUMERICS 3) and one with a NaN") {
  const std::vector<float> x = {1.f, infinity, 0.f, -2.f}, y = {1.f, quiet_nan};
  CHECK(made<mxfp8_e4m3>(x) == block_result{0xFF, {0x7F, 0x7F, 0x7F, 0x7F}});
  CHECK(made<mxfp4>(x) == block_result{0xFF, {0, 0, 0, 0}});  // no NaN to give
  CHECK(made<with<mxfp8_e4m3, block_to_zero>>(x) == block_result{0xFF, {0, 0, 0, 0}});
  CHECK(made<with<mxfp4, block_to_zero>>(y) == block_result{0xFF, {0, 0}});
  CHECK(made<with<mxfp8_e4m3, block_ignores>>(x) == block_result{0x78, {0x70, 0x7E, 0x00, 0xF8}});
  CHECK(made<with<mxfp8_e4m3, block_ignores>>(y) == block_result{0x77, {0x78, 0x7F}});
  CHECK(made<with<mxfp8_e4m3, block_ignores, nan_to_zero>>(y) == block_result{0x77, {0x78, 0x00}});
}

TEST_CASE(
    "block_literal: the formulas run as written (NUMERICS 4: bf16 {7F80, 3F80} E4M3 -> scale infinity, codes 0)") {
  using literal = scheme<e4m3, group<32>, bounded_amax<>, block_literal, nan_to_zero>;
  CHECK(made<literal>({infinity, 1.f}) == block_result{0x7F800000u, {0, 0}});
  const block_result nan = made<literal>({quiet_nan, 1.f});
  CHECK(is_nan(float_of(nan.scale)));
  CHECK(nan.codes == std::vector<int>{0, 0});
}

TEST_CASE("block_ignores_nan: NaNs do not count, infinities do and run through the formulas") {
  using policy_under_test = scheme<e4m3, group<32>, bounded_amax<>, block_ignores_nan, nan_to_zero>;
  CHECK(made<policy_under_test>({infinity, 1.f, quiet_nan}) == block_result{0x7F800000u, {0, 0, 0}});
  CHECK(made<policy_under_test>({quiet_nan, -448.f, 1.f}) == block_result{0x3F800000u, {0, 0xFE, 0x38}});
}

TEST_CASE(
    "subnormal maxima: exact scaling, or zeros that keep their signs (NUMERICS 3: {0040, 8001} -> {38, 88} or {00, "
    "80})") {
  const std::vector<float> x = {float_of(0x00400000), float_of(0x80010000)};
  CHECK(made<mxfp8_e4m3>(x) == block_result{0, {0x38, 0x88}});
  CHECK(made<with<mxfp8_e4m3, subnormal_to_zero>>(x) == block_result{0, {0x00, 0x80}});
  using amax = scheme<e4m3, group<32>, subnormal_to_zero>;  // zeros are no subnormal numbers: NUMERICS 11
  CHECK(made<amax>({0.f, -0.f}).codes == std::vector<int>{0, 0});
  CHECK(made<amax>(x).codes == std::vector<int>{0x00, 0x80});
  CHECK(made<amax>(x).scale == made<amax>({0.f, -0.f}).scale);
}
