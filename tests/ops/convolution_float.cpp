// Mirrors include/qtensor/ops/convolution_float.hpp: every output is the chain of the definition, bit for bit.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/ops/convolution_float.hpp>

#include "../simd/check.hpp"
#include "convolution_check.hpp"
#include "threads.hpp"

using namespace convolution_check;

namespace {

std::vector<float> random_floats(index_t n) {
  std::vector<float> out;
  for (index_t i = 0; i < n; ++i)
    out.push_back(
        std::ldexp(static_cast<float>(static_cast<std::int32_t>(random_bits()())), -31 + static_cast<int>(i % 7)));
  return out;
}

/// The chains of x(n, c, at) and w(o, i, tap), by definition.
template <class X, class W>
std::vector<float> chains(const qt::convolution_shape& s, const X& x, const W& w) {
  std::vector<float> y(static_cast<std::size_t>(s.result_batch() * s.outputs * s.pixels()));
  qt::reference::convolution_chain(s, x, w, [&](index_t n, index_t o, const position& at, float sum) {
    const index_t pixel = (at[0] * s.axes[1].out() + at[1]) * s.axes[2].out() + at[2];
    y[static_cast<std::size_t>((n * s.outputs + o) * s.pixels() + pixel)] = sum;
  });
  return y;
}

template <class A, class X, class By = qt::serial>
void compare_floats(const qt::packed_float_convolution<A>& w, const X& x, const std::vector<float>& want,
                    const By& by = {}) {
  const qt::convolution_shape& s = w.shape();
  std::vector<float> y(want.size(), qt::quiet_nan);
  const qt::convolution_result<float> to{y.data(), s.pixels(), s.outputs * s.pixels(), 1, s.pixels()};
  qt::convolve_floats(w, x, qt::ops::store_numbers{to}, by);
  for (std::size_t i = 0; i < y.size(); ++i) REQUIRE(qt::bits_of(y[i]) == qt::bits_of(want[i]));
}

/// Floats by every architecture, serial and by threads, against the chains of fused multiply-adds.
void check_floats(const problem& p, const qt::convolution_plan& plan, const std::vector<float>& x,
                  const std::vector<float>& w) {
  const auto x_at = [&](index_t n, index_t c, const position& at) {
    return x[static_cast<std::size_t>(plan.input.at(n, c, at))];
  };
  const auto w_at = [&](index_t o, index_t i, const position& tap) {
    return w[static_cast<std::size_t>(plan.kernel.at(o, i, tap))];
  };
  const auto want = chains(plan.shape, x_at, w_at);
  INFO(p.text());
  check::archs::for_each([&]<class A>(A) {
    const qt::packed_float_convolution<A> packed(plan, w_at);
    compare_floats(packed, qt::float_activations{x.data(), plan.input}, want);
    compare_floats(packed, qt::float_activations{x.data(), plan.input}, want, qt::parallel_for(3, pool::thread_each{}));
  });
}

}  // namespace

TEST_CASE("convolution of floats: chains over taps and channels, on every architecture and thread count") {
  for (index_t pick = 0; pick < 24; ++pick) {
    problem p{.x_order = pick % 2 ? "NHWC" : "NCHW", .w_order = pick % 3 ? "OIHW" : "HWIO"};
    const index_t groups = pick % 4 == 0 ? 2 : 1;
    p.batch = 2, p.inputs = 3 * groups, p.outputs = (pick % 5 * 17 + 1) * groups;
    p.sizes = {5, 4}, p.taps = {1 + pick % 3, 2};
    p.how = {{1 + pick % 2, 1}, {1, 1 + pick % 2}, {1 + pick % 3 / 2, 1}, {1, 0}, {0, 2}, groups};
    if (pick == 9) p.how.groups = 1, p.how.batch_groups = 2, p.outputs *= 2;
    const operands data(p);
    const auto x = random_floats(static_cast<index_t>(data.x.size())),
               w = random_floats(static_cast<index_t>(data.w.size()));
    check_floats(p, data.plan, x, w);
  }
}

