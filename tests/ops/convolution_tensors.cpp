// Mirrors include/qtensor/ops/convolution_tensors.hpp: schemes decide which product, both equal their definition.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/ops/convolution_tensors.hpp>

#include "check.hpp"
#include "threads.hpp"

namespace qt = qtensor;
using qt::index_t;
using position = qt::convolution_shape::position;

namespace {

template <class Code>
using per_tensor_zp = qt::scheme<Code, qt::per_tensor, qt::zero_point<Code>>;
template <class Code, int Axis>
using channels = qt::scheme<Code, qt::per_channel<Axis>>;
template <class Code, int Axis>
using channels_zp = qt::scheme<Code, qt::per_channel<Axis>, qt::zero_point<Code>>;

template <class S, class Order = qt::row_major, class Extents>
auto random_tensor(const Extents& extents, unsigned seed) {
  std::mt19937 bits(seed);
  std::vector<float> x(static_cast<std::size_t>(extents.size()));
  for (float& v : x) v = static_cast<float>(static_cast<int>(bits() % 4001) - 1500) / 997.f;
  return check::expected<S, Order>(x, extents);
}

enum class product { exact, floats };

/// The result by definition, at n * outputs * pixels + o * pixels + pixel.
template <class X, class W>
std::vector<float> expected(const X& x, const std::string& x_order, const W& w, const std::string& w_order,
                            const qt::convolution_plan& plan, std::span<const float> bias, product kind) {
  const auto& s = plan.shape;
  const bool grouped = w_order.find('G') != std::string::npos;
  const auto of_x = [&](index_t n, index_t c, const position& at) {
    typename X::index_array index{};
    for (std::size_t i = 0; i < index.size(); ++i)
      index[i] = x_order[i] == 'N' ? n : x_order[i] == 'C' ? c : at[x_order[i] == 'D' ? 0 : x_order[i] == 'H' ? 1 : 2];
    return index;
  };
  const auto of_w = [&](index_t o, index_t i, const position& tap) {
    typename W::index_array index{};
    const index_t each = plan.kernel.group_outputs;
    for (std::size_t k = 0; k < index.size(); ++k) {
      const char c = w_order[k];
      index[k] = c == 'G'   ? o / each
                 : c == 'O' ? (grouped ? o % each : o)
                 : c == 'I' ? i
                            : tap[c == 'D'   ? 0
                                  : c == 'H' ? 1
                                             : 2];
    }
    return index;
  };
  std::vector<float> y(static_cast<std::size_t>(s.result_batch() * s.outputs * s.pixels()));
  const auto keep = [&](index_t n, index_t o, const position& at, float value) {
    const index_t pixel = (at[0] * s.axes[1].out() + at[1]) * s.axes[2].out() + at[2];
    if (!bias.empty()) value = qt::rounded(value + bias[static_cast<std::size_t>(o)]);
    y[static_cast<std::size_t>((n * s.outputs + o) * s.pixels() + pixel)] = value;
  };
  if (kind == product::exact) {
    const auto number = [](const auto& t, const auto& index) {
      using code = typename std::remove_cvref_t<decltype(t)>::scheme_type::code_format;
      return static_cast<std::int64_t>(code::decode(t.code(index))) - t.zero_point(index);
    };
    qt::reference::convolution(
        s, [&](index_t n, index_t c, const position& at) { return number(x, of_x(n, c, at)); },
        [&](index_t o, index_t i, const position& tap) { return number(w, of_w(o, i, tap)); },
        [&](index_t n, index_t o, const position& at, std::int64_t sum) {
          const float by_x = qt::rounded(static_cast<float>(sum) * x.scale({}));
          keep(n, o, at, qt::rounded(by_x * w.scale(of_w(o, 0, {}))));
        });
  } else {
    qt::reference::convolution_chain(
        s, [&](index_t n, index_t c, const position& at) { return qt::reference::value(x, of_x(n, c, at)); },
        [&](index_t o, index_t i, const position& tap) { return qt::reference::value(w, of_w(o, i, tap)); }, keep);
  }
  return y;
}

template <class X, class W>
void compare(const X& x_tensor, const char* x_order, const W& w_tensor, const char* w_order, product kind,
             const qt::convolution_options& how = {}, const char* y_order = nullptr) {
  INFO(x_order, " by ", w_order, " groups ", how.groups, " stride ", how.strides.empty() ? 1 : how.strides[0]);
  const auto x = qt::as_view(x_tensor);
  const auto w = qt::as_view(w_tensor);
  const auto conv = qt::prepare_convolution(x, x_order, w, w_order, how);
  CHECK(conv.is_exact() == (kind == product::exact));
  const auto& s = conv.plan().shape;
  std::vector<float> bias(static_cast<std::size_t>(s.outputs));
  for (std::size_t i = 0; i < bias.size(); ++i) bias[i] = 0.37f * static_cast<float>(i) - 1.f;
  const auto want = expected(x, x_order, w, w_order, conv.plan(), bias, kind);

  const auto map = conv.plan().result(y_order ? y_order : x_order);
  std::vector<float> y(static_cast<std::size_t>(conv.size()), qt::quiet_nan), threaded = y;
  std::vector<std::int8_t> codes(y.size(), 99);
  qt::convolve_into(conv, x, bias, qt::result_in(y.data(), map));
  qt::convolve_into(conv, x, bias, qt::result_in(threaded.data(), map), qt::on(pool::threads(3)));
  using result = qt::scheme<qt::int8, qt::per_tensor, qt::zero_point<qt::int8>, qt::static_only>;
  qt::convolve_into<result>(conv, x, bias, 0.125f, -3, qt::result_in(codes.data(), map));
  std::size_t i = 0;
  for (index_t n = 0; n < s.result_batch(); ++n)
    for (index_t o = 0; o < s.outputs; ++o)
      for (index_t p = 0; p < s.pixels(); ++p, ++i) {
        const index_t wide = s.axes[2].out(), high = s.axes[1].out();
        const auto at = static_cast<std::size_t>(map.at(n, o, {p / wide / high, p / wide % high, p % wide}));
        REQUIRE(qt::bits_of(y[at]) == qt::bits_of(want[i]));
        REQUIRE(qt::bits_of(threaded[at]) == qt::bits_of(want[i]));
        REQUIRE(static_cast<std::uint8_t>(codes[at]) ==
                (qt::quantize_element<result>(want[i], {0.125f, 1.f}, -3) & 255u));
      }
}

}  // namespace

