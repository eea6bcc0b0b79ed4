// Mirrors include/qtensor/compat/onednn_schemes.hpp: the vectors of NUMERICS 2.2, 2.3, 2.4 and 5.1, zeros, infinities
// and NaNs.
// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <qtensor/compat/onednn_schemes.hpp>
#include <qtensor/ops/quantize.hpp>
#include <vector>

#include "ops/special_blocks.hpp"

using namespace qtensor;
namespace dnn = qtensor::compat::onednn;

namespace {

using codes = std::vector<int>;

/// The scale code of a block and the codes of its numbers, which are zeros behind those given.
template <class S>
codes block_of(const std::vector<float>& x) {
  tensor<S, extents<dynamic>> t(extents(static_cast<index_t>(x.size())));
  reference::quantize([&](const auto& i) { return x[static_cast<std::size_t>(i[0])]; }, t.span());
  codes out = {static_cast<int>(t.view().scale_code({0}))};
  for (std::size_t i = 0; i < x.size(); ++i) out.push_back(static_cast<int>(t.code(static_cast<index_t>(i))));
  return out;
}
template <class S>
int code_of(float x, float scale, int zero) {
  const std::uint32_t code = quantize_element<S>(x, {scale}, zero);
  return static_cast<int>(S::code_format::decode(code));
}

using s8 = dnn::quantized<int8, per_tensor, f32, zero_point<int32>>;
using u8 = dnn::quantized<uint8, per_tensor, f32, zero_point<int32>>;

}  // namespace

TEST_CASE("dynamic_mx, both versions: the vectors of NUMERICS 2.2") {
  const auto same = []<class Code>(std::type_identity<Code>, const std::vector<float>& x, const codes& expected) {
    CHECK(block_of<dnn::dynamic_mx<Code>>(x) == expected);
    CHECK(block_of<dnn::dynamic_mx_2026_08<Code>>(x) == expected);
  };
  const std::type_identity<e4m3> e4;
  const std::type_identity<e5m2> e5;
  const std::type_identity<e2m1> e2;
  same(e4, {1.f, -.5f, 3.f, .1f}, {0x78, 0x70, 0xE8, 0x7C, 0x55});
  same(e4, {0.f, -0.f}, {0x00, 0x00, 0x80});
  same(e4, {0x1p-126f, 0x1p-120f}, {0x00, 0x40, 0x70});
  same(e5, {1.f, -.5f, 3.f, .1f}, {0x71, 0x74, 0xF0, 0x7A, 0x66});
  same(e2, {1.f, -.5f, 3.f, .1f}, {0x7E, 4, 0xA, 7, 0});
  same(e2, {500.f, 1.f}, {0x85, 7, 0});
  same(e2, {0x1p-126f, 0x1p-120f}, {0x05, 0, 6});
}

TEST_CASE("dynamic_mx: overflow, infinities and NaNs in the release, which does not clamp") {
  CHECK(block_of<dnn::dynamic_mx<e4m3>>({500.f, 1.f}) == codes{0x7F, 0x7F, 0x38});
  CHECK(block_of<dnn::dynamic_mx<e5m2>>({500.f, 1.f}) == codes{0x78, 0x7C, 0x58});
  CHECK(block_of<dnn::dynamic_mx<e5m2>>({-511.f, 1.f}) == codes{0x78, 0xFC, 0x58});
  CHECK(block_of<dnn::dynamic_mx<e4m3>>({1.f, infinity, -2.f}) == codes{0xFF, 0xFF, 0xFF, 0xFF});
  CHECK(block_of<dnn::dynamic_mx<e5m2>>({1.f, -infinity}) == codes{0xFF, 0xFE, 0xFE});
  CHECK(block_of<dnn::dynamic_mx<e2m1>>({1.f, infinity}) == codes{0xFF, 0xF, 0xF});
  CHECK(block_of<dnn::dynamic_mx<e4m3>>({1.f, quiet_nan}) == codes{0x77, 0x78, 0x7F});
  CHECK(block_of<dnn::dynamic_mx<e4m3>>({1.f, -quiet_nan}) == codes{0x77, 0x78, 0xFF});
  CHECK(block_of<dnn::dynamic_mx<e5m2>>({1.f, quiet_nan}) == codes{0x70, 0x78, 0x7E});
  CHECK(block_of<dnn::dynamic_mx<e2m1>>({1.f, quiet_nan}) == codes{0x7D, 6, 7});
  CHECK(block_of<dnn::dynamic_mx<e4m3>>({quiet_nan, 0.f}) == codes{0x00, 0x7F, 0x00});
}

