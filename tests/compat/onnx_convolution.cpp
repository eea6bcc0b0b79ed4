// Mirrors include/qtensor/compat/onnx_convolution.hpp: attributes, both operators by their formulas, refusals.
// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <limits>
#include <qtensor/compat/onnx_convolution.hpp>
#include <random>

namespace {

namespace onnx = qtensor::compat::onnx;
using qtensor::index_t;
using dims = std::vector<index_t>;
using onnx::auto_padding;

/// y of a one-dimensional convolution of one channel, element by element.
std::vector<std::int32_t> line(const std::vector<std::uint8_t>& x, const std::vector<std::int8_t>& w,
                               const onnx::convolution_attributes& how, std::vector<std::uint8_t> x_zero = {},
                               std::vector<std::int8_t> w_zero = {}) {
  const dims x_dims = {1, 1, static_cast<index_t>(x.size())}, w_dims = {1, 1, static_cast<index_t>(w.size())};
  const dims y_dims = onnx::convolution_dims(x_dims, w_dims, how);
  std::vector<std::int32_t> y(static_cast<std::size_t>(y_dims[2]));
  onnx::conv_integer<std::uint8_t, std::int8_t>(x, x_dims, w, w_dims, x_zero, w_zero, how, y);
  return y;
}

}  // namespace

TEST_CASE("onnx: auto_pad puts the odd element at the end or at the beginning, or pads nothing") {
  const std::vector<std::uint8_t> x = {1, 2, 3, 4};
  const std::vector<std::int8_t> w = {1, 10};
  using list = std::vector<std::int32_t>;
  CHECK(line(x, w, {auto_padding::valid}) == list{21, 32, 43});
  CHECK(line(x, w, {auto_padding::same_upper}) == list{21, 32, 43, 4});
  CHECK(line(x, w, {auto_padding::same_lower}) == list{10, 21, 32, 43});
  CHECK(line(x, w, {.pads = {1, 2}}) == list{10, 21, 32, 43, 4, 0});
  CHECK(line(x, w, {.auto_pad = auto_padding::same_upper, .strides = {3}}) == list{21, 4});
  CHECK(line(x, {1}, {.auto_pad = auto_padding::same_upper, .strides = {3}}) == list{1, 4});
  CHECK(line(x, w, {.auto_pad = auto_padding::same_lower, .dilations = {3}}) == list{20, 30, 41, 2});
  CHECK(line(x, {1, 10, 5}, {.auto_pad = auto_padding::same_upper, .dilations = {index_t{1} << 40}}) ==
        list{10, 20, 30, 40});
}

TEST_CASE(
    "onnx: convolutions without results or terms take no time or memory, however many outputs and taps there are") {
  constexpr index_t huge = index_t{1} << 40;
  const std::vector<std::uint8_t> none;
  const std::vector<std::int8_t> no_weights;
  const std::vector<float> scale = {1.f};
  const onnx::qlinear_parameters<std::uint8_t, std::int8_t, std::uint8_t> p{1.f, 3, scale, no_weights, 1.f, 7};
  const auto sums = [&](const dims& x, const dims& w, std::size_t n) {
    std::vector<std::int32_t> y(n, 5);
    onnx::conv_integer<std::uint8_t, std::int8_t>(none, x, no_weights, w, {}, {}, {}, y);
    return y;
  };
  const auto codes = [&](const dims& x, const dims& w, std::size_t n, onnx::convolution_rule rule) {
    std::vector<std::uint8_t> y(n, 5);
    onnx::qlinear_conv<std::uint8_t, std::int8_t, std::uint8_t>(none, x, no_weights, w, p, {}, y, rule);
    return y;
  };
  struct sizes {
    dims x, w;
    std::size_t results;
  };
  for (const auto& [x, w, n] : {sizes{{0, 0, 4}, {huge, 0, 2}, 0}, sizes{{1, 0, 2}, {huge, 0, 3}, 0},
                                sizes{{2, 0, huge, 3}, {5, 0, huge, 2}, 20}, sizes{{2, 0, huge}, {5, 0, huge}, 10},
                                sizes{{0, 0, huge, 3}, {huge, 0, huge, 2}, 0}}) {
    CHECK(sums(x, w, n) == std::vector<std::int32_t>(n, 0));
    for (const auto rule : {onnx::convolution_rule::runtime, onnx::convolution_rule::reference})
      CHECK(codes(x, w, n, rule) == std::vector<std::uint8_t>(n, 7));
  }
}

TEST_CASE("onnx: ConvInteger subtracts both zero points, and padding is the source's") {
  using list = std::vector<std::int32_t>;
  CHECK(line({7, 9}, {2, -3}, {.pads = {1, 1}}, {8}, {1}) == list{-1 * -4, -1 * 1 + 1 * -4, 1 * 1});
}