TEST_CASE("integers meet integers whose scales are the outputs'") {
  const auto x = random_tensor<per_tensor_zp<qt::uint8>>(qt::extents(2, 7, 6, 5), 1);
  const auto wide = random_tensor<channels<qt::int8, 0>>(qt::extents(9, 5, 3, 3), 2);
  compare(x, "NHWC", wide, "OIHW", product::exact, {.strides = {2, 1}, .pad_low = {1, 1}, .pad_high = {1, 0}});
  compare(x, "NHWC", random_tensor<qt::int8_per_tensor>(qt::extents(9, 5, 3, 3), 3), "OIHW", product::exact);
  compare(x, "NHWC", random_tensor<channels<qt::int4, 0>>(qt::extents(9, 5, 3, 3), 4), "OIHW", product::exact);
  compare(x, "NHWC", random_tensor<channels_zp<qt::uint4, 0>>(qt::extents(9, 5, 3, 3), 5), "OIHW", product::exact);
  compare(x, "NHWC", random_tensor<channels<qt::int8, 3>>(qt::extents(3, 3, 5, 9), 6), "HWIO", product::exact);
  compare(x, "NHWC", random_tensor<channels<qt::int8, 3>, qt::col_major>(qt::extents(3, 3, 5, 9), 6), "HWIO",
          product::exact);
}

TEST_CASE("zero points that are no codes of their tensor: integers all the same") {
  auto x = random_tensor<qt::scheme<qt::int8, qt::per_tensor, qt::zero_point<qt::int16>>>(qt::extents(1, 5, 9, 7), 27);
  x.zero_points()[0] = 290;
  auto w =
      random_tensor<qt::scheme<qt::uint8, qt::per_channel<0>, qt::zero_point<qt::int32>>>(qt::extents(4, 7, 3, 3), 28);
  for (const int o : {0, 1, 3}) w.zero_points()[static_cast<std::size_t>(o)] = 1000 * o - 500;
  compare(x, "NHWC", w, "OIHW", product::exact, {.strides = {2, 1}, .pad_low = {1, 2}, .pad_high = {0, 1}});
}