TEST_CASE("convolution of floats: depthwise, and groups of any size: chains, padding meets NaN weights") {
  for (index_t pick = 0; pick < 40; ++pick) {
    problem p{.x_order = pick % 2 ? "NHWC" : "NCHW", .w_order = pick % 3 ? "OIHW" : "HWIO"};
    const index_t groups = pick % 5 == 0 ? 70 : pick + 2, outputs = std::array{1, 1, 2, 4, 3, 17}[pick / 2 % 6];
    p.batch = 1 + pick % 2, p.inputs = groups * (1 + pick % 4 / 2 * (pick % 3)), p.outputs = groups * outputs;
    p.sizes = {5, pick % 7 == 0 ? 41 : 4}, p.taps = {1 + pick % 3, 1 + pick % 2};
    p.how = {{1 + pick % 2, 1 + pick % 3}, {1, 1 + pick % 2}, {1, 1 + pick % 5 / 4}, {1, 2}, {-1, 2}, groups};
    if (pick == 39) p.sizes = {1, 3000}, p.taps = {1, 5}, p.how = {{}, {}, {}, {0, 2}, {0, 2}, groups};
    const operands data(p);
    auto x = random_floats(static_cast<index_t>(data.x.size())), w = random_floats(static_cast<index_t>(data.w.size()));
    w[w.size() / 2] = qt::quiet_nan, x[x.size() / 3] = -qt::infinity, x[0] = -0.f;
    check_floats(p, data.plan, x, w);
  }
}

TEST_CASE("convolution of floats: a long row is cut, strides anywhere") {
  for (const bool turned : {false, true}) {
    const index_t cols = 700, inputs = 90, step = 3;
    const qt::convolution_layout layout{
        "NWC",
        {1, cols, inputs},
        turned ? std::vector<index_t>{0, step, cols * step} : std::vector<index_t>{0, inputs * step, step}};
    for (const index_t groups : {index_t{1}, inputs / 3, inputs}) {
      const auto plan =
          qt::plan_convolution(layout, {"OIW", {inputs, inputs / groups, 3}}, {{1}, {2}, {}, {3}, {1}, groups});
      const auto x = random_floats(cols * inputs * step), w = random_floats(inputs * inputs / groups * 3);
      const auto w_at = [&](index_t o, index_t i, const position& tap) {
        return w[static_cast<std::size_t>(plan.kernel.at(o, i, tap))];
      };
      const auto want = chains(
          plan.shape,
          [&](index_t n, index_t c, const position& at) {
            return x[static_cast<std::size_t>(plan.input.at(n, c, at))];
          },
          w_at);
      compare_floats(qt::packed_float_convolution<>(plan, w_at), qt::float_activations{x.data(), plan.input}, want);
      compare_floats(qt::packed_float_convolution<>(plan, w_at), qt::float_activations{x.data(), plan.input}, want,
                     qt::parallel_for(5, pool::thread_each{}));
    }
  }
}

TEST_CASE("convolution of floats: codes with scales along the input channels, any zero points") {
  for (const auto& [x_zero, w_zero] : {std::pair{131, 4}, std::pair{-70000, 300}, std::pair{INT32_MIN, INT32_MAX}}) {
    const problem p{.inputs = 6,
                    .outputs = 5,
                    .sizes = {4, 4},
                    .taps = {2, 2},
                    .how = {{}, {}, {}, {1, 1}, {0, 0}, 1},
                    .x_sign = qt::simd::code_sign::is_unsigned,
                    .x_zero = x_zero,
                    .w_zeros = {w_zero}};
    const operands data(p);
    const std::vector<float> of_inputs = {0.1f, 3.f, 0.7f, 1e-3f, 5.f, 0.3f}, of_x = {0.02f};
    const auto want = chains(
        data.plan.shape,
        [&](index_t n, index_t c, const position& at) {
          return static_cast<float>(data.x_number(p, n, c, at)) * 0.02f;
        },
        [&](index_t o, index_t i, const position& tap) {
          return static_cast<float>(data.w_number(p, o, i, tap)) * of_inputs[static_cast<std::size_t>(i)];
        });
    const auto packed = qt::pack_convolution_floats(data.plan, {data.w.data(), p.w_sign, p.w_zeros}, of_inputs,
                                                    qt::weight_scales::of_inputs);
    compare_floats(packed, qt::code_activations{{data.x.data(), p.x_sign, p.x_zero}, data.plan.input, of_x}, want);
  }
}

