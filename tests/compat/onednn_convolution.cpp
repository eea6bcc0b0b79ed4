// Mirrors include/qtensor/compat/onednn_convolution.hpp: the reference's steps for every type, layouts, refusals.
// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <qtensor/compat/onednn_convolution.hpp>
#include <random>

namespace {

namespace dnn = qtensor::compat::onednn;
using dnn::data_type;
using qtensor::index_t;

std::mt19937& random_bits() {
  static std::mt19937 engine(77);
  return engine;
}
std::vector<std::uint8_t> bytes(index_t n) {
  std::vector<std::uint8_t> out(static_cast<std::size_t>(n));
  for (auto& v : out) v = static_cast<std::uint8_t>(random_bits()());
  return out;
}
std::int64_t number(std::uint8_t code, data_type type) {
  return type == data_type::s8 ? static_cast<std::int8_t>(code) : static_cast<std::int64_t>(code);
}

dnn::convolution_description small(data_type src, data_type dst) {
  dnn::convolution_description d{src, data_type::s8, dst, data_type::f32};
  d.src = {"NHWC", {2, 5, 4, 6}};
  d.weights = {"GOIHW", {2, 5, 3, 3, 2}};
  d.strides = {2, 1}, d.dilates = {0, 1}, d.padding_l = {1, 0}, d.padding_r = {0, 2};
  return d;
}

/// One destination number before its last rounding, step by step.
float stepped(std::int64_t sum, float src_scale, float weights_scale, float bias, float dst_scale, float zero,
              bool reciprocal) {
  volatile float d = static_cast<float>(sum);
  d = d * src_scale;
  d = d * weights_scale;
  d = d + bias;
  d = d > 100.f ? 100.f + d : d;  // the post-op of the test
  const volatile float inverse = 1.f / dst_scale;
  d = reciprocal ? d * inverse : d / dst_scale;
  d = d + zero;
  return d;
}

}  // namespace

TEST_CASE("onednn: a convolution takes the reference's steps, into every destination, layout and division") {
  const std::vector<float> weights_scale = {0.01f, 0.02f, 0.5f, 0.03f, 0.07f, 1.f, 0.1f, 0.2f, 0.3f, 0.4f};
  const float src_scale = 0.37f, dst_scale = 2.7f;
  const std::int32_t src_zero = 300, dst_zero = 5;  // no code of s8 or u8
  std::vector<float> bias(10);
  for (auto& b : bias) b = static_cast<float>(random_bits()() % 1000) / 7.f - 70.f;
  for (const data_type src_type : {data_type::u8, data_type::s8})
    for (const data_type dst_type :
         {data_type::f32, data_type::bf16, data_type::f16, data_type::s32, data_type::s8, data_type::u8})
      for (const bool reciprocal : {false, true})
        for (const char* order : {"NHWC", "NCHW"}) {
          auto d = small(src_type, dst_type);
          d.dst_order = order;
          const auto src = bytes(2 * 5 * 4 * 6), weights = bytes(2 * 5 * 3 * 3 * 2);
          dnn::convolution_attributes how;
          how.src_scale = {&src_scale, data_type::f32};
          how.weights_scale = {weights_scale.data(), data_type::f32, 3};
          how.dst_scale = {&dst_scale, data_type::f32};
          how.src_zero_point = {&src_zero, data_type::s32};
          how.dst_zero_point = {&dst_zero, data_type::s32};
          how.division = reciprocal ? dnn::division::reciprocal : dnn::division::exact;
          const dnn::integer_convolution run(d, weights.data(), bias.data(), how);
          const auto n = static_cast<std::size_t>(run.dst_elements());
          std::vector<std::uint32_t> dst(n), want(n);
          run(src.data(), dst.data(), [](const qtensor::product_tile& t) {
            for (index_t r = 0; r < t.rows; ++r)
              for (index_t c = 0; c < t.cols; ++c)
                if (float& v = t.values[r * t.stride + c]; v > 100.f) v = 100.f + v;
          });
          const auto plan = qtensor::plan_convolution(d.src, d.weights, {{2, 1}, {1, 2}, {}, {1, 0}, {0, 2}, 2});
          const auto map = plan.result(order);
          qtensor::reference::convolution(
              plan.shape,
              [&](index_t b, index_t c, const auto& at) {
                return number(src[static_cast<std::size_t>(plan.input.at(b, c, at))], src_type) - src_zero;
              },
              [&](index_t o, index_t i, const auto& tap) {
                return number(weights[static_cast<std::size_t>(plan.kernel.at(o, i, tap))], data_type::s8);
              },
              [&](index_t b, index_t o, const auto& at, std::int64_t sum) {
                const auto i = static_cast<std::size_t>(o);
                const float v = stepped(sum, src_scale, weights_scale[i], bias[i], dst_scale, 5.f, reciprocal);
                dnn::pieces::store(dst_type, &v, 1, want.data(), map.at(b, o, at));
              });
          INFO(static_cast<int>(src_type), " to ", static_cast<int>(dst_type), " ", order, " ", reciprocal);
          REQUIRE(dst == want);
        }
}