TEST_CASE("other axes, groups and orders of memory") {
  const auto line = random_tensor<qt::int8_per_tensor>(qt::extents(2, 6, 11), 7);
  compare(line, "NCW", random_tensor<channels<qt::int8, 0>>(qt::extents(4, 3, 3), 8), "OIW", product::exact,
          {.dilations = {2}, .groups = 2});
  const auto grouped = random_tensor<channels<qt::int8, 1>>(qt::extents(2, 2, 3, 3), 9);  // scales of O alone
  compare(line, "NCW", grouped, "GOIW", product::exact, {.groups = 2});
  const auto cube = random_tensor<qt::int8_per_tensor, qt::col_major>(qt::extents(1, 4, 3, 4, 3), 10);
  compare(cube, "NDHWC", random_tensor<channels<qt::int8, 0>>(qt::extents(2, 2, 2, 2, 3), 11), "ODHWI", product::exact);
  const auto all = random_tensor<qt::int8_per_tensor>(qt::extents(3, 6, 6, 4), 12);
  compare(all.view().slice<1>(1, 4), "NHWC", random_tensor<channels<qt::int8, 0>>(qt::extents(3, 4, 2, 2), 13), "OIHW",
          product::exact);
}

TEST_CASE("scales along the input channels, blocks and float codes take float products") {
  const auto x = random_tensor<qt::int8_per_tensor>(qt::extents(1, 6, 5, 32), 14);
  const auto w = random_tensor<channels<qt::int8, 0>>(qt::extents(5, 32, 2, 3), 15);
  compare(x, "NHWC", random_tensor<channels<qt::int8, 1>>(qt::extents(5, 32, 2, 3), 16), "OIHW", product::floats);
  compare(x, "NHWC", random_tensor<qt::int4_group<32>>(qt::extents(5, 2, 3, 32), 17), "OHWI", product::floats);
  compare(x, "NHWC", random_tensor<qt::mxfp4>(qt::extents(5, 2, 3, 32), 18), "OHWI", product::floats);
  compare(random_tensor<channels<qt::int8, 1>>(qt::extents(1, 32, 5, 4), 19), "NCHW", w, "OIHW", product::floats);
  compare(random_tensor<qt::mxfp8_e4m3>(qt::extents(1, 5, 4, 32), 20), "NHWC", w, "OIHW", product::floats,
          {.strides = {1, 2}, .pad_low = {1, 0}, .pad_high = {0, 1}});
  compare(random_tensor<qt::scheme<qt::e4m3, qt::per_tensor>, qt::col_major>(qt::extents(1, 5, 4, 32), 21), "NHWC", w,
          "OIHW", product::floats);
}

TEST_CASE("runs of places, of any length, where channels do not lie side by side") {
  for (const index_t channels : {1, 15, 18})
    for (const index_t wide : {1, 2, 31, 127, 130}) {
      const auto of = [&]<class S, class Order>(S, Order, const char* order, auto... sizes) {
        const auto w = random_tensor<qt::int8_per_tensor>(qt::extents(3, channels, 1, 2), 22);
        compare(random_tensor<S, Order>(qt::extents(sizes...), 23), order, w, "OIHW", product::floats,
                {.strides = {1, 2}, .pad_low = {0, 3}, .pad_high = {0, -1 + 3 * (wide < 3)}}, "NCHW");
      };
      const index_t one = 1, two = 2;
      of(qt::scheme<qt::e4m3, qt::per_tensor>{}, qt::row_major{}, "NCHW", one, channels, two, wide);
      of(qt::scheme<qt::e2m1, qt::per_tensor>{}, qt::row_major{}, "NCHW", one, channels, two, wide);
      of(qt::int8_group<32>{}, qt::row_major{}, "NCHW", one, channels, two, wide);
      of(qt::int4_group<32>{}, qt::row_major{}, "NCHW", one, channels, two, wide);
      of(qt::mxfp4{}, qt::row_major{}, "NHCW", one, two, channels, wide);
      of(qt::int8_group<32>{}, qt::col_major{}, "WHCN", wide, two, channels, one);
      of(qt::int8_group<32>{}, qt::row_major{}, "NCWH", one, channels, wide, two);
    }
}

