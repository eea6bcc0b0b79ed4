// Mirrors include/qtensor/compat/onednn_matmul.hpp.
// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <qtensor/compat/onednn_matmul.hpp>
#include <random>
#include <vector>

namespace dnn = qtensor::compat::onednn;
using qtensor::index_t;
using qtensor::rounded;
using type = dnn::data_type;

namespace {

using dims = std::vector<index_t>;

// NUMERICS 5.3: src u8 {1, 2, 3, 4} with zero point 1, weights {1, -1, 2, -2}, scales .5 and .25.
struct identity {
  std::uint8_t src[4] = {1, 2, 3, 4};
  std::int8_t wei[4] = {1, -1, 2, -2};
  float half = .5f, quarter = .25f, dst = 77.f;
  std::int32_t src_zero = 1, wei_zero = 1, sum = 10;
  dnn::matmul_attributes how;

  identity() {
    how.src_scale = {&half, type::f32};
    how.wei_scale = {&quarter, type::f32};
    how.src_zero_point = {&src_zero, type::s32};
  }
  float run() {
    dnn::matmul(dims{1, 4}, type::u8, src, dims{4, 1}, type::s8, wei, {}, type::f32, &dst, how);
    return dst;
  }
};

}  // namespace

TEST_CASE("matmul: the vectors of NUMERICS 5.3, zero points of weights as numbers or through reductions") {
  identity v;
  CHECK(v.run() == -0.375f);
  v.how.wei_zero_point = {&v.wei_zero, type::s32};
  CHECK(v.run() == -9 * .125f);
  v.how.precomputed_reductions = {&v.sum, type::s32, 3, {1, 4}};
  CHECK(v.run() == -9 * .125f);
  v.how.reductions_of = dnn::reductions_of::shifted;
  CHECK(v.run() == -13 * .125f);  // what the release computes from sums of codes
}

TEST_CASE("matmul: every group of its own, source scale first, two roundings, then bias, post-ops and requantization") {
  constexpr index_t m = 5, k = 64, n = 7, src_group = 32, wei_group = 16;
  std::mt19937 random(7);
  std::vector<std::int8_t> src(m * k), wei(k * n);
  for (auto& c : src) c = static_cast<std::int8_t>(random());
  for (auto& c : wei) c = static_cast<std::int8_t>(random());
  std::vector<float> src_scale(m * k / src_group), wei_scale(k / wei_group * n), bias(n);
  for (auto* v : {&src_scale, &wei_scale, &bias})
    for (float& x : *v) x = static_cast<float>(random() % 1000 + 1) * 1e-4f;
  std::vector<std::int8_t> wei_zero(k / 32 * n), got(m * n);
  for (auto& c : wei_zero) c = static_cast<std::int8_t>(random());
  const float dst_scale = 3.f;
  const std::int32_t dst_zero = 5;
  dnn::matmul_attributes how;
  how.src_scale = {src_scale.data(), type::f32, 3, {1, src_group}};
  how.wei_scale = {wei_scale.data(), type::f32, 3, {wei_group, 1}};
  how.wei_zero_point = {wei_zero.data(), type::s8, 3, {32, 1}};
  how.into.dst_scale = {&dst_scale, type::f32};
  how.into.dst_zero_point = {&dst_zero, type::s32};
  const auto relu = [](std::span<float> d) {
    for (float& x : d) x = x > 0.f ? x : 0.f;
  };
  dnn::matmul(dims{m, k}, type::s8, src.data(), dims{k, n}, type::s8, wei.data(), {bias.data(), type::f32, {1, n}},
              type::s8, got.data(), how, relu);
  for (index_t i = 0; i < m; ++i)
    for (index_t j = 0; j < n; ++j) {
      float d = 0.f;
      for (index_t g = 0; g < k; g += 16) {
        std::int32_t sum = 0;
        for (index_t l = g; l < g + 16; ++l)
          sum += src[static_cast<std::size_t>(i * k + l)] *
                 (wei[static_cast<std::size_t>(l * n + j)] - wei_zero[static_cast<std::size_t>(l / 32 * n + j)]);
        const float scaled = rounded(static_cast<float>(sum) * src_scale[static_cast<std::size_t>(i * 2 + g / 32)]);
        d = rounded(d + rounded(scaled * wei_scale[static_cast<std::size_t>(g / 16 * n + j)]));
      }
      d = rounded(d + bias[static_cast<std::size_t>(j)]);
      d = d > 0.f ? d : 0.f;
      const float q = std::nearbyint(std::clamp(rounded(rounded(d / 3.f) + 5.f), -128.f, 127.f));
      REQUIRE(static_cast<float>(got[static_cast<std::size_t>(i * n + j)]) == q);
    }
}

TEST_CASE("matmul: weight-only, 4-bit weights, batches that share weights, scales before or after the sums") {
  const std::vector<float> src = {1.f, 2.f, -1.f, .5f};  // 2 x 1 x 2
  const std::vector<std::uint8_t> wei = {0x71, 0x8f};    // s4 {1, 7; -1, -8}
  const std::vector<float> scales = {.5f, 3.f};
  std::vector<float> dst(4);
  dnn::matmul_attributes how;
  how.wei_scale = {scales.data(), type::f32, 4};
  for (const auto scaling : {dnn::weight_scaling::before_sum, dnn::weight_scaling::after_sum}) {
    how.weight_scaling = scaling;
    dnn::matmul(dims{2, 1, 2}, type::f32, src.data(), dims{1, 2, 2}, type::s4, wei.data(), {}, type::f32, dst.data(),
                how);
    CHECK(dst == std::vector<float>{-.5f, -27.f, -.75f, -33.f});
  }
}

TEST_CASE("matmul: what has no meaning is refused, and nothing is written") {
  identity v;
  v.how.precomputed_reductions = {&v.sum, type::s32, 3, {1, 4}};
  CHECK_THROWS_WITH(v.run(),
                    "qtensor: precomputed reductions are given without zero points of integer weights; they only serve "
                    "those.");
  v.how.wei_zero_point = {&v.wei_zero, type::s32};
  v.how.precomputed_reductions = {&v.sum, type::s32};
  CHECK_THROWS_WITH(v.run(),
                    "qtensor: precomputed reductions have the mask 0 and type s32; they are s32 and vary along every "
                    "dimension (mask 3).");
  CHECK_THROWS_WITH(
      dnn::matmul(dims{1, 4}, type::u8, v.src, dims{3, 1}, type::s8, v.wei, {}, type::f32, &v.dst),
      "qtensor: the left operand of a product has 4 elements along the sum, the right one 3; they must be "
      "equal.");
  CHECK_THROWS_WITH(dnn::matmul(dims{1, 4}, type::s32, v.src, dims{4, 1}, type::s8, v.wei, {}, type::f32, &v.dst),
                    "qtensor: a matmul of s32 by s8; sources are s8, u8 (with s8, u8, s4, u4 weights), f32, bf16, f16, "
                    "f8_e4m3 and f8_e5m2.");
  CHECK(v.dst == 77.f);
}