TEST_CASE("dynamic_mx of the 2026-08 source: it clamps, and takes NaNs for the lowest number") {
  CHECK(block_of<dnn::dynamic_mx_2026_08<e4m3>>({500.f, 1.f}) == codes{0x7F, 0x7E, 0x38});
  CHECK(block_of<dnn::dynamic_mx_2026_08<e4m3>>({1.f, infinity}) == codes{0xFF, 0xFE, 0xFE});
  CHECK(block_of<dnn::dynamic_mx_2026_08<e4m3>>({1.f, quiet_nan}) == codes{0x77, 0x78, 0xFE});
  CHECK(block_of<dnn::dynamic_mx_2026_08<e5m2>>({500.f, 1.f}) == codes{0x78, 0x7B, 0x58});
  CHECK(block_of<dnn::dynamic_mx_2026_08<e2m1>>({1.f, infinity}) == codes{0xFF, 0xF, 0xF});
}

TEST_CASE("dynamic_fp: the vectors of NUMERICS 2.3 and 2.4") {
  CHECK(block_of<dnn::dynamic_fp<>>({6.f, 3.f, -1.f, .25f}) == codes{0x38, 7, 5, 0xA, 0});
  CHECK(block_of<dnn::dynamic_fp<>>({1.f, -.5f, .3f, .1f}) == codes{0x23, 7, 0xD, 3, 1});
  CHECK(block_of<dnn::dynamic_fp<>>({.05f, -.02f}) == codes{0x04, 7, 0xD});
  CHECK(block_of<dnn::dynamic_fp<>>({0.f, -0.f}) == codes{0x38, 0, 8});
  CHECK(block_of<dnn::dynamic_fp<>>({2784.f, 1.f}) == codes{0x7E, 7, 0});  // 464, a tie
  CHECK(block_of<dnn::dynamic_fp<>>({3000.f, -1.f, quiet_nan}) == codes{0x7F, 7, 7, 7});
  CHECK(block_of<dnn::dynamic_fp<>>({infinity, 1.f}) == codes{0x7F, 7, 7});
  CHECK(block_of<dnn::dynamic_fp<>>({1e-5f, -1e-9f, 0.f}) == codes{0x00, 7, 0xF, 0xF});

  CHECK(block_of<dnn::dynamic_fp_2026_08<>>({6.f, 3.f, -1.f, .25f}) == codes{0x38, 7, 5, 0xA, 0});
  CHECK(block_of<dnn::dynamic_fp_2026_08<>>({1.f, -.5f, .3f, .1f}) == codes{0x23, 7, 0xD, 3, 1});
  CHECK(block_of<dnn::dynamic_fp_2026_08<>>({0.f, 0.f}) == codes{0x20, 0, 0});
  CHECK(block_of<dnn::dynamic_fp_2026_08<>>({.05f, -.02f}) == codes{0x20, 1, 8});
  CHECK(block_of<dnn::dynamic_fp_2026_08<>>({3000.f, 1.f}) == codes{0x7E, 7, 0});
  CHECK(block_of<dnn::dynamic_fp_2026_08<>>({quiet_nan, 6.f}) == codes{0x38, 0xF, 7});
}

