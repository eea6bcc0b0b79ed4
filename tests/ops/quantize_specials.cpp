// Policies for blocks and elements that are not finite, or subnormal, where most blocks are ordinary ones.
// SPDX-License-Identifier: BSD-3-Clause
#include "special_blocks.hpp"

using namespace qtensor;

TEST_CASE("quantize: elements that do not count") {
  special_blocks::check_scheme<with<mxfp8_e4m3, block_ignores>>();
  special_blocks::check_scheme<with<mxfp4, block_ignores_nan>>();
  special_blocks::check_scheme<with<int8_group<32>, block_ignores>>();
  special_blocks::check_scheme<with<uint4_group<32>, block_ignores_nan>>();
  special_blocks::check_scheme<with<uint4_group<32>, block_ignores>>();
  special_blocks::check_scheme<scheme<uint8, block<8, 16>, zero_point<uint8>, block_literal>>();
  check::in_full<with<mxfp4, block_ignores>, with<nvfp4, block_ignores>, with<uint4_group<32>, block_literal>>(
      []<class S>() { special_blocks::check_scheme<S>(); });
  special_blocks::check_scheme<with<int8_per_channel<1>, block_ignores>>();
}

TEST_CASE("quantize: scales that leave numbers beyond the largest code") {
  special_blocks::check_scheme<with<mxfp4, mx_dynamic_range<7>>>();
  special_blocks::check_scheme<with<mxfp4, mx_dynamic_range<12>>>();
  const matrix_extents shape(16, 64);
  std::vector<float> x;
  std::vector<std::uint16_t> narrow;
  for (index_t i = 0; i < shape.size(); ++i) {
    const float size = exp2i(static_cast<int>(i / 32) - 16) * static_cast<float>(1 + i % 32) * 0.375f;
    x.push_back(i % 3 == 1 ? -size : size);
    narrow.push_back(static_cast<std::uint16_t>(encode<bf16>(x.back())));  // the same
  }
  check::in_full<with<mxfp4, mx_dynamic_range<8>>, with<mxfp4, mx_dynamic_range<12>>,
                 with<mxfp4, mx_dynamic_range<6>, nearest_away>>([&]<class S>() {
    const auto want = check::expected<S, row_major>(x, shape);
    CHECK(check::same_bytes(quantize<S>(source(x.data(), shape)), want));
    CHECK(check::same_bytes(quantize<S>(source<bf16>(narrow.data(), shape)), want));
  });
}

TEST_CASE("quantize: formulas as they are written, subnormal maxima as zeros") {
  special_blocks::check_scheme<with<nvfp4, block_literal>>();
  special_blocks::check_scheme<with<nvfp4, tensor_scale<f32>, block_literal>>();
  special_blocks::check_scheme<with<mxfp6_e2m3, subnormal_to_zero>>();
  special_blocks::check_scheme<scheme<uint8, block<8, 16>, zero_point<uint8>, subnormal_to_zero>>();
  special_blocks::check_scheme<scheme<e4m3, per_channel<0>, subnormal_to_zero>>();
  special_blocks::check_scheme<scheme<uint8, per_channel<0>, zero_point<uint8>, subnormal_to_zero>>();
  special_blocks::check_scheme<scheme<int8, group<32>, bounded_amax<1, 2>>>();
  check::in_full<with<mxfp8_e4m3, block_literal>, scheme<e5m2, group<32>, bounded_amax<>, block_literal>,
                 scheme<e4m3, group<16>, scale_as<e4m3>, bounded_amax<>>>(
      []<class S>() { special_blocks::check_scheme<S>(); });
  special_blocks::check_scheme<scheme<int8, group<32>, scale_as<f16>, bounded_amax<>>>();
  special_blocks::check_scheme<scheme<int8, group<32>, scale_as<bf16>, reciprocal_amax<>, rule_multiplier>>();
  special_blocks::check_scheme<scheme<e4m3, per_channel<0>, reciprocal_amax<1, 3>, rule_multiplier, block_ignores>>();
  special_blocks::check_scheme<scheme<int4, per_channel<1>, reciprocal_amax<>>>();
  special_blocks::check_scheme<with<uint4_group<32>, scale_as<f16>>>();
}

TEST_CASE("quantize: codes by scales before these were rounded to be stored") {
  special_blocks::check_scheme<with<int8_group<32>, scale_as<f16>, unrounded_scale>>();
  special_blocks::check_scheme<with<uint4_group<32>, scale_as<bf16>, unrounded_scale>>();
  check::in_full<scheme<e4m3, group<16>, scale_as<e4m3>, unrounded_scale, exact_division>,
                 scheme<int4, group<32>, scale_as<bf16>, bounded_amax<>, unrounded_scale>,
                 scheme<uint8, group<16>, scale_as<e5m2>, zero_point<uint8>, unrounded_scale>,
                 scheme<int8, group<32>, scale_as<e8m0>, mx_floor, unrounded_scale>>(
      []<class S>() { special_blocks::check_scheme<S>(); });
}

TEST_CASE("quantize: blocks all of whose codes are +0 beside others") {
  special_blocks::check_scheme<scheme<e4m3, group<32>>>();
  special_blocks::check_scheme<with<scheme<e5m2, group<32>>, block_to_zero, nan_to_zero>>();
  special_blocks::check_scheme<with<scheme<e4m3, group<32>, bounded_amax<>>, stochastic<1>>>();
}
