// Mirrors include/qtensor/reference/tensor_level.hpp.
// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <limits>
#include <qtensor/reference/quantize.hpp>
#include <qtensor/reference/tensor_level.hpp>
#include <qtensor/scheme/schemes.hpp>

#include "core/sentence.hpp"

using namespace qtensor;

namespace {

using two_levels = with<nvfp4, tensor_scale<f32>>;

}  // namespace

TEST_CASE("tensor_level: that of a magnitude is what dynamic quantization takes for a tensor with it") {
  for (const float amax : {0.f, 1e-30f, .5f, 448.f * 6.f * 2.f, 4e4f, 1e30f, std::numeric_limits<float>::max()}) {
    std::array<float, 32> x{};
    x[17] = amax;
    tensor<two_levels> t(matrix_extents(1, 32));
    reference::quantize([&](const auto& i) { return x[static_cast<std::size_t>(i[1])]; }, t.span());
    CHECK(tensor_level::of<two_levels>(amax).scale == t.tensor_scale());
  }
  static_assert(tensor_level::of<two_levels>(448.f * 6.f * 2.f).scale == 2.f);
  static_assert(tensor_level::of_scale(3.f).scale == 3.f && tensor_level::of_scale(3.f).term == 3.f);
}

TEST_CASE("tensor_level: levels are not negative") {
  CHECK(sentence([] { tensor_level::of<two_levels>(-2.f); }) ==
        "qtensor: the largest magnitude of a tensor is given as -2; it cannot be negative.");
  CHECK(sentence([] { tensor_level::of_scale(-2.f); }) ==
        "qtensor: the scale of a tensor is given as -2; it cannot be negative.");
}
