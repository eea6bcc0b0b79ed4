// Mirrors include/qtensor/reference/quantize.hpp: FP8, HiFloat8, FP4 and 16-bit codes in blocks against the block
// oracle. SPDX-License-Identifier: BSD-3-Clause
#include "reference/quantize_check.hpp"

namespace {

using namespace oracle;
namespace qt = qtensor;
using row = qt::per_tensor;  // check_groups replaces it by groups

auto nvfp4_oracle(bool two_levels, conversion c = {}) {
  return [=](const std::vector<float>& x, const block_list& blocks) { return nvfp4(x, blocks, two_levels, c); };
}
auto bounded_oracle(const char* name, float min_scale) {
  conversion c = default_conversion(format_named(name));
  c.nan = nan_rule::to_zero;
  return [=](const std::vector<float>& x, const block_list& blocks) {
    return bounded_amax(x, blocks, format_named(name), min_scale, c);
  };
}

template <class Code, class... P>
using dynamic_block = qt::scheme<Code, row, qt::block_literal, qt::nan_to_zero, P...>;

}  // namespace

TEST_CASE("quantize: float codes take amax / max as scale, and a block of zeros has scale 1 and codes +0") {
  check_groups<qt::scheme<qt::e4m3, row>>(amax_oracle("e4m3"));
  check_groups<qt::scheme<qt::e5m2, row>>(amax_oracle("e5m2"));
  check_groups<qt::scheme<qt::e4m3fnuz, row>>(amax_oracle("e4m3fnuz"));
  check_groups<qt::scheme<qt::e5m2fnuz, row>>(amax_oracle("e5m2fnuz"));
  check_groups<qt::scheme<qt::hif8, row>>(amax_oracle("hif8"));
  check_groups<qt::scheme<qt::e2m1, row>>(amax_oracle("e2m1"));
  check_groups<qt::scheme<qt::e3m2, row>>(amax_oracle("e3m2"));
  check_groups<qt::scheme<qt::f16, row>>(amax_oracle("f16"));
}

TEST_CASE("quantize: rounding, overflow and NaN policies reach float codes") {
  conversion c;
  c.round = rounding::via_f16;
  check_groups<qt::scheme<qt::e4m3, row, qt::via_f16>>(amax_oracle("e4m3", "f32", c));
  c.round = rounding::toward_negative;
  check_groups<qt::scheme<qt::e2m1, row, qt::toward_negative>>(amax_oracle("e2m1", "f32", c));
  c = {};
  c.blocks = nonfinite::ignores;
  c.over = overflow::to_special;
  check_groups<qt::scheme<qt::e5m2, row, qt::block_ignores, qt::to_special>>(amax_oracle("e5m2", "f32", c));
  c.nan = nan_rule::to_max;
  check_groups<qt::scheme<qt::e2m1, row, qt::block_ignores, qt::to_special, qt::nan_to_max>>(
      amax_oracle("e2m1", "f32", c));
  c = {};
  c.blocks = nonfinite::to_zero;
  check_groups<qt::scheme<qt::hif8, row, qt::block_to_zero>>(amax_oracle("hif8", "f32", c));
}

TEST_CASE("quantize: NVFP4 with one and with two levels of scales") {
  check_groups<qt::nvfp4, 16>(nvfp4_oracle(false));
  check_groups<qt::with<qt::nvfp4, qt::tensor_scale<qt::f32>>, 16>(nvfp4_oracle(true));
}

TEST_CASE("quantize: two-level NVFP4 of a tensor of zeros has tensor scale 1 and the smallest block scale") {
  const sizes shape = {2, 32};
  check_scheme<qt::with<qt::nvfp4, qt::tensor_scale<qt::f32>>, 2, qt::row_major>(
      shape, {1, 16}, std::vector<float>(64, 0.f), nvfp4_oracle(true));
}

TEST_CASE("quantize: DynamicBlockQuant with and without a bound of the scale") {
  check_groups<dynamic_block<qt::e4m3, qt::bounded_amax<>>>(bounded_oracle("e4m3", 0));
  check_groups<dynamic_block<qt::e5m2, qt::bounded_amax<>>>(bounded_oracle("e5m2", 0));
  check_groups<dynamic_block<qt::hif8, qt::bounded_amax<>>>(bounded_oracle("hif8", 0));
  check_groups<dynamic_block<qt::int8, qt::bounded_amax<>>>(bounded_oracle("int8", 0));
  check_groups<dynamic_block<qt::e4m3, qt::bounded_amax<1000>>>(bounded_oracle("e4m3", 1000));
  check_groups<dynamic_block<qt::e4m3, qt::bounded_amax<1, 2>>>(bounded_oracle("e4m3", 0.5f));
}
