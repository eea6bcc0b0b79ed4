// Mirrors include/qtensor/compat/torchao.hpp: the vectors of NUMERICS 2.4 and 2.6.
// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <cmath>
#include <qtensor/compat/torchao.hpp>
#include <string>
#include <vector>

#include "core/sentence.hpp"
#include "ops/special_blocks.hpp"

using namespace qtensor;
namespace torchao = qtensor::compat::torchao;

namespace {

/// The e8m0 code of a block whose largest magnitude is amax.
template <format Code, class Mode>
int scale_of(float amax) {
  reference::block_statistics seen;
  seen.add<torchao::mx<Code, Mode>>(-amax);
  return static_cast<int>(reference::parameters_of<torchao::mx<Code, Mode>>(seen).scale_code);
}

/// FLOOR, CEIL, EVEN, RCEIL.
template <format Code>
std::vector<int> scales_of(float amax) {
  return {scale_of<Code, torchao::floor>(amax), scale_of<Code, torchao::ceil>(amax),
          scale_of<Code, torchao::even>(amax), scale_of<Code, torchao::rceil>(amax)};
}
using codes = std::vector<int>;

/// Scale, then codes, of one block of NVFP4.
template <class Tensor>
codes block_of(const Tensor& t, index_t n) {
  codes out = {static_cast<int>(t.view().scale_code({0}))};
  for (index_t i = 0; i < n; ++i) out.push_back(static_cast<int>(t.code(i)));
  return out;
}
codes single_level(const std::vector<float>& x) {
  tensor<torchao::nvfp4, extents<dynamic>> t(extents(static_cast<index_t>(x.size())));
  reference::quantize([&](const auto& i) { return x[static_cast<std::size_t>(i[0])]; }, t.span());
  return block_of(t, static_cast<index_t>(x.size()));
}

}  // namespace

TEST_CASE("scale modes: e4m3") {
  CHECK(scales_of<e4m3>(1.f) == codes{119, 119, 119, 119});
  CHECK(scales_of<e4m3>(1.5f) == codes{119, 120, 119, 119});
  CHECK(scales_of<e4m3>(1.75f) == codes{119, 120, 119, 119});
  CHECK(scales_of<e4m3>(1.76f) == codes{119, 120, 119, 120});
  CHECK(scales_of<e4m3>(1.9f) == codes{119, 120, 119, 120});
  CHECK(scales_of<e4m3>(1.94f) == codes{119, 120, 120, 120});
  CHECK(scales_of<e4m3>(2.f) == codes{120, 120, 120, 120});
  CHECK(scales_of<e4m3>(448.f) == codes{127, 128, 127, 127});
  CHECK(scales_of<e4m3>(451.5f) == codes{127, 128, 127, 128});
  CHECK(scales_of<e4m3>(0.f) == codes{0, 0, 0, 0});
  CHECK(scales_of<e4m3>(0x1p-126f) == codes{0, 0, 0, 0});
  CHECK(scales_of<e4m3>(infinity) == codes{255, 255, 255, 255});
  CHECK(scales_of<e4m3>(quiet_nan) == codes{255, 255, 255, 255});
  CHECK(scale_of<e4m3, torchao::even>(float_of(0x7F77FFFF)) == 246);
  CHECK(scale_of<e4m3, torchao::even>(float_of(0x7F780000)) == 255);  // it rounds to 2^128
}

TEST_CASE("scale modes: e2m1 and e5m2") {
  CHECK(scales_of<e2m1>(1.5f) == codes{125, 126, 125, 125});
  CHECK(scales_of<e2m1>(1.74f) == codes{125, 126, 125, 126});
  CHECK(scales_of<e2m1>(1.75f) == codes{125, 126, 126, 126});
  CHECK(scales_of<e2m1>(6.f) == codes{127, 128, 127, 127});
  CHECK(scales_of<e2m1>(6.046875f) == codes{127, 128, 127, 128});
  CHECK(scales_of<e5m2>(1.75f) == codes{112, 113, 112, 112});
  CHECK(scales_of<e5m2>(1.874f) == codes{112, 113, 112, 113});
  CHECK(scales_of<e5m2>(1.875f) == codes{112, 113, 113, 113});
  CHECK(scales_of<e5m2>(57344.f) == codes{127, 128, 127, 127});
}

