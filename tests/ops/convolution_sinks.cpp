// Mirrors include/qtensor/ops/convolution_sinks.hpp: floats and codes step by step, every layout of results.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/ops/convolution_sinks.hpp>
#include <qtensor/scheme/schemes.hpp>

#include "../simd/check.hpp"
#include "convolution_check.hpp"

using namespace convolution_check;

namespace {

using signed_codes = qt::scheme<qt::int8, qt::per_tensor, qt::zero_point<qt::int8>, qt::static_only>;
using unsigned_codes = qt::scheme<qt::uint8, qt::per_tensor, qt::zero_point<qt::uint8>, qt::static_only>;

struct lists {
  std::vector<float> scales, bias;
  std::vector<std::int32_t> sum_bias;
};
lists random_lists(index_t outputs) {
  lists l;
  for (index_t o = 0; o < outputs; ++o) {
    const auto bits = random_bits()();
    l.scales.push_back(std::ldexp(1.f + static_cast<float>(bits % 9973) / 9973.f, -9));
    l.bias.push_back(static_cast<float>(bits % 2001) / 77.f - 13.f);
    l.sum_bias.push_back(static_cast<std::int32_t>(bits % 5001) - 2500);
  }
  return l;
}

/// One number, every step on its own.
float number_of(std::int64_t sum, index_t o, const qt::convolution_scales& how) {
  const auto at = static_cast<std::size_t>(o);
  volatile float y = static_cast<float>(static_cast<std::int32_t>(sum) + (how.sum_bias.empty() ? 0 : how.sum_bias[at]));
  if (how.scale != 1.f) y = y * how.scale;
  if (!how.scales.empty()) y = y * how.scales[how.scales.size() == 1 ? 0 : at];
  if (!how.bias.empty()) y = y + how.bias[at];
  return y;
}

/// A result in memory under an order of letters, and where its elements are.
template <class T>
struct result_memory {
  qt::activation_map map;
  std::vector<T> data;
  result_memory(const qt::convolution_plan& plan, const char* order, T fill)
      : map(plan.result(order)),
        data(static_cast<std::size_t>(plan.shape.result_batch() * plan.shape.outputs * plan.shape.pixels()), fill) {}
  T at(const qt::convolution_shape& s, index_t n, index_t o, index_t pixel) const {
    const index_t w = s.axes[2].out(), h = s.axes[1].out();
    return data[static_cast<std::size_t>(map.at(n, o, {pixel / w / h, pixel / w % h, pixel % w}))];
  }
};

template <class Check>
void for_each_element(const qt::convolution_shape& s, Check check) {
  for (index_t n = 0; n < s.result_batch(); ++n)
    for (index_t o = 0; o < s.outputs; ++o)
      for (index_t p = 0; p < s.pixels(); ++p)
        check(n, o, p, static_cast<std::size_t>((n * s.outputs + o) * s.pixels() + p));
}

/// Sums, floats and codes of one problem in one order of the result.
template <class A, class S>
void check_results(const problem& p, const char* order, const qt::convolution_scales& how, float scale,
                   std::int32_t zero) {
  const operands data(p);
  const auto sums = data.expected(p);
  const qt::convolution_shape& s = data.plan.shape;
  const auto packed = qt::pack_convolution<A>(data.plan, {data.w.data(), p.w_sign, p.w_zeros});
  const qt::convolution_input x{data.x.data(), p.x_sign, p.x_zero};
  INFO(p.text(), " to ", order, " by ", std::string(qt::simd::arch_name<A>));

  result_memory<std::int32_t> ints(data.plan, order, -1);
  qt::convolve_into(packed, x, qt::result_in(ints.data.data(), ints.map));
  result_memory<float> floats(data.plan, order, qt::quiet_nan);
  qt::convolve_into(packed, x, how, qt::result_in(floats.data.data(), floats.map));
  using unit = qt::simd::code_unit_t<S>;
  result_memory<unit> codes(data.plan, order, unit{99});
  qt::convolve_into<S>(packed, x, how, scale, zero, qt::result_in(codes.data.data(), codes.map));
  for_each_element(s, [&](index_t n, index_t o, index_t pixel, std::size_t i) {
    REQUIRE(ints.at(s, n, o, pixel) == sums[i]);
    const float want = number_of(sums[i], o, how);
    REQUIRE(qt::bits_of(floats.at(s, n, o, pixel)) == qt::bits_of(want));
    REQUIRE(codes.at(s, n, o, pixel) == static_cast<unit>(qt::quantize_element<S>(want, {scale, 1.f}, zero)));
  });
}

}  // namespace