TEST_CASE("convolution of floats: codes in every layout, of one scale and of one a channel, few channels and many") {
  int turn = 0;
  for (const char* order : {"NHWC", "NCHW", "CNHW", "NWCH"})
    for (const index_t channels : {1, 3, 17, 70})
      for (const index_t groups : {index_t{1}, channels})
        for (const index_t of_x : {index_t{1}, channels}) {
          const problem p{.x_order = order,
                          .batch = 2,
                          .inputs = channels,
                          .outputs = groups * 2,
                          .sizes = {3, ++turn % 2 == 0 ? 70 : 6},
                          .taps = {2, 2},
                          .how = {{}, {}, {1, 1 + turn % 5 / 4}, {1, 1}, {0, 0}, groups},
                          .x_sign = turn % 3 == 0 ? qt::simd::code_sign::is_unsigned : qt::simd::code_sign::is_signed,
                          .x_zero = turn % 4 == 0 ? (1 << 30) + 1 : -100};
          const operands data(p);
          std::vector<float> scales;
          for (index_t c = 0; c < of_x; ++c) scales.push_back(0.37f / static_cast<float>(c + 3));
          const auto want = chains(
              data.plan.shape,
              [&](index_t n, index_t c, const position& at) {
                return static_cast<float>(data.x_number(p, n, c, at)) *
                       scales[of_x == 1 ? 0 : static_cast<std::size_t>(c)];
              },
              [&](index_t o, index_t i, const position& tap) {
                return static_cast<float>(data.w_number(p, o, i, tap)) * 0.5f;
              });
          const std::vector<float> half = {0.5f};
          const auto packed = qt::pack_convolution_floats(data.plan, {data.w.data(), p.w_sign, p.w_zeros}, half,
                                                          qt::weight_scales::of_outputs);
          INFO(order, " ", channels, " groups ", groups, " scales ", of_x);
          compare_floats(packed, qt::code_activations{{data.x.data(), p.x_sign, p.x_zero}, data.plan.input, scales},
                         want);
        }
}

TEST_CASE("convolution of floats: refuses scales of another number") {
  const problem p{.inputs = 6, .outputs = 5, .sizes = {4, 4}};
  const operands data(p);
  const std::vector<float> two = {1.f, 1.f}, one = {1.f};
  const auto packed = qt::pack_convolution_floats(data.plan, {data.w.data()}, one, qt::weight_scales::of_outputs);
  for (const auto& scales : {two, {}}) {
    const qt::code_activations x{{data.x.data()}, data.plan.input, scales};
    CHECK_THROWS_WITH_AS(qt::convolve_floats(packed, x, [](const qt::product_tile&) { FAIL("a tile"); }),
                         doctest::Contains("scales for 6 channels; there is 1, or one for each"), qt::error);
  }
  CHECK_THROWS_WITH_AS(qt::pack_convolution_floats(data.plan, {data.w.data()}, two, qt::weight_scales::of_inputs),
                       doctest::Contains("there are 2 scales for 6 input channels"), qt::error);
  CHECK_THROWS_WITH_AS(qt::pack_convolution_floats(data.plan, {data.w.data()}, two, qt::weight_scales::of_outputs),
                       doctest::Contains("there are 2 scales for 5 outputs"), qt::error);
}

TEST_CASE("convolution of floats: a padded source of more places than an index counts is refused") {
  constexpr index_t far = index_t{1} << 59;
  const std::vector<std::uint8_t> w(32, 1);
  const std::vector<float> scale = {1.f};
  const auto plan =
      qt::plan_convolution({"NWC", {1, 1, 32}}, {"OIW", {1, 32, 1}}, {.strides = {far}, .pad_high = {far}});
  CHECK_THROWS_WITH_AS(qt::pack_convolution_floats(plan, {w.data()}, scale, qt::weight_scales::of_outputs),
                       doctest::Contains("does not fit 63 bits"), qt::error);
}