TEST_CASE("onnx: dimensions of y") {
  CHECK(onnx::convolution_dims(dims{1, 3, 224, 224}, dims{64, 3, 7, 7}, {.pads = {3, 3, 3, 3}, .strides = {2, 2}}) ==
        dims{1, 64, 112, 112});
  CHECK(onnx::convolution_dims(dims{2, 8, 6, 7, 8}, dims{4, 2, 1, 2, 3}, {.group = 4}) == dims{2, 4, 6, 6, 6});
}

TEST_CASE("onnx: QLinearConv by the formulas of ONNX Runtime and of the reference, in every combination of types") {
  std::mt19937 random(5);
  const dims x_dims = {2, 4, 5, 4}, w_dims = {6, 2, 2, 3};
  const onnx::convolution_attributes how{.pads = {1, 0, 0, 1}, .group = 2};
  const dims y_dims = onnx::convolution_dims(x_dims, w_dims, how);
  const auto run = [&]<class X, class W, class Y>(X, W, Y) {
    std::vector<X> x(160);
    std::vector<W> w(72), w_zero(6);
    for (auto& v : x) v = static_cast<X>(random());
    for (auto& v : w) v = static_cast<W>(random());
    for (auto& v : w_zero) v = static_cast<W>(random());
    std::vector<float> w_scale(6);
    std::vector<std::int32_t> bias(6);
    for (auto& v : w_scale) v = std::ldexp(1.f + static_cast<float>(random() % 1000) / 999.f, -6);
    for (auto& v : bias) v = static_cast<std::int32_t>(random() % 20001) - 10000;
    const onnx::qlinear_parameters<X, W, Y> p{0.03f, static_cast<X>(random()), w_scale, w_zero,
                                              0.7f,  static_cast<Y>(random()), bias};
    const std::size_t n = static_cast<std::size_t>(y_dims[0] * y_dims[1] * y_dims[2] * y_dims[3]);
    std::vector<std::int32_t> sums(n);
    onnx::conv_integer<X, W>(x, x_dims, w, w_dims, {&p.x_zero_point, 1}, w_zero, how, sums);
    std::vector<Y> runtime(n), reference(n);
    onnx::qlinear_conv<X, W, Y>(x, x_dims, w, w_dims, p, how, runtime);
    onnx::qlinear_conv<X, W, Y>(x, x_dims, w, w_dims, p, how, reference, onnx::convolution_rule::reference);
    for (std::size_t i = 0; i < n; ++i) {
      const std::size_t o = i / static_cast<std::size_t>(y_dims[2] * y_dims[3]) % 6;
      const volatile float both = 0.03f * w_scale[o];
      const volatile float scale = both / 0.7f;
      const volatile float scaled = static_cast<float>(sums[i] + bias[o]) * scale;
      const double low = std::numeric_limits<Y>::min(), high = std::numeric_limits<Y>::max(), zero = p.y_zero_point;
      REQUIRE(static_cast<double>(runtime[i]) ==
              std::clamp(std::nearbyint(static_cast<double>(scaled)) + zero, low, high));
      const volatile double exact = static_cast<double>(sums[i] + bias[o]) * static_cast<double>(scale);
      REQUIRE(static_cast<double>(reference[i]) == std::nearbyint(std::clamp(exact + zero, low, high)));
    }
  };
  const std::int8_t s8 = 0;
  const std::uint8_t u8 = 0;
  run(s8, s8, s8), run(s8, u8, s8), run(u8, s8, u8), run(u8, u8, u8), run(u8, s8, s8), run(s8, s8, u8);
}

TEST_CASE("onnx: where the zero point is added shows on ties") {
  // 1 * 0.5 and 3 * 0.5, zero point 1.
  const std::vector<std::uint8_t> x = {1, 3};
  const std::vector<std::int8_t> w = {1}, none;
  const dims x_dims = {1, 1, 2}, w_dims = {1, 1, 1};
  const std::vector<float> scale = {0.5f};
  const onnx::qlinear_parameters<std::uint8_t, std::int8_t, std::int8_t> p{1.f, 0, scale, none, 1.f, 1};
  std::vector<std::int8_t> y(2);
  onnx::qlinear_conv<std::uint8_t, std::int8_t, std::int8_t>(x, x_dims, w, w_dims, p, {}, y);
  CHECK(y == std::vector<std::int8_t>{1, 3});
  onnx::qlinear_conv<std::uint8_t, std::int8_t, std::int8_t>(x, x_dims, w, w_dims, p, {}, y,
                                                             onnx::convolution_rule::reference);
  CHECK(y == std::vector<std::int8_t>{2, 2});
}