TEST_CASE("convolution results: sums, floats and codes in every layout, few and many outputs, depthwise") {
  for (const char* order : {"NHWC", "NCHW", "CNHW", "HWNC"})
    for (const index_t outputs : {3, 16, 32, 33, 40, 64, 70, 112})
      for (const index_t groups : {index_t{1}, outputs}) {
        problem p{.batch = 2,
                  .inputs = groups == 1 ? 5 : groups,
                  .outputs = outputs,
                  .sizes = {outputs > 32 ? 5 : 4, 6},
                  .taps = {2, 2},
                  .how = {.groups = groups},
                  .x_zero = 3};
        const lists l = random_lists(outputs);
        const float one[] = {0.03f};
        check::archs::for_each([&]<class A>(A) {
          check_results<A, signed_codes>(p, order, {0.37f, l.scales, l.bias, l.sum_bias}, 0.21f, -7);
          check_results<A, unsigned_codes>(p, order, {1.f, one, {}, l.sum_bias}, 0.5f, 255);
          check_results<A, signed_codes>(p, order, {0.1f, {}, l.bias, {}}, 0x1p-130f, 4);
        });
      }
}

TEST_CASE("convolution results: channels that lie in the same places of a cache, and nearly so") {
  for (const index_t outputs : {3, 8, 17, 70})
    for (const index_t groups : {index_t{1}, outputs})
      for (const index_t wide : {15, 16, 32}) {
        const problem p{.batch = 1,
                        .inputs = groups == 1 ? 3 : groups,
                        .outputs = outputs,
                        .sizes = {wide == 15 ? 17 : wide, wide},
                        .taps = {1, 3},
                        .how = {{}, {}, {}, {0, 1}, {0, 1}, groups},
                        .x_zero = -9,
                        .w_zeros = {outputs == 17 ? 5 : 0}};
        const lists l = random_lists(outputs);
        check::archs::for_each([&]<class A>(A) {
          check_results<A, signed_codes>(p, "NCHW", {0.37f, l.scales, l.bias, l.sum_bias}, 0.21f, -7);
        });
      }
}

TEST_CASE("convolution results: a sink gets as many pixels at once as it asks for, no more than there may be") {
  struct counting {
    index_t wanted;
    index_t* most;
    index_t* all;
    index_t fewest_pixels() const { return wanted; }
    void operator()(const qt::convolution_tile& t) const {
      *most = std::max(*most, t.pixels);
      *all += t.pixels * t.channels;
    }
  };
  for (const index_t groups : {1, 24}) {
    const problem p{.inputs = 24, .outputs = 24, .sizes = {20, 300}, .taps = {1, 1}, .how = {.groups = groups}};
    const operands data(p);
    const auto packed = qt::pack_convolution<qt::simd::scalar_arch>(data.plan, {data.w.data()});
    for (const auto& [wanted, got] : {std::pair<index_t, index_t>{2, qt::usual_convolution_pixels},
                                      {70, 70},
                                      {qt::convolution_pixels, qt::convolution_pixels},
                                      {1000, qt::convolution_pixels}}) {
      index_t most = 0, all = 0;
      qt::convolve(packed, {data.x.data()}, counting{wanted, &most, &all});
      CHECK(most == got);
      CHECK(all == 20 * 300 * 24);
    }
  }
}

