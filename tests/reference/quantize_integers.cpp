// Mirrors include/qtensor/reference/quantize.hpp: integer schemes on awkward data against the block oracle.
// SPDX-License-Identifier: BSD-3-Clause
#include "reference/quantize_check.hpp"

namespace {

using namespace oracle;
namespace qt = qtensor;
using row = qt::per_tensor;  // check_groups replaces it by groups

conversion with_rounding(rounding r) {
  conversion c;
  c.round = r;
  return c;
}

auto min_max_oracle(const char* name, conversion c = {}) {
  return
      [=](const std::vector<float>& x, const block_list& blocks) { return min_max(x, blocks, format_named(name), c); };
}

}  // namespace

TEST_CASE("quantize: symmetric integers take amax / max as scale, in every width") {
  check_groups<qt::scheme<qt::int8, row>>(amax_oracle("int8"));
  check_groups<qt::scheme<qt::narrow_range<qt::int8>, row>>(amax_oracle("narrow_int8"));
  check_groups<qt::scheme<qt::int4, row>>(amax_oracle("int4"));
  check_groups<qt::scheme<qt::int2, row>>(amax_oracle("int2"));
  check_groups<qt::scheme<qt::int16, row>>(amax_oracle("int16"));
}

TEST_CASE("quantize: integer codes belong to the scale as stored, whatever its format") {
  check_groups<qt::scheme<qt::int8, row, qt::scale_as<qt::f16>>>(amax_oracle("int8", "f16"));
  check_groups<qt::scheme<qt::int8, row, qt::scale_as<qt::bf16>>>(amax_oracle("int8", "bf16"));
  check_groups<qt::scheme<qt::int4, row, qt::scale_as<qt::e4m3>>>(amax_oracle("int4", "e4m3"));
  check_groups<qt::scheme<qt::int4, row, qt::scale_as<qt::e5m2>>>(amax_oracle("int4", "e5m2"));
}

TEST_CASE("quantize: codes under the unrounded scale, ggml's way") {
  conversion c;
  c.seen = code_scale::unrounded;
  check_groups<qt::scheme<qt::int8, row, qt::scale_as<qt::f16>, qt::unrounded_scale>>(amax_oracle("int8", "f16", c));
}

TEST_CASE("quantize: every rounding policy reaches the integers") {
  check_groups<qt::scheme<qt::int8, row, qt::nearest_away>>(
      amax_oracle("int8", "f32", with_rounding(rounding::nearest_away)));
  check_groups<qt::scheme<qt::int8, row, qt::toward_zero>>(
      amax_oracle("int8", "f32", with_rounding(rounding::toward_zero)));
  check_groups<qt::scheme<qt::int4, row, qt::toward_negative>>(
      amax_oracle("int4", "f32", with_rounding(rounding::toward_negative)));
  check_groups<qt::scheme<qt::int4, row, qt::toward_positive>>(
      amax_oracle("int4", "f32", with_rounding(rounding::toward_positive)));
}

TEST_CASE("quantize: reciprocal and f16 division differ from exact division as the oracle says") {
  conversion inverse, half;
  inverse.divide = division::reciprocal;
  half.divide = division::in_f16;
  check_groups<qt::scheme<qt::int8, row, qt::reciprocal>>(amax_oracle("int8", "f32", inverse));
  check_groups<qt::scheme<qt::int16, row, qt::divide_in<qt::f16>>>(amax_oracle("int16", "f32", half));
}

TEST_CASE("quantize: unsigned integers take a zero point as ONNX DynamicQuantizeLinear computes it") {
  check_groups<qt::scheme<qt::uint8, row, qt::zero_point<qt::uint8>>>(min_max_oracle("uint8"));
  check_groups<qt::scheme<qt::uint4, row, qt::zero_point<qt::uint4>>>(min_max_oracle("uint4"));
  check_groups<qt::scheme<qt::int8, row, qt::zero_point<qt::int8>>>(min_max_oracle("int8"));
  check_groups<qt::scheme<qt::uint8, row, qt::zero_point<qt::int32>>>(min_max_oracle("uint8"));
}

TEST_CASE("quantize: a block that ignores NaNs and infinities has the scale of the rest") {
  conversion c;
  c.blocks = nonfinite::ignores;
  check_groups<qt::scheme<qt::int8, row, qt::block_ignores>>(amax_oracle("int8", "f32", c));
  check_groups<qt::scheme<qt::uint8, row, qt::zero_point<qt::uint8>, qt::block_ignores>>(min_max_oracle("uint8", c));
  c.nan = nan_rule::to_max;
  check_groups<qt::scheme<qt::int8, row, qt::block_ignores, qt::nan_to_max>>(amax_oracle("int8", "f32", c));
  c.nan = nan_rule::to_zero;
  check_groups<qt::scheme<qt::uint8, row, qt::zero_point<qt::uint8>, qt::block_ignores, qt::nan_to_zero>>(
      min_max_oracle("uint8", c));
}

TEST_CASE("quantize: static scales and zero points, both orders of the zero point, every rounding") {
  const std::vector<float> x = awkward_data(4000, 9);
  const auto check = [&]<class S>(const format& f, float s, int zp, bool before, rounding r, S) {
    auto t = make_tensor<S, 1, qt::row_major>({x.size()});
    t.scales()[0] = s;
    t.zero_points()[0] = static_cast<typename std::remove_reference_t<decltype(t.zero_points()[0])>>(zp);
    qt::reference::quantize_static([&](const auto& i) { return x[static_cast<std::size_t>(i[0])]; }, t.span());
    quantized expected;
    expected.scales = {bits_of(s)};
    expected.zero_points = {zp};
    for (float v : x) expected.codes.push_back(encode_affine(f, v, s, zp, before, with_rounding(r)));
    compare_tensor<S>(t, {x.size()}, x, cut({x.size()}, {0}), expected);
  };
  using u8 = qt::scheme<qt::uint8, row, qt::zero_point<qt::uint8>, qt::static_only>;
  using s8 = qt::scheme<qt::int8, row, qt::zero_point<qt::int8>, qt::static_only>;
  using u4 = qt::scheme<qt::uint4, row, qt::zero_point<qt::uint4>, qt::static_only>;
  for (float s : {1.f, 0.5f, 0.1f, 0x1p-100f, 3e38f})
    for (int zp : {0, 1, 3, 8, 15}) {
      check(format_named("uint8"), s, zp, false, rounding::nearest_even, u8{});
      check(format_named("int8"), s, -zp, false, rounding::nearest_even, s8{});
      check(format_named("uint4"), s, zp, false, rounding::nearest_even, u4{});
      check(format_named("uint8"), s, zp, true, rounding::nearest_even, qt::with<u8, qt::zp_before_round>{});
      check(format_named("int8"), s, -zp, true, rounding::nearest_even, qt::with<s8, qt::zp_before_round>{});
      check(format_named("int8"), s, zp, true, rounding::nearest_away,
            qt::with<s8, qt::zp_before_round, qt::nearest_away>{});
      check(format_named("int8"), s, zp, false, rounding::nearest_away, qt::with<s8, qt::nearest_away>{});
      check(format_named("int8"), s, zp, false, rounding::toward_negative, qt::with<s8, qt::toward_negative>{});
    }
}