TEST_CASE("onnx: refusals of convolutions name what does not fit") {
  const std::vector<std::uint8_t> x(4);
  const std::vector<std::int8_t> w(2);
  const auto refuses = [&](const onnx::convolution_attributes& how, const char* text) {
    CHECK_THROWS_WITH_AS(line(x, w, how), doctest::Contains(text), qtensor::error);
  };
  refuses({.pads = {1}}, "pads has 1 entries for 1 spatial axes; it has 2.");
  refuses({.pads = {-1, 0}}, "pads has -1; pads are at least 0.");
  refuses({.strides = {1, 1}}, "strides has 2 entries");
  refuses({.strides = {0}}, "it is at least 1");
  refuses({.kernel_shape = {3}}, "kernel_shape has 3 along spatial axis 0, where w has 2.");
  refuses({.auto_pad = auto_padding::valid, .pads = {0, 0}}, "go together with auto_pad NOTSET only");
  refuses({.auto_pad = static_cast<auto_padding>(7)}, "auto_pad is 7; its choices are 0 to 3.");
  refuses({.group = 2}, "2 groups do not divide 1 outputs.");
  constexpr auto most = std::numeric_limits<qtensor::index_t>::max();
  refuses({.auto_pad = auto_padding::same_upper, .dilations = {most}}, "does not fit 60 bits");
  refuses({.pads = {most, most}}, "does not fit 60 bits");
  CHECK_THROWS_WITH_AS(onnx::convolution_dims(dims{1, 1}, dims{1, 1}), doctest::Contains("x has 2 dimensions"),
                       qtensor::error);
  CHECK_THROWS_WITH_AS(line(x, w, {}, {1, 2}), doctest::Contains("x_zero_point has 2 elements"), qtensor::error);
  CHECK_THROWS_WITH_AS(line(x, w, {}, {1}, {1, 2}), doctest::Contains("2 zero points for 1 outputs"), qtensor::error);

  const dims x_dims = {1, 1, 4}, w_dims = {1, 1, 2}, other = {1, 1, 3};
  std::vector<std::int32_t> y(3), short_y(2);
  CHECK_THROWS_WITH_AS((onnx::conv_integer<std::uint8_t, std::int8_t>(x, other, w, w_dims, {}, {}, {}, y)),
                       doctest::Contains("4 elements of x are given; its dimensions make 3."), qtensor::error);
  CHECK_THROWS_WITH_AS((onnx::conv_integer<std::uint8_t, std::int8_t>(x, x_dims, w, w_dims, {}, {}, {}, short_y)),
                       doctest::Contains("2 elements of y are given"), qtensor::error);
  const std::vector<float> scale = {1.f}, none, negative = {-1.f};
  std::vector<std::uint8_t> q(3);
  const auto qlinear = [&](std::span<const float> w_scale, float y_scale) {
    const onnx::qlinear_parameters<std::uint8_t, std::int8_t, std::uint8_t> p{1.f, 0, w_scale, {}, y_scale, 0};
    onnx::qlinear_conv<std::uint8_t, std::int8_t, std::uint8_t>(x, x_dims, w, w_dims, p, {}, q);
  };
  CHECK_THROWS_WITH_AS(qlinear(none, 1.f), doctest::Contains("w_scale is empty"), qtensor::error);
  CHECK_THROWS_WITH_AS(qlinear(negative, 1.f), doctest::Contains("w_scale is -1"), qtensor::error);
  CHECK_THROWS_WITH_AS(qlinear(scale, 0.f), doctest::Contains("y_scale is 0"), qtensor::error);
  for (const auto rule : {onnx::convolution_rule::runtime, onnx::convolution_rule::reference}) {
    const std::uint8_t one[] = {1}, zero[] = {0};
    const std::vector<float> unit = {1.f};
    const std::vector<std::int32_t> far = {2147483393}, near = {2147483392};  // one term, of at most 255 here
    std::uint8_t result[] = {7};
    const auto add = [&](std::span<const std::int32_t> bias) {
      onnx::qlinear_conv<std::uint8_t, std::uint8_t, std::uint8_t>(
          one, dims{1, 1, 1}, one, dims{1, 1, 1}, {1e-9f, 0, unit, zero, 1e-2f, 100, bias}, {}, result, rule);
    };
    CHECK_THROWS_WITH_AS(add(far), doctest::Contains("may leave 32 bits"), qtensor::error);
    CHECK(result[0] == 7);
    add(near);
    CHECK(result[0] == 255);
  }
}