TEST_CASE("convolution results: an epilogue sees every tile of floats and may change it") {
  const problem p{.batch = 2, .inputs = 4, .outputs = 66, .sizes = {4, 3}};
  const operands data(p);
  const auto sums = data.expected(p);
  const auto packed = qt::pack_convolution(data.plan, {data.w.data()});
  std::vector<float> y(sums.size());
  const index_t pixels = data.plan.shape.pixels();
  qt::convolve_with(packed, {data.x.data()}, {0.5f, {}, {}, {}}, [&](const qt::product_tile& t) {
    for (index_t r = 0; r < t.rows; ++r)
      for (index_t c = 0; c < t.cols; ++c) {
        float& v = t.values[r * t.stride + c];
        v = v > 0.f ? v : 0.f;
        const index_t row = t.row + r;
        y[static_cast<std::size_t>((row / pixels * p.outputs + t.col + c) * pixels + row % pixels)] = v;
      }
  });
  for (std::size_t i = 0; i < y.size(); ++i) REQUIRE(y[i] == std::max(0.f, static_cast<float>(sums[i]) * 0.5f));
}

TEST_CASE("convolution results: refusals") {
  const problem p{.inputs = 4, .outputs = 3, .sizes = {4, 3}};
  const operands data(p);
  const auto packed = qt::pack_convolution(data.plan, {data.w.data()});
  const qt::convolution_input x{data.x.data()};
  std::vector<float> y(36), two(2);
  std::vector<std::int32_t> two_ints(2);
  std::vector<std::int8_t> codes(36);
  const auto to = qt::result_in(y.data(), data.plan.result("NHWC"));
  const auto refuses = [&](const qt::convolution_scales& how, const char* text) {
    CHECK_THROWS_WITH_AS(qt::convolve_into(packed, x, how, to), doctest::Contains(text), qt::error);
  };
  refuses({1.f, two, {}, {}}, "there are 2 scales for 3 outputs; there are none, 1 or 3.");
  refuses({1.f, {}, two, {}}, "there are 2 biases for 3 outputs");
  refuses({1.f, {}, {}, two_ints}, "there are 2 biases for 3 outputs");
  const auto codes_to = qt::result_in(codes.data(), data.plan.result("NHWC"));
  const auto smaller = qt::plan_convolution({"NHWC", {1, 2, 2, 4}}, {"OIHW", {3, 4, 1, 1}}).result("NHWC");
  std::vector<std::int32_t> sums(36, 7);
  constexpr const char* other = "the result has 4 pixels of a channel, the convolution 12";
  CHECK_THROWS_WITH_AS(qt::convolve_into(packed, x, qt::result_in(sums.data(), smaller)), doctest::Contains(other),
                       qt::error);
  CHECK_THROWS_WITH_AS(qt::convolve_into(packed, x, {}, qt::result_in(y.data(), smaller)), doctest::Contains(other),
                       qt::error);
  CHECK_THROWS_WITH_AS(qt::convolve_into<signed_codes>(packed, x, {}, 1.f, 0, qt::result_in(codes.data(), smaller)),
                       doctest::Contains(other), qt::error);
  CHECK(std::ranges::count(sums, 7) == 36);
  for (const float s : {0.f, -1.f, qt::infinity, qt::quiet_nan})
    CHECK_THROWS_WITH_AS(qt::convolve_into<signed_codes>(packed, x, {}, s, 0, codes_to),
                         doctest::Contains("a scale must be finite and positive"), qt::error);
  const auto padded = qt::activations({"NHWC", {1, 4, 3, 3}, {0, 100, 3, 1}});
  CHECK_THROWS_WITH_AS(qt::result_in(y.data(), padded),
                       doctest::Contains("spatial axis 1 of the result has the stride 100"), qt::error);
}

TEST_CASE("convolution results: a batch of none has a layout of any order") {
  for (const char* order : {"NHWC", "NCHW"}) {
    const qt::convolution_plan plan = qt::plan_convolution({"NHWC", {0, 5, 7, 2}}, {"OIHW", {3, 2, 2, 2}});
    CHECK(qt::result_in(static_cast<float*>(nullptr), plan.result(order)).pixels == 24);
  }
}