TEST_CASE("dynamic schemes: whole tensors by the operations are those of the reference") {
  std::vector<float> x;
  for (int i = 0; i < 4 * 96; ++i) x.push_back(static_cast<float>(i % 37 - 18) * exp2i(i / 32 % 24 - 12));
  x[5] = infinity, x[70] = quiet_nan, x[200] = -0.f;
  const auto all = [&]<class S>(std::type_identity<S>) {
    const auto from = source(x.data(), extents(4, 96));
    const auto ours = quantize<S>(from);
    tensor<S, extents<dynamic, dynamic>> expected(extents(4, 96));
    reference::quantize([&](const auto& i) { return from.number(i); }, expected.span());
    CHECK(codes(ours.codes().begin(), ours.codes().end()) == codes(expected.codes().begin(), expected.codes().end()));
    CHECK(codes(ours.scales().begin(), ours.scales().end()) ==
          codes(expected.scales().begin(), expected.scales().end()));
  };
  all(std::type_identity<dnn::dynamic_mx<e4m3>>{});
  all(std::type_identity<dnn::dynamic_fp<>>{});
  all(std::type_identity<dnn::dynamic_mx_2026_08<e5m2>>{});
}

TEST_CASE("static: the zero point is added before rounding (NUMERICS 5.1)") {
  CHECK(code_of<s8>(.5f, 1.f, 1) == 2);
  CHECK(code_of<s8>(1.5f, 1.f, 1) == 2);
  CHECK(code_of<s8>(2.5f, 1.f, 0) == 2);
  CHECK(code_of<s8>(-.5f, 1.f, 1) == 0);
  CHECK(code_of<s8>(-.5f, 1.f, 0) == 0);
  CHECK(code_of<u8>(.25f, .5f, 3) == 4);
  CHECK(code_of<u8>(.75f, .5f, 3) == 4);
  CHECK(code_of<u8>(127.5f, 1.f, 1) == 128);
  CHECK(code_of<s8>(63.75f, .5f, -1) == 126);
  CHECK(code_of<s8>(126.5f, 1.f, 1) == 127);
  CHECK(code_of<s8>(-128.5f, 1.f, 0) == -128);
  CHECK(code_of<s8>(300.f, 1.f, 0) == 127);
  CHECK(code_of<u8>(-50.f, .5f, 128) == 28);
  CHECK(code_of<with<s8, zp_after_round>>(.5f, 1.f, 1) == 1);
}

TEST_CASE("static: exact division or a reciprocal, FP8 through f16, NaNs of e2m1") {
  CHECK(code_of<s8>(16.5f, 2.2f, 0) == 8);
  CHECK(code_of<dnn::by_reciprocal<s8>>(16.5f, 2.2f, 0) == 7);
  const auto code = []<class F>(std::type_identity<F>, float x) {
    return quantize_element<dnn::quantized<F, per_tensor>>(x, {1.f});
  };
  CHECK(code(std::type_identity<e4m3>{}, float_of(0x43C807EF)) == 0x7C);
  CHECK(code(std::type_identity<e4m3>{}, 465.f) == 0x7F);
  CHECK(code(std::type_identity<e5m2>{}, float_of(0x47500D65)) == 0x7A);
  CHECK(code(std::type_identity<e2m1>{}, -quiet_nan) == 0xF);
}

TEST_CASE("static: masks and groups as granularities, zero points in groups of their own (NUMERICS 5.2)") {
  using weights = dnn::quantized<uint4, block<32, 1>, e8m0, zero_point<int8, block<64, 1>>>;
  static_assert(weights::has_zero_point && !weights::zero_points_as_scales);
  tensor<weights> t(extents(128, 3));
  CHECK(t.scales().size() == 12);
  CHECK(t.zero_points().size() == 6);
  tensor<dnn::quantized<int8, per_axes<0, 2>, bf16>, extents<dynamic, dynamic, dynamic>> m(extents(8, 1024, 512));
  CHECK(m.scales().size() == 8 * 512);
}

TEST_CASE("dynamic schemes by vectors") {
  special_blocks::check_vectors<dnn::dynamic_mx<e4m3>, dnn::dynamic_mx<e2m1>, dnn::dynamic_mx_2026_08<e5m2>,
                                dnn::dynamic_fp<>, dnn::dynamic_fp_2026_08<>>();
}
