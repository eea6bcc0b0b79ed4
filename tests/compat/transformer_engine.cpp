// Mirrors include/qtensor/compat/transformer_engine.hpp: the vectors of NUMERICS 2.4, zeros, infinities and NaNs.
// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <qtensor/compat/transformer_engine.hpp>
#include <qtensor/ops/quantize.hpp>
#include <string>
#include <vector>

#include "core/sentence.hpp"
#include "ops/special_blocks.hpp"

using namespace qtensor;
namespace te = qtensor::compat::transformer_engine;

namespace {

using codes = std::vector<int>;

template <class Tensor>
codes block_of(const Tensor& t, std::size_t n) {
  codes out = {static_cast<int>(t.view().scale_code({0}))};
  for (std::size_t i = 0; i < n; ++i) out.push_back(static_cast<int>(t.code(static_cast<index_t>(i))));
  return out;
}

codes below(float global_amax, const std::vector<float>& x) {
  return block_of(te::quantize(source(x.data(), extents(static_cast<index_t>(x.size()))), global_amax), x.size());
}

codes powers(const std::vector<float>& x) {
  tensor<te::nvfp4_powers, extents<dynamic>> t(extents(static_cast<index_t>(x.size())));
  reference::quantize([&](const auto& i) { return x[static_cast<std::size_t>(i[0])]; }, t.span());
  return block_of(t, x.size());
}

}  // namespace

TEST_CASE("two levels: block scales and codes below a tensor of 3000") {
  CHECK(below(3000.f, {6.f, 3.f, -1.f, .25f}) == codes{0x36, 7, 5, 0xA, 1});
  CHECK(below(3000.f, {1.f, -.5f, .3f, .1f}) == codes{0x22, 7, 0xD, 3, 1});
  CHECK(below(3000.f, {0.f, 0.f}) == codes{0x00, 0, 0});
  CHECK(below(3000.f, {.05f, -.02f}) == codes{0x04, 7, 0xC});
  CHECK(below(3000.f, {3000.f, 1.f}) == codes{0x7E, 7, 0});
}

TEST_CASE("two levels: the stored tensor scale decodes, and comes from the data where none is given") {
  const std::vector<float> x = {3000.f, 1.f};
  const auto given = te::quantize(source(x.data(), extents(2)), 3000.f);
  CHECK(given.tensor_scale() == 1.11607134f);
  tensor<te::nvfp4, extents<dynamic>> own(extents(2));
  reference::quantize([&](const auto& i) { return x[static_cast<std::size_t>(i[0])]; }, own.span());
  CHECK(own.tensor_scale() == given.tensor_scale());
  CHECK(block_of(own, 2) == block_of(given, 2));
  CHECK(te::quantize(source(x.data(), extents(2)), infinity).tensor_scale() == 1.f);
}

TEST_CASE("two levels: blocks too small for a scale saturate, zeros stay zeros") {
  CHECK(below(3000.f, {1e-4f, -1e-9f, 0.f, -0.f}) == codes{0x00, 7, 0xF, 0, 0});
}

TEST_CASE("-0 is +0, what rounds to zero from below is -0; infinities saturate, NaNs are 0") {
  CHECK(below(3000.f, {6.f, -0.f, -.1f}) == codes{0x36, 7, 0, 8});
  CHECK(below(3000.f, {infinity, 1.f}) == codes{0x7E, 7, 0});
  CHECK(below(3000.f, {quiet_nan, 1.f}) == codes{0x7F, 0, 0});
}

TEST_CASE("powers of two: ceil of log2 as f32 has it") {
  CHECK(powers({6.f, 3.f}) == codes{127, 7, 5});
  CHECK(powers({6.0000005f, 3.f}) == codes{128, 5, 3});
  CHECK(powers({0.f, -0.f}) == codes{0, 0, 0});
  CHECK(powers({infinity, 1.f}) == codes{254, 7, 0});
  CHECK(powers({quiet_nan, 1.f}) == codes{255, 0, 0});
  CHECK(powers({3.4e38f, 1.f})[0] == 253);
  CHECK(powers({6.f * (65536.f + 0x1p-7f)})[0] == 127 + 16);  // log2f says 16
  CHECK(powers({6.f * (65536.f + 0x1p-4f)})[0] == 127 + 17);
}

TEST_CASE("16 x 16 blocks: one scale for all rows") {
  std::vector<float> x(32 * 16, 1.f);
  x[15 * 16] = 6.f;
  const auto t = te::quantize<te::nvfp4_2d>(source(x.data(), extents(32, 16)), 3000.f);
  CHECK(t.scales().size() == 2);
  CHECK(t.view().scale_code({0, 0}) == 0x36);
  CHECK(t.view().scale_code({31, 0}) == below(3000.f, {1.f})[0]);
}

TEST_CASE("whole tensors: the same by the operations on tiles") {
  std::vector<float> x;
  for (int i = 0; i < 8 * 48; ++i) x.push_back(static_cast<float>(i % 37 - 18) * exp2i(i / 16 % 24 - 12));
  x[5] = infinity, x[70] = quiet_nan, x[200] = -0.f;
  const auto all = source(x.data(), extents(8, 48));
  const auto powers = quantize<te::nvfp4_powers>(all);
  tensor<te::nvfp4_powers, extents<dynamic, dynamic>> expected(extents(8, 48));
  reference::quantize([&](const auto& i) { return all.number(i); }, expected.span());
  CHECK(std::vector<int>(powers.codes().begin(), powers.codes().end()) ==
        std::vector<int>(expected.codes().begin(), expected.codes().end()));
  CHECK(std::vector<int>(powers.scales().begin(), powers.scales().end()) ==
        std::vector<int>(expected.scales().begin(), expected.scales().end()));
}

TEST_CASE("quantize: a largest magnitude below zero") {
  const float x = 1.f;
  CHECK(sentence([&] { te::quantize(source(&x, extents(1)), -1.f); }) ==
        "qtensor: the largest magnitude of a tensor is given as -1; it cannot be negative.");
}

TEST_CASE("by vectors") { special_blocks::check_vectors<te::nvfp4, te::nvfp4_2d, te::nvfp4_powers>(); }