TEST_CASE("mx: any axis, run-time groups, a short last one") {
  using scheme = torchao::mx<e4m3, torchao::ceil, dynamic, 0>;
  tensor<scheme> t(matrix_extents(5, 2), group<dynamic, 0>(3));
  reference::quantize([](const auto& i) { return i[1] == 0 ? 1.5f : i[0] < 3 ? 4.f : 0.f; }, t.span());
  CHECK(t.view().scale_code({4, 0}) == 120);
  CHECK(t.view().scale_code({0, 1}) == 121);
  CHECK(t.view().scale_code({3, 1}) == 0);
  CHECK(t.code(0, 0) == 0x74);  // 1.5 / 2^-7 = 192
}

TEST_CASE("nvfp4, one level: block scale and codes") {
  CHECK(single_level({6.f, 3.f, -1.f, .25f}) == codes{0x38, 7, 5, 0xA, 0});
  CHECK(single_level({1.f, -.5f, .3f, .1f}) == codes{0x23, 7, 0xD, 3, 1});
  CHECK(single_level({0.f, 0.f}) == codes{0x08, 0, 0});
  CHECK(single_level({.05f, -.02f}) == codes{0x08, 5, 0xB});
  CHECK(single_level({3000.f, 1.f}) == codes{0x7E, 7, 0});
}

TEST_CASE("nvfp4: infinities and NaNs run through the formulas; a tensor scale of 0") {
  CHECK(single_level({infinity, 1.f, -448.f}) == codes{0x7E, 7, 0, 0xA});
  CHECK(single_level({quiet_nan, 1.f})[0] == 0x7F);
  const float x[] = {0.f, 0.f};
  const auto below_zero = torchao::nvfp4_below(source(x, extents(2)), 0.f);
  CHECK(below_zero.view().scale_code({0}) == 0x7F);
  std::vector<float> many(100, 0.f);
  const auto zeros = quantize<torchao::nvfp4_two_level>(source(many.data(), extents(100)));
  CHECK(zeros.tensor_scale() == 0.f);
  for (index_t i = 0; i < 100; ++i) CHECK(zeros.view().scale_code({i}) == 0x7F);
  many[50] = 1e-42f;  // 2^-150 or less of 448 * 6
  const auto tiny = quantize<torchao::nvfp4_two_level>(source(many.data(), extents(100)));
  CHECK(tiny.tensor_scale() == 0.f);
  CHECK(tiny.view().scale_code({50}) == 0x7E);
  CHECK(tiny.view().scale_code({64}) == 0x7F);
  const auto guarded = quantize<with<nvfp4, tensor_scale<f32>>>(source(many.data(), extents(100)));
  CHECK(guarded.tensor_scale() == 1.f);
  dequantize_into(guarded.view(), many.data());
  for (const float back : many) CHECK(back == 0.f);
}

TEST_CASE("nvfp4, two levels: below a given tensor scale, and below the tensor's own") {
  const std::vector<float> x = {6.f, 3.f, -1.f, .25f};
  const auto below = torchao::nvfp4_below(source(x.data(), extents(4)), 0.0625f);
  CHECK(below.tensor_scale() == 0.0625f);
  CHECK(block_of(below, 4) == codes{0x58, 7, 5, 0xA, 0});  // 1 / 0.0625 = 16
  const std::vector<std::uint16_t> halves = {0x40C0, 0x4040};
  CHECK(block_of(torchao::nvfp4_below(source<bf16>(halves.data(), extents(2)), 1.f), 2) == codes{0x38, 7, 5});

  tensor<torchao::nvfp4_two_level, extents<dynamic>> own(extents(4));
  reference::quantize([&](const auto& i) { return x[static_cast<std::size_t>(i[0])]; }, own.span());
  CHECK(own.tensor_scale() == 6.f / 2688.f);
  CHECK(block_of(own, 4)[0] == 0x7E);
}

TEST_CASE("nvfp4_below: scales that cannot be") {
  const float x = 1.f;
  for (float s : {-1.f, infinity, quiet_nan}) {
    const std::string said = sentence([&] { torchao::nvfp4_below(source(&x, extents(1)), s); });
    CHECK(said.find("cannot be; nvfp4 needs a finite one that is not negative.") != std::string::npos);
  }
}

TEST_CASE("by vectors") {
  special_blocks::check_vectors<torchao::nvfp4, torchao::nvfp4_two_level, torchao::mx<e2m1, torchao::even>>();
}
