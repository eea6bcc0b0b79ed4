// Mirrors include/qtensor/compat/stablehlo_products.hpp: small products by hand, groups, and the constraints.
// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <qtensor/compat/stablehlo_products.hpp>

#include "core/sentence.hpp"

namespace shlo = qtensor::compat::stablehlo;
using qtensor::index_t;
using shlo::basic_type;
using shlo::parse_type;

namespace {

bool mentions(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

template <class T>
shlo::tensor tensor_of(const char* type, std::vector<index_t> shape, const std::vector<T>& elements) {
  return shlo::tensor(parse_type(type), std::move(shape), std::span<const T>(elements));
}
shlo::tensor floats(std::vector<index_t> shape, const std::vector<float>& x) {
  return tensor_of("f32", std::move(shape), x);
}

/// Numbers of a float type, of a few magnitudes.
shlo::tensor any_numbers(basic_type type, std::vector<index_t> shape, unsigned seed) {
  shlo::tensor x(type, std::move(shape));
  for (index_t i = 0; i < x.size(); ++i) {
    seed = seed * 1664525u + 1013904223u;
    const double v = static_cast<double>(static_cast<std::int32_t>(seed)) * 0x1p-29;
    x.set(i, {shlo::round_to(type, std::ldexp(v, static_cast<int>(seed >> 4 & 7) - 3)), 0});
  }
  return x;
}
/// x + a * b, each step in the type.
double stepped(basic_type type, double x, double a, double b) {
  return shlo::round_to(type, x + shlo::round_to(type, qtensor::rounded(a * b)));
}

/// The definition of a convolution of two spatial dimensions [b, f, 0, 1] x [0, 1, i, o] -> [f, 0, b, 1].
std::vector<double> convolved(const shlo::tensor& x, const shlo::tensor& w, const shlo::convolution_attributes& c,
                              const shlo::tensor& y) {
  const auto &xs = x.shape(), &ws = w.shape(), &ys = y.shape();
  const auto of = [](const std::vector<index_t>& list, std::size_t i) { return list.empty() ? 1 : list[i]; };
  const auto low = [&](std::size_t i) { return c.padding.empty() ? 0 : c.padding[i][0]; };
  std::vector<double> want;
  for (index_t o = 0; o < ys[0]; ++o)
    for (index_t r = 0; r < ys[1]; ++r)
      for (index_t b = 0; b < ys[2]; ++b)
        for (index_t s = 0; s < ys[3]; ++s) {
          const index_t group = o / (ys[0] / (c.feature_group_count * c.batch_group_count));
          const index_t batch = b + (c.batch_group_count > 1 ? group * ys[2] : 0);
          const index_t first = c.feature_group_count > 1 ? group * ws[2] : 0;
          double sum = 0.0;
          for (index_t k = 0; k < ws[0]; ++k)
            for (index_t l = 0; l < ws[1]; ++l) {
              const index_t h = r * of(c.window_strides, 0) + k * of(c.rhs_dilation, 0) - low(0);
              const index_t v = s * of(c.window_strides, 1) + l * of(c.rhs_dilation, 1) - low(1);
              const index_t dh = of(c.lhs_dilation, 0), dv = of(c.lhs_dilation, 1);
              if (h < 0 || v < 0 || h % dh != 0 || v % dv != 0 || h / dh >= xs[2] || v / dv >= xs[3]) continue;
              for (index_t i = 0; i < ws[2]; ++i)
                sum = stepped(x.type().computed(), sum,
                              x.at(((batch * xs[1] + first + i) * xs[2] + h / dh) * xs[3] + v / dv).real,
                              w.at(((k * ws[1] + l) * ws[2] + i) * ws[3] + o).real);
            }
          want.push_back(sum);
        }
  return want;
}
const shlo::convolution_dimension_numbers two_dimensions{0, 1, {2, 3}, 2, 3, {0, 1}, 2, 0, {1, 3}};

/// One spatial dimension: [b, 0, f] x [0, i, o] -> [b, 0, f].
const shlo::convolution_dimension_numbers numbers{0, 2, {1}, 1, 2, {0}, 0, 2, {1}};

}  // namespace

TEST_CASE("stablehlo dot_general: batches, free and contracting dimensions of both sides") {
  // [2 batches][2 rows][3] by [3][2 batches][1 column]
  const auto a = floats({2, 2, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  const auto b = floats({3, 2, 1}, {1, 2, 10, 20, 100, 200});
  const auto y = shlo::dot_general(a, b, {{0}, {1}, {2}, {0}}, basic_type::f32);
  CHECK(y.shape() == std::vector<index_t>{2, 2, 1});
  CHECK(y.to_vector<float>() == std::vector<float>{321, 654, 1974, 2640});
  const auto outer = shlo::dot_general(floats({2}, {1, 2}), floats({2}, {3, 5}), {}, basic_type::f32);
  CHECK(outer.to_vector<float>() == std::vector<float>{3, 5, 6, 10});
}

TEST_CASE("stablehlo dot_general: quantized, with an i32 result, per-axis rhs, and hybrid") {
  const auto x = tensor_of<std::int8_t>("!quant.uniform<i8:f32, 0.5:1>", {1, 2}, {3, 5});         // 1, 2
  const auto w = tensor_of<std::int8_t>("!quant.uniform<i8:f32, 0.25>", {2, 2}, {4, 8, 12, 16});  // 1 2 / 3 4
  const auto y = shlo::dot_general(x, w, {{}, {}, {1}, {0}}, parse_type("!quant.uniform<i32:f32, 0.125>"));
  CHECK(y.to_vector<std::int32_t>() == std::vector<std::int32_t>{56, 80});
  const auto axis = tensor_of<std::int8_t>("!quant.uniform<i8:f32:1, {0.25, 1}>", {2, 2}, {4, 2, 12, 4});
  const auto z = shlo::dot_general(x, axis, {{}, {}, {1}, {0}}, parse_type("!quant.uniform<i32:f32:1, {0.5, 2}>"));
  CHECK(z.to_vector<std::int32_t>() == std::vector<std::int32_t>{14, 5});
  const auto hybrid = shlo::dot_general(floats({1, 2}, {.5f, 2}), w, {{}, {}, {1}, {0}}, basic_type::f32);
  CHECK(hybrid.to_vector<float>() == std::vector<float>{6.5f, 9.f});
}

TEST_CASE("stablehlo dot_general: each step is rounded to the expressed type") {
  const auto ones = tensor_of<std::uint16_t>("bf16", {3}, {0x3f80, 0x3f80, 0x3f80});
  const auto x = tensor_of<std::uint16_t>("bf16", {3}, {0x4380, 0x3f80, 0x3f80});  // 256, 1, 1
  CHECK(shlo::dot_general(x, ones, {{}, {}, {0}, {0}}, basic_type::bf16).at(0).real == 256.0);
  CHECK(shlo::dot_general(x, ones, {{}, {}, {0}, {0}}, basic_type::bf16).shape().empty());
}

TEST_CASE("stablehlo dot_general: f32 in tiles is the definition, in any order of dimensions") {
  // lhs [b0][k0][m0][b1][k1][m1], rhs [k1][n0][b1][b0][k0]
  const auto numbers_of = [](index_t n, unsigned seed) {
    std::vector<float> x(static_cast<std::size_t>(n));
    for (float& v : x) {
      seed = seed * 1664525u + 1013904223u;
      v = static_cast<float>(static_cast<std::int32_t>(seed)) * 0x1p-29f;
    }
    return x;
  };
  const index_t b0 = 2, b1 = 3, k0 = 5, k1 = 29, m0 = 4, m1 = 3, n0 = 37;
  const auto a = numbers_of(b0 * k0 * m0 * b1 * k1 * m1, 1), b = numbers_of(k1 * n0 * b1 * b0 * k0, 2);
  const auto y = shlo::dot_general(floats({b0, k0, m0, b1, k1, m1}, a), floats({k1, n0, b1, b0, k0}, b),
                                   {{0, 3}, {3, 2}, {4, 1}, {0, 4}}, basic_type::f32);
  CHECK(y.shape() == std::vector<index_t>{b0, b1, m0, m1, n0});
  const auto found = y.to_vector<float>();
  std::size_t at = 0;
  for (index_t i = 0; i < b0; ++i)
    for (index_t j = 0; j < b1; ++j)
      for (index_t r = 0; r < m0; ++r)
        for (index_t s = 0; s < m1; ++s)
          for (index_t c = 0; c < n0; ++c) {
            float want = 0.f;
            for (index_t k = 0; k < k1; ++k)
              for (index_t l = 0; l < k0; ++l)
                want += qtensor::rounded(
                    a[static_cast<std::size_t>(((((i * k0 + l) * m0 + r) * b1 + j) * k1 + k) * m1 + s)] *
                    b[static_cast<std::size_t>((((k * n0 + c) * b1 + j) * b0 + i) * k0 + l)]);
            REQUIRE(found[at++] == want);
          }
  // Quantized operands, sums that do not fit f32's digits: the same steps.
  std::vector<std::int8_t> codes(64 * 40);
  for (std::size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<std::int8_t>(i * 89 % 251);
  const auto x = tensor_of<std::int8_t>("!quant.uniform<i8:f32, 0.1:3>", {40, 64}, codes);
  const auto w = tensor_of<std::int8_t>("!quant.uniform<i8:f32, 0.3>", {64, 40}, codes);
  const auto z = shlo::dot_general(x, w, {{}, {}, {1}, {0}}, parse_type("!quant.uniform<i32:f32, 0.01>"))
                     .to_vector<std::int32_t>();
  const auto type = x.type().quantized(), kernel = w.type().quantized();
  for (std::size_t r = 0; r < 40; ++r)
    for (std::size_t c = 0; c < 40; ++c) {
      float sum = 0.f;
      for (std::size_t k = 0; k < 64; ++k)
        sum += qtensor::rounded(static_cast<float>(type.dequantize(codes[r * 64 + k])) *
                                static_cast<float>(kernel.dequantize(codes[k * 40 + c])));
      REQUIRE(z[r * 40 + c] ==
              static_cast<std::int32_t>(parse_type("!quant.uniform<i32:f32, 0.01>").quantized().quantize(sum)));
    }
  CHECK(shlo::dot_general(floats({2, 0}, {}), floats({0, 2}, {}), {{}, {}, {1}, {0}}, basic_type::f32)
            .to_vector<float>() == std::vector<float>(4, 0.f));
}

TEST_CASE("stablehlo dot_general: every float type is the definition") {
  const index_t batches = 2, rows = 251, depth = 37, cols = 19;  // more rows than are gathered at once
  for (const basic_type type : {basic_type::bf16, basic_type::f16, basic_type::f32, basic_type::f64}) {
    const auto a = any_numbers(type, {batches, rows, depth}, 1), b = any_numbers(type, {depth, batches, cols}, 2);
    const auto y = shlo::dot_general(a, b, {{0}, {1}, {2}, {0}}, type);
    index_t place = 0;
    for (index_t n = 0; n < batches; ++n)
      for (index_t r = 0; r < rows; ++r)
        for (index_t c = 0; c < cols; ++c) {
          double want = 0.0;
          for (index_t k = 0; k < depth; ++k)
            want = stepped(type, want, a.at((n * rows + r) * depth + k).real, b.at((k * batches + n) * cols + c).real);
          REQUIRE(y.at(place++).real == want);
        }
  }
  // Quantized operands whose numbers and sums are f16.
  std::vector<std::int8_t> codes(24 * 24);
  for (std::size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<std::int8_t>(i * 89 % 251);
  const auto x = tensor_of<std::int8_t>("!quant.uniform<i8:f16, 0.1:3>", {24, 24}, codes);
  const auto w = tensor_of<std::int8_t>("!quant.uniform<i8:f16, 0.3>", {24, 24}, codes);
  const auto out = parse_type("!quant.uniform<i32:f16, 0.25>");
  const auto z = shlo::dot_general(x, w, {{}, {}, {1}, {0}}, out).to_vector<std::int32_t>();
  for (std::size_t r = 0; r < 24; ++r)
    for (std::size_t c = 0; c < 24; ++c) {
      double sum = 0.0;
      for (std::size_t k = 0; k < 24; ++k)
        sum = stepped(basic_type::f16, sum, x.type().quantized().dequantize(codes[r * 24 + k]),
                      w.type().quantized().dequantize(codes[k * 24 + c]));
      REQUIRE(z[r * 24 + c] == static_cast<std::int32_t>(out.quantized().quantize(sum)));
    }
}

TEST_CASE("stablehlo dot_general: every quantized type is the definition, in any order of dimensions") {
  struct types {
    const char *lhs, *rhs, *result;
  };
  const auto of_any_codes = [](const char* type, std::vector<index_t> shape, unsigned seed) {
    shlo::tensor x(parse_type(type), std::move(shape));
    const auto t = x.type();
    for (index_t i = 0; i < x.size(); ++i) {
      seed = seed * 1664525u + 1013904223u;
      const double v = static_cast<double>(static_cast<std::int32_t>(seed)) * 0x1p-26;
      x.set(i, t.is_quantized() ? shlo::scalar{0.0, t.quantized().quantize(v, x.channel(i))} : shlo::scalar{v, 0});
    }
    return x;
  };
  for (const types& t :
       {types{"!quant.uniform<i8:f32, 0.3:3>", "!quant.uniform<i8:f32, 0.1>", "!quant.uniform<i8:f32, 9:1>"},
        {"!quant.uniform<ui8:f32, 0.25:9>", "!quant.uniform<ui8:f32, 0.5>", "!quant.uniform<ui8:f32, 9:1>"},
        {"!quant.uniform<i8:f32, 0.3:3>", "!quant.uniform<i8:f32:2, {0.1, 0.2, 1}>",
         "!quant.uniform<i32:f32:2, {0.1, 0.01, 5}>"},
        {"!quant.uniform<i8<-100:90>:f32, 0.3:3>", "!quant.uniform<i8:f32, 0.1>", "!quant.uniform<i32:f32, 0.01:-5>"},
        {"!quant.uniform<i16:f32, 0.3:3>", "!quant.uniform<i16:f32, 0.1>", "!quant.uniform<i4:f32, 40>"},
        {"!quant.uniform<i8:f64, 0.3:3>", "!quant.uniform<i8:f64, 0.1>", "!quant.uniform<i8:f64, 9:1>"},
        {"!quant.uniform<i8:bf16, 0.3:3>", "!quant.uniform<i8:bf16, 0.1>", "!quant.uniform<i8:bf16, 9:1>"},
        {"f32", "!quant.uniform<i8:f32, 0.1>", "f32"}})
    for (const index_t batches : {1, 2})
      for (const index_t depth : {0, 1, 37}) {
        const index_t rows = 245, cols = 3;
        INFO(t.lhs, " ", t.rhs, " ", batches, " ", depth);
        const auto a = of_any_codes(t.lhs, {rows, batches, depth}, 1),
                   b = of_any_codes(t.rhs, {batches, depth, cols}, 2);
        const auto y = shlo::dot_general(a, b, {{1}, {0}, {2}, {1}}, parse_type(t.result));
        const auto number = [](const shlo::tensor& x, index_t i) {
          return x.type().is_quantized() ? x.type().quantized().dequantize(x.at(i).integer, x.channel(i))
                                         : x.at(i).real;
        };
        index_t place = 0;
        for (index_t n = 0; n < batches; ++n)
          for (index_t r = 0; r < rows; ++r)
            for (index_t c = 0; c < cols; ++c, ++place) {
              double sum = 0.0;
              for (index_t k = 0; k < depth; ++k)
                sum = stepped(y.type().computed(), sum, number(a, (r * batches + n) * depth + k),
                              number(b, (n * depth + k) * cols + c));
              if (y.type().is_quantized())
                REQUIRE(y.at(place).integer == y.type().quantized().quantize(sum, y.channel(place)));
              else
                REQUIRE(y.at(place).real == sum);
            }
      }
}

TEST_CASE("stablehlo convolution: every float type is the definition, in any order of dimensions") {
  std::vector<shlo::convolution_attributes> all(6);
  all[1] = {.window_strides = {2, 1}, .padding = {{{1, 2}, {0, 3}}}};
  all[2] = {.lhs_dilation = {2, 3}, .rhs_dilation = {1, 2}, .padding = {{{-1, 2}, {4, -2}}}};
  all[3] = {.padding = {{{2, 2}, {1, 1}}}, .feature_group_count = 3};
  all[4] = {.window_strides = {1, 3}, .rhs_dilation = {3, 1}, .padding = {{{3, 0}, {0, 0}}}, .batch_group_count = 2};
  all[5] = {.padding = {{{-9, 0}, {0, 0}}}};  // nothing left
  for (const basic_type type : {basic_type::bf16, basic_type::f16, basic_type::f32, basic_type::f64})
    for (const auto& c : all) {
      const index_t inputs = 4, outputs = 6;
      const auto x = any_numbers(type, {4, inputs * c.feature_group_count, 8, 7}, 3);
      const auto w = any_numbers(type, {3, 2, inputs, outputs}, 4);
      const auto y = shlo::convolution(x, w, two_dimensions, c, type);
      const auto want = convolved(x, w, c, y);
      CHECK((y.size() == 0) == (&c == &all[5]));
      REQUIRE(want.size() == static_cast<std::size_t>(y.size()));
      for (index_t i = 0; i < y.size(); ++i) REQUIRE(y.at(i).real == want[static_cast<std::size_t>(i)]);
    }
}

TEST_CASE("stablehlo convolution: depthwise, channels side by side, is the definition") {
  const shlo::convolution_dimension_numbers outputs_first{0, 2, {1}, 1, 2, {0}, 0, 1, {2}};
  for (const basic_type type : {basic_type::bf16, basic_type::f16, basic_type::f32, basic_type::f64})
    for (const index_t channels : {1, 2, 3, 4, 7, 8, 9, 15, 16, 17, 24, 31, 32, 33, 40, 63, 64, 65, 130})
      for (const bool last : {true, false}) {
        auto x = any_numbers(type, {2, 9, channels}, 3), w = any_numbers(type, {3, 1, channels}, 4);
        w.set(channels - 1, {std::numeric_limits<double>::infinity(), 0});
        const auto y = shlo::convolution(
            x, w, last ? numbers : outputs_first,
            {.window_strides = {2}, .rhs_dilation = {2}, .padding = {{{1, 3}}}, .feature_group_count = channels}, type);
        const index_t places = (1 + 9 + 3 - 5) / 2 + 1;
        REQUIRE(y.size() == 2 * places * channels);
        for (index_t b = 0; b < 2; ++b)
          for (index_t o = 0; o < places; ++o)
            for (index_t c = 0; c < channels; ++c) {
              double sum = 0.0;
              for (index_t k = 0; k < 3; ++k) {
                const index_t at = 2 * o + 2 * k - 1;
                const double seen = at < 0 || at >= 9 ? 0.0 : x.at((b * 9 + at) * channels + c).real;
                sum = stepped(type, sum, seen, w.at(k * channels + c).real);
              }
              const double is = y.at(last ? (b * places + o) * channels + c : (b * channels + c) * places + o).real;
              if (!(std::isnan(is) && std::isnan(sum)) && is != sum)
                FAIL(shlo::name_of(type), ", ", channels, " channels: (", b, ", ", o, ", ", c, ")");
            }
      }
}

TEST_CASE("stablehlo convolution: no spatial dimension and four, nothing to sum, infinite weights meet padding") {
  const shlo::convolution_dimension_numbers none{0, 1, {}, 0, 1, {}, 0, 1, {}};
  const auto y = shlo::convolution(floats({2, 2}, {1, 2, 3, 4}), floats({2, 1}, {10, 1}), none, {}, basic_type::f32);
  CHECK(y.to_vector<float>() == std::vector<float>{12, 34});
  const shlo::convolution_dimension_numbers four{0, 1, {2, 3, 4, 5}, 0, 1, {2, 3, 4, 5}, 0, 1, {2, 3, 4, 5}};
  const auto z = shlo::convolution(floats({1, 1, 1, 2, 1, 3}, {1, 2, 3, 4, 5, 6}),
                                   floats({1, 1, 1, 2, 1, 2}, {1, 10, 100, 1000}), four, {}, basic_type::f32);
  CHECK(z.shape() == std::vector<index_t>{1, 1, 1, 1, 1, 2});
  CHECK(z.to_vector<float>() == std::vector<float>{5421, 6532});
  CHECK(shlo::convolution(floats({1, 2, 0}, {}), floats({1, 0, 2}, {}), numbers, {}, basic_type::f32)
            .to_vector<float>() == std::vector<float>(4, 0.f));
  const float infinite = std::numeric_limits<float>::infinity();
  const auto edge = shlo::convolution(floats({1, 1, 1}, {1}), floats({2, 1, 1}, {infinite, 1}), numbers,
                                      {.padding = {{{1, 0}}}}, basic_type::f32);
  CHECK(std::isnan(edge.to_vector<float>()[0]));  // 0 times infinity
}

TEST_CASE("stablehlo products: operands without elements beside sums of nothing") {
  const auto none = shlo::dot_general(floats({0, 2}, {}), floats({0, 2}, {}), {{1}, {1}, {}, {}}, basic_type::f32);
  CHECK(none.shape() == std::vector<index_t>{2, 0, 0});
  const auto sums = shlo::dot_general(floats({0, 2}, {}), floats({0, 2}, {}), {{1}, {1}, {0}, {0}}, basic_type::f32);
  CHECK(sums.to_vector<float>() == std::vector<float>(2, 0.f));
  const shlo::convolution_dimension_numbers features_first{1, 0, {2}, 0, 1, {2}, 1, 0, {2}};
  const auto zeros =
      shlo::convolution(floats({0, 2, 3}, {}), floats({0, 2, 1}, {}), features_first, {}, basic_type::f32);
  CHECK(zeros.to_vector<float>() == std::vector<float>(12, 0.f));
}

TEST_CASE(
    "stablehlo products: no results and sums of nothing take no time or memory, however large other extents are") {
  constexpr index_t huge = index_t{1} << 40;
  using shape = std::vector<index_t>;
  const shlo::tensor wide(basic_type::f32, {0, huge, huge}), high(basic_type::f32, {huge, huge, 0});
  const auto none = shlo::dot_general(wide, high, {{}, {}, {2, 1}, {1, 0}}, basic_type::f32);
  CHECK(none.shape() == shape{0, 0});
  const shlo::tensor lhs(basic_type::f32, {2, huge, 0}), rhs(basic_type::f32, {0, huge, 3});
  CHECK(shlo::dot_general(lhs, rhs, {{}, {}, {1, 2}, {1, 0}}, basic_type::f32).to_vector<float>() ==
        std::vector<float>(6, 0.f));
  const shlo::tensor no_features(basic_type::f32, {1, huge, 0}), huge_kernel(basic_type::f32, {huge, 0, 2});
  CHECK(shlo::convolution(no_features, huge_kernel, numbers, {}, basic_type::f32).to_vector<float>() ==
        std::vector<float>(2, 0.f));
  const shlo::tensor only_padding(basic_type::f32, {1, 1, 0, huge, huge, huge});
  const shlo::convolution_dimension_numbers four{0, 1, {2, 3, 4, 5}, 0, 1, {2, 3, 4, 5}, 0, 1, {2, 3, 4, 5}};
  const shlo::convolution_attributes apart{.window_strides = {1, huge, huge, huge},
                                           .padding = {{{1, 0}}, {{0, 0}}, {{0, 0}}, {{0, 0}}}};
  CHECK(shlo::convolution(only_padding, floats({1, 1, 1, 1, 1, 1}, {5}), four, apart, basic_type::f32)
            .to_vector<float>() == std::vector<float>{0});
}

TEST_CASE("stablehlo convolution: strides, padding, dilations of both sides") {
  const auto x = floats({1, 4, 1}, {1, 2, 3, 4});
  const auto w = floats({2, 1, 1}, {10, 1});
  const auto run = [&](const shlo::convolution_attributes& c) {
    return shlo::convolution(x, w, numbers, c, basic_type::f32).to_vector<float>();
  };
  using list = std::vector<float>;
  CHECK(run({}) == list{12, 23, 34});
  CHECK(run({.window_strides = {2}}) == list{12, 34});
  CHECK(run({.padding = {{{1, 1}}}}) == list{1, 12, 23, 34, 40});
  CHECK(run({.padding = {{{-1, 0}}}}) == list{23, 34});
  CHECK(run({.rhs_dilation = {2}}) == list{13, 24});
  CHECK(run({.lhs_dilation = {2}}) == list{10, 2, 20, 3, 30, 4});
  CHECK(run({.rhs_dilation = {5}}).empty());
}

TEST_CASE("stablehlo convolution: feature groups and batch groups") {
  const auto x = floats({2, 1, 2}, {1, 2, 3, 4});  // two batches of one place with two features
  const auto depthwise =
      shlo::convolution(x, floats({1, 1, 4}, {1, 10, 100, 1000}), numbers, {.feature_group_count = 2}, basic_type::f32);
  CHECK(depthwise.shape() == std::vector<index_t>{2, 1, 4});
  CHECK(depthwise.to_vector<float>() == std::vector<float>{1, 10, 200, 2000, 3, 30, 400, 4000});
  const auto groups =
      shlo::convolution(x, floats({1, 2, 2}, {1, 10, 100, 1000}), numbers, {.batch_group_count = 2}, basic_type::f32);
  CHECK(groups.shape() == std::vector<index_t>{1, 1, 2});
  CHECK(groups.to_vector<float>() == std::vector<float>{201, 4030});  // output 0 from batch 0, output 1 from batch 1
}

TEST_CASE("stablehlo convolution: quantized, padding is real 0, and per-axis kernels") {
  const auto x = tensor_of<std::int8_t>("!quant.uniform<i8:f32, 0.5:10>", {1, 2, 1}, {12, 14});          // 1, 2
  const auto w = tensor_of<std::int8_t>("!quant.uniform<i8:f32:2, {1, 0.5}>", {2, 1, 2}, {1, 2, 3, 8});  // 1 3 and 1 4
  const auto y =
      shlo::convolution(x, w, numbers, {.padding = {{{1, 0}}}}, parse_type("!quant.uniform<i32:f32:2, {0.5, 1}>"));
  CHECK(y.to_vector<std::int32_t>() == std::vector<std::int32_t>{6, 4, 14, 9});
}

TEST_CASE("stablehlo products: constraints by name") {
  const auto f = floats({2, 2}, {1, 2, 3, 4});
  const auto q = tensor_of<std::int8_t>("!quant.uniform<i8:f32, 1>", {2, 2}, {1, 2, 3, 4});
  const auto shifted = tensor_of<std::int8_t>("!quant.uniform<i8:f32, 1:1>", {2, 2}, {1, 2, 3, 4});
  const auto wide = tensor_of<std::int16_t>("!quant.uniform<i16:f32, 1>", {2, 2}, {1, 2, 3, 4});
  const auto rows = tensor_of<std::int8_t>("!quant.uniform<i8:f32:0, {1, 2}>", {2, 2}, {1, 2, 3, 4});
  const auto out = parse_type("!quant.uniform<i32:f32, 1>");
  const auto said = [&](const shlo::tensor& a, const shlo::tensor& b, const shlo::element_type& type,
                        const shlo::dot_dimension_numbers& d = {{}, {}, {1}, {0}}) {
    return sentence([&] { shlo::dot_general(a, b, d, type); });
  };
  CHECK(mentions(said(q, f, out), "is_quantized(rhs)"));
  CHECK(mentions(said(q, q, basic_type::f32), "is_quantized(lhs) = is_quantized(result)"));
  CHECK(mentions(said(q, shifted, out), "(C15): zero_points(rhs) = 0"));
  CHECK(mentions(said(q, wide, out), "storage_type(lhs) = storage_type(rhs)"));
  CHECK(mentions(said(rows, q, out), "is_per_tensor(lhs)"));
  CHECK(mentions(said(q, rows, out), "quantization_dimension(rhs) is not one"));
  CHECK(mentions(said(q, q, parse_type("!quant.uniform<i32:f32:0, {1, 1}>")), "per-axis results need"));
  CHECK(mentions(said(f, floats({2}, {1, 2}), basic_type::f64), "expressed types agree"));
  CHECK(mentions(said(f, f, basic_type::f32, {{}, {}, {2}, {0}}), "0 <= dimensions < rank"));
  CHECK(mentions(said(f, f, basic_type::f32, {{1}, {0}, {1}, {1}}), "is_unique"));
  CHECK(mentions(said(f, f, basic_type::f32, {{}, {}, {1}, {0, 1}}), "as many on both sides"));
  CHECK(mentions(said(f, floats({3, 1}, {1, 2, 3}), basic_type::f32), "dim(lhs, i) = dim(rhs, j)"));
  const auto i8 = tensor_of<std::int8_t>("i8", {2, 2}, {1, 2, 3, 4});
  CHECK(mentions(said(i8, i8, basic_type::i8), "products are of float or quantized tensors"));

  const auto x = floats({1, 4, 2}, std::vector<float>(8, 1.f)), w = floats({2, 2, 2}, std::vector<float>(8, 1.f));
  const auto conv = [&](const shlo::tensor& kernel, const shlo::convolution_attributes& c) {
    return sentence([&] { shlo::convolution(x, kernel, numbers, c, basic_type::f32); });
  };
  CHECK(mentions(conv(f, {}), "rank(lhs) = rank(rhs)"));
  CHECK(mentions(conv(w, {.window_strides = {0}}), "0 < window_strides"));
  CHECK(mentions(conv(w, {.lhs_dilation = {1, 1}}), "size(lhs_dilation) = N - 2"));
  CHECK(mentions(conv(w, {.padding = {{{0, 0}}, {{0, 0}}}}), "shape(padding) = [N - 2, 2]"));
  CHECK(mentions(conv(w, {.feature_group_count = 2}), "dim(rhs, i) = dim(lhs, f) / feature_group_count"));
  CHECK(mentions(conv(w, {.feature_group_count = 2, .batch_group_count = 2}), "one of them is 1"));
  constexpr qtensor::index_t most = std::numeric_limits<qtensor::index_t>::max();
  CHECK(mentions(conv(w, {.lhs_dilation = {most}}), "does not fit 60 bits"));
  CHECK(mentions(conv(w, {.padding = {{{most, most}}}}), "does not fit 60 bits"));
  CHECK(mentions(conv(w, {.feature_group_count = most}), "dim(rhs, i) = dim(lhs, f) / feature_group_count"));
  const auto along_inputs =
      tensor_of<std::int8_t>("!quant.uniform<i8:f32:1, {1, 1}>", {2, 2, 2}, std::vector<std::int8_t>(8, 1));
  CHECK(mentions(sentence([&] { shlo::convolution(x, along_inputs, numbers, {}, basic_type::f32); }),
                 "quantization_dimension(rhs) = kernel_output_feature_dimension"));
  const auto per_output =
      tensor_of<std::int8_t>("!quant.uniform<i8:f32:2, {1, 1}>", {2, 2, 2}, std::vector<std::int8_t>(8, 1));
  const auto places = parse_type("!quant.uniform<i32:f32:1, {1, 1, 1}>");  // of the 3 places, not the 2 outputs
  const auto codes = tensor_of<std::int8_t>("!quant.uniform<i8:f32, 1>", {1, 4, 2}, std::vector<std::int8_t>(8, 1));
  CHECK(mentions(sentence([&] { shlo::convolution(codes, per_output, numbers, {}, places); }),
                 "quantization_dimension(result) = output_feature_dimension"));
  auto twice = numbers;
  twice.input_feature = 0;
  CHECK(mentions(sentence([&] { shlo::convolution(x, w, twice, {}, basic_type::f32); }), "is_unique"));
}