TEST_CASE("onednn: results of every width lie where their layout says, whatever an element has of bytes") {
  for (const data_type type : {data_type::f32, data_type::bf16, data_type::f16, data_type::s32, data_type::u8})
    for (const index_t outputs : {1, 3, 4, 7, 8, 9, 16, 17, 33, 40, 64, 65, 130})
      for (const index_t pixels : {1, 2, 5, 8, 17, 31, 40})
        for (const char* order : {"NWC", "NCW", "WNC", "CWN"}) {
          dnn::convolution_description d{data_type::u8, data_type::s8, type};
          d.src = {"NWC", {2, pixels, 3}};
          d.weights = {"OIW", {outputs, 3, 1}};
          d.dst_order = order;
          const auto src = bytes(2 * pixels * 3), weights = bytes(outputs * 3);
          const float dst_scale = 1.7f;
          dnn::convolution_attributes how;
          how.dst_scale = {&dst_scale, data_type::f32};
          const dnn::integer_convolution run(d, weights.data(), nullptr, how);
          const index_t n = run.dst_elements();
          std::vector<std::uint32_t> dst(static_cast<std::size_t>(n), 7), want = dst;
          run(src.data(), dst.data());
          const auto map = qtensor::plan_convolution(d.src, d.weights, {}).result(order);
          for (index_t b = 0; b < 2; ++b)
            for (index_t p = 0; p < pixels; ++p)
              for (index_t o = 0; o < outputs; ++o) {
                std::int64_t sum = 0;
                for (index_t i = 0; i < 3; ++i)
                  sum += src[static_cast<std::size_t>((b * pixels + p) * 3 + i)] *
                         number(weights[static_cast<std::size_t>(o * 3 + i)], data_type::s8);
                const float v = static_cast<float>(sum) / dst_scale;
                dnn::pieces::store(type, &v, 1, want.data(), map.at(b, o, {0, 0, p}));
              }
          INFO(static_cast<int>(type), " ", outputs, " ", pixels, " ", order);
          REQUIRE(dst == want);
        }
}

TEST_CASE("onednn: zero points of weights, padding has the real value 0, nothing given is left out") {
  dnn::convolution_description d{data_type::u8, data_type::u8, data_type::s32};
  d.src = {"NCW", {1, 1, 2}};
  d.weights = {"OIW", {2, 1, 2}};
  d.dst_order = "NCW";
  d.padding_l = {1}, d.padding_r = {1};
  const std::vector<std::uint8_t> src = {10, 20}, weights = {7, 9, 1, 2};
  const std::int8_t src_zero = 4, weights_zero[] = {3, 0};
  dnn::convolution_attributes how;
  how.src_zero_point = {&src_zero, data_type::s8};
  how.weights_zero_point = {weights_zero, data_type::s8, 1};
  std::vector<std::int32_t> dst(6);
  dnn::integer_convolution(d, weights.data(), nullptr, how)(src.data(), dst.data());
  CHECK(dst == std::vector<std::int32_t>{6 * 6, 6 * 4 + 16 * 6, 16 * 4, 6 * 2, 6 + 16 * 2, 16});
}

TEST_CASE("onednn: extreme codes are exact, not saturated in pairs (NUMERICS 5.4)") {
  dnn::convolution_description d;
  d.src = {"NWC", {1, 1, 2}};
  d.weights = {"OIW", {1, 2, 1}};
  d.dst_order = "NWC";
  const std::vector<std::uint8_t> src = {255, 255};
  const std::vector<std::int8_t> weights = {127, 127};
  float y = 0;
  dnn::integer_convolution(d, weights.data())(src.data(), &y);
  CHECK(y == 64770.f);
}