TEST_CASE("no results and sums of nothing take no time or memory, however many outputs and taps there are") {
  constexpr index_t huge = index_t{1} << 40;
  const auto run = [&](const auto& x_scheme, const auto& w_scheme, index_t batch, index_t outputs, index_t wide) {
    const qt::tensor<std::remove_cvref_t<decltype(x_scheme)>, qt::dynamic_extents<4>> x(
        qt::extents(batch, index_t{1}, wide, index_t{0}));
    const qt::tensor<std::remove_cvref_t<decltype(w_scheme)>, qt::dynamic_extents<4>> w(
        qt::extents(outputs, index_t{0}, index_t{1}, wide));
    const auto conv = qt::prepare_convolution(x, "NHWC", w, "OIHW");
    std::vector<float> y(static_cast<std::size_t>(conv.size()), 7.f);
    qt::convolve_into(conv, x, {}, qt::result_in(y.data(), conv.plan().result("NHWC")));
    CHECK(y == std::vector<float>(static_cast<std::size_t>(batch * outputs)));
  };
  for (const auto& [batch, outputs, wide] : {std::array{index_t{0}, huge, index_t{2}}, {2, 3, huge}, {2, 20, huge}}) {
    run(qt::int8_per_tensor{}, qt::int8_per_tensor{}, batch, outputs, wide);
    run(qt::scheme<qt::e4m3, qt::per_tensor>{}, qt::int8_per_tensor{}, batch, outputs, wide);
  }
}

TEST_CASE("what does not fit is refused") {
  const auto x = random_tensor<qt::int8_per_tensor>(qt::extents(1, 6, 5, 8), 22);
  const auto w = random_tensor<channels<qt::int8, 0>>(qt::extents(5, 8, 2, 3), 23);
  CHECK_THROWS_WITH_AS(
      qt::prepare_convolution(x, "NHWC", random_tensor<qt::int8_per_tensor>(qt::extents(5, 7, 2, 3), 24), "OIHW"),
      "qtensor: the activations have 8 channels, but 1 groups of 7 input channels of the weights make 7.",
      std::invalid_argument);
  CHECK_THROWS_AS(qt::prepare_convolution(x, "NHC", w, "OIHW"), std::invalid_argument);
  const auto conv = qt::prepare_convolution(x, "NHWC", w, "OIHW");
  std::vector<float> y(static_cast<std::size_t>(conv.size()), 7.f);
  const auto to = qt::result_in(y.data(), conv.plan().result("NHWC"));
  CHECK_THROWS_WITH_AS(qt::convolve_into(conv, random_tensor<qt::int8_per_tensor>(qt::extents(1, 6, 4, 8), 25), {}, to),
                       "qtensor: the activations have 1 batches of 8 channels and 1 x 6 x 4 places; the convolution "
                       "was prepared for 1 of 8 and 1 x 6 x 5.",
                       std::invalid_argument);
  const auto other = random_tensor<qt::int8_per_tensor, qt::col_major>(qt::extents(1, 6, 5, 8), 26);
  CHECK_THROWS_WITH_AS(
      qt::convolve_into(conv, other, {}, to),
      "qtensor: the activations do not lie in memory as those with which the convolution was prepared.",
      std::invalid_argument);
  const std::vector<float> bias(4);
  CHECK_THROWS_WITH_AS(qt::convolve_into(conv, x, bias, to),
                       "qtensor: there are 4 biases for 5 outputs; there are none or 5.", std::invalid_argument);
  const auto fewer = qt::result_in(y.data(), qt::activations({"NHWC", {1, 2, 2, 5}}));
  CHECK_THROWS_WITH_AS(qt::convolve_into(conv, x, {}, fewer),
                       "qtensor: the result has 4 pixels of a channel, the convolution 15.", std::invalid_argument);
  CHECK(std::all_of(y.begin(), y.end(), [](float v) { return v == 7.f; }));
}