TEST_CASE("onednn: refusals of convolutions name what does not fit") {
  const float scale = 1.f;
  const std::int32_t zero = 1 << 30;
  const auto refuses = [&](const dnn::convolution_description& d, const dnn::convolution_attributes& how,
                           const char* text) {
    const auto weights = bytes(180);
    CHECK_THROWS_WITH_AS(dnn::integer_convolution(d, weights.data(), &scale, how), doctest::Contains(text),
                         qtensor::error);
  };
  auto d = small(data_type::u8, data_type::f32);
  d.bias_type = data_type::undef;
  refuses(small(data_type::f32, data_type::f32), {},
          "the source is of type f32; an integer convolution takes s8 and u8");
  refuses(small(data_type::u8, data_type::s4), {}, "the destination of a convolution is of type s4");
  dnn::convolution_attributes how;
  how.weights_scale = {&scale, data_type::f32, 1};
  refuses(d, how, "the weights scale has the mask 1; in a convolution it is 0, or 3");
  how.weights_scale = {&scale, data_type::s8, 0};
  refuses(d, how, "the weights scale is of type s8");
  how = {};
  how.src_scale = {&scale, data_type::f32, 1};
  refuses(d, how, "the source scale has the mask 1");
  how = {};
  how.src_zero_point = {&zero, data_type::s32};
  refuses(d, how, "the zero point of the source is 1073741824");
  how = {};
  how.dst_zero_point = {&scale, data_type::f32};
  refuses(d, how, "the destination zero point is of type f32");
  how = {};
  how.weights_zero_point = {&scale, data_type::f32};
  refuses(d, how, "the weights zero point is of type f32");
  auto odd_bias = small(data_type::u8, data_type::f32);
  odd_bias.bias_type = data_type::f8_e4m3;
  refuses(odd_bias, {}, "the bias is of type f8_e4m3; it is f32, bf16, f16, s32, s8 or u8");
  auto no_bias = small(data_type::u8, data_type::f32);
  CHECK_THROWS_WITH_AS(dnn::integer_convolution(no_bias, bytes(180).data()), doctest::Contains("the bias is null"),
                       qtensor::error);
  CHECK_THROWS_WITH_AS(dnn::integer_convolution(d, nullptr), doctest::Contains("the weights is null, but has 180"),
                       qtensor::error);
  const dnn::integer_convolution fine(d, bytes(180).data());
  std::vector<float> memory(static_cast<std::size_t>(fine.dst_elements()) + 60, 7.f);
  const auto src = bytes(240);
  CHECK_THROWS_WITH_AS(fine(nullptr, memory.data()), doctest::Contains("the source is null, but has 240"),
                       qtensor::error);
  CHECK_THROWS_WITH_AS(fine(src.data(), nullptr), doctest::Contains("the destination is null"), qtensor::error);
  CHECK_THROWS_WITH_AS(fine(src.data(), reinterpret_cast<std::byte*>(memory.data()) + 2),
                       doctest::Contains("the destination is not aligned to 4 bytes"), qtensor::error);
  CHECK_THROWS_WITH_AS(fine(memory.data(), memory.data() + 59), doctest::Contains("overlaps the source"),
                       qtensor::error);
  for (const index_t e : {index_t{-1}, std::numeric_limits<index_t>::max()}) {
    auto dilated = d;
    dilated.dilates = {0, e};
    refuses(dilated, {}, ("an entry of the dilates is " + std::to_string(e) + "; it is at least 0").c_str());
  }
  // Behind the elements of a strided source, but before its last one.
  for (const index_t sign : {1, -1}) {
    auto apart = d;
    apart.src.strides = {240 * sign, 48 * sign, 12 * sign, 2 * sign};
    const dnn::integer_convolution strided(apart, bytes(180).data());
    std::vector<float> room(4000, 7.f);
    CHECK_THROWS_WITH_AS(strided(room.data() + 2000, room.data() + 2000 + sign * 70),
                         doctest::Contains("overlaps the source"), qtensor::error);
    CHECK(std::count(room.begin(), room.end(), 7.f) == 4000);
  }
  CHECK(std::count(memory.begin(), memory.end(), 7.f) == static_cast<std::ptrdiff_t>(memory.size()));
  d.dst_order = "NHHC";
  refuses(d, {}, "has a letter twice");
}
