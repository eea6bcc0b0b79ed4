// Mirrors include/qtensor/ops/reduce_window.hpp: NUMERICS 7.4, and windows cut out by hand.
// SPDX-License-Identifier: BSD-3-Clause
#include <limits>
#include <numeric>
#include <qtensor/ops/reduce_window.hpp>

#include "ops/reduce_check.hpp"

using namespace reduce_check;

namespace {

/// The definition in two steps: an input padded and dilated with holes, then its windows. Rank 2.
template <class Body>
std::vector<double> by_padding(const std::vector<double>& x, index_t rows, index_t cols, double hole,
                               const window<2>& w, Body body) {
  const auto padded = [&](int axis, index_t extent) {
    const auto a = static_cast<std::size_t>(axis);
    return w.padding_low[a] + (extent == 0 ? 0 : (extent - 1) * w.base_dilations[a] + 1) + w.padding_high[a];
  };
  const index_t r = padded(0, rows), c = padded(1, cols);
  std::vector<double> p(static_cast<std::size_t>(std::max<index_t>(r, 0) * std::max<index_t>(c, 0)), hole);
  for (index_t i = 0; i < rows; ++i)
    for (index_t k = 0; k < cols; ++k) {
      const index_t to_row = w.padding_low[0] + i * w.base_dilations[0],
                    to_col = w.padding_low[1] + k * w.base_dilations[1];
      if (to_row >= 0 && to_row < r && to_col >= 0 && to_col < c)
        p[static_cast<std::size_t>(to_row * c + to_col)] = x[static_cast<std::size_t>(i * cols + k)];
    }
  std::vector<double> out;
  for (index_t i = 0; i + (w.sizes[0] - 1) * w.window_dilations[0] < r; i += w.strides[0])
    for (index_t k = 0; k + (w.sizes[1] - 1) * w.window_dilations[1] < c; k += w.strides[1]) {
      double acc = hole;
      for (index_t a = 0; a < w.sizes[0]; ++a)
        for (index_t b = 0; b < w.sizes[1]; ++b)
          acc = body(acc,
                     p[static_cast<std::size_t>((i + a * w.window_dilations[0]) * c + k + b * w.window_dilations[1])]);
      out.push_back(acc);
    }
  return out;
}

}  // namespace

TEST_CASE("reduce_window: the vectors of NUMERICS 7.4") {
  const std::vector<std::int64_t> x = {1, 2, 3, 4, 5, 6};
  window<2> w{.sizes = {2, 1},
              .strides = {4, 1},
              .base_dilations = {2, 1},
              .window_dilations = {3, 1},
              .padding_low = {2, 0},
              .padding_high = {1, 0}};
  const auto y = reduce_window(values(x.data(), extents(3, 2)), std::int64_t{0}, w, add);
  CHECK(y.extents() == std::array<index_t, 2>{2, 2});
  CHECK(all_of(y) == std::vector<std::int64_t>{0, 0, 3, 4});
  w.sizes = {3, 1};
  const auto z = reduce_window(values(x.data(), extents(3, 2)), std::int64_t{0}, w, add);
  CHECK(z.extents() == std::array<index_t, 2>{1, 2});
  CHECK(all_of(z) == std::vector<std::int64_t>{5, 6});
}

TEST_CASE("reduce_window: strides, both dilations and padding of either sign, against a padded copy") {
  std::vector<double> x(35);
  std::iota(x.begin(), x.end(), 1.0);
  const auto body = [](double a, double b) { return a * .5 + b; };  // the order matters
  for (index_t size : {1, 2, 3})
    for (index_t stride : {1, 2})
      for (index_t base : {1, 2, 3})
        for (index_t dilation : {1, 2})
          for (index_t low : {-2, 0, 1})
            for (index_t high : {-8, -1, 0, 2}) {
              const window<2> w{.sizes = {size, 2},
                                .strides = {stride, 1},
                                .base_dilations = {base, 2},
                                .window_dilations = {dilation, 3},
                                .padding_low = {low, 1},
                                .padding_high = {high, low}};
              INFO("size ", size, " stride ", stride, " base ", base, " dilation ", dilation, " low ", low, " high ",
                   high);
              const auto y = reduce_window(values(x.data(), extents(5, 7)), -3.0, w, body);
              CHECK(all_of(y) == by_padding(x, 5, 7, -3.0, w, body));
            }
}

TEST_CASE("reduce_window: quantized, holes hold the converted init value") {
  const auto x = codes_in<u8>(extents(1, 3), .5f, 10, {110, 130, 250});  // 50, 60, 120
  const window<2> w{.sizes = {1, 2}, .padding_low = {0, 1}};
  const auto y = reduce_window(x, number_like(x, 5.f), w, requantize_to<i32>(.25f), add, requantize_to<u8>(1.f, 5));
  // init 5, then: 5 + 50; 50 + 60; 60 + 120
  CHECK(codes_of(y) == std::vector<int>{65, 120, 190});
  const auto floats = reduce_window(x, number_like(x, 5.f), w, convert_to<f32>{}, add);
  CHECK(all_of(floats) == std::vector<float>{60.f, 115.f, 185.f});
}

TEST_CASE("reduce_window: N inputs and a window of rank 1") {
  const std::vector<float> x = {3, 1, 4, 1, 5, 9, 2, 6};
  const auto position = generated(extents(8), [](const auto& at) { return at[0]; });
  const auto larger = [](float best, index_t best_at, float v, index_t v_at) {
    return v > best ? std::tuple(v, v_at) : std::tuple(best, best_at);
  };
  const auto source_x = source(x.data(), extents(8));
  const auto [value, at] = reduce_window(std::tie(source_x, position), std::tuple(-infinity, index_t{-1}),
                                         window<1>{.sizes = {3}, .strides = {2}}, larger);
  CHECK(all_of(value) == std::vector<float>{4, 5, 9});
  CHECK(all_of(at) == std::vector<index_t>{2, 4, 5});
}

TEST_CASE("pooling: the largest and the mean of windows, padding left out or counted") {
  const auto x = codes_in<u8>(extents(3, 3), .5f, 10, {10, 20, 30, 40, 50, 60, 70, 80, 90});
  const window<2> w{.sizes = {2, 2}, .strides = {2, 2}, .padding_high = {1, 1}};
  CHECK(codes_of(max_pool(x, w)) == std::vector<int>{50, 60, 80, 90});
  const auto sum = requantize_to<i32>(.5f);
  const auto out = requantize_to<u8>(.5f, 10);
  // Real numbers 0, 5, 10 / 15, 20, 25 / 30, 35, 40.
  CHECK(codes_of(average_pool(x, w, sum, out)) == std::vector<int>{30, 28, 42, 30});
  CHECK(codes_of(average_pool(x, w, sum, out, pool_count::elements)) == std::vector<int>{30, 45, 75, 90});
  const window<2> dilated{.sizes = {2, 1}, .base_dilations = {2, 1}, .window_dilations = {2, 1}, .padding_low = {2, 0}};
  const auto means = average_pool(x, dilated, sum, convert_to<f32>{}, pool_count::elements);
  CHECK(all_of(means) == std::vector<float>{0, 5, 10, 0, 0, 0, 7.5f, 12.5f, 17.5f, 0, 0, 0, 22.5f, 27.5f, 32.5f});
  const auto signed_x = codes_in<i8>(extents(1, 2), 1.f, 0, {-100, -50});
  CHECK(codes_of(max_pool(signed_x, window<2>{.sizes = {1, 3}, .padding_low = {0, 1}})) == std::vector<int>{-50});
  const std::vector<float> f = {-3.f, -1.f};
  CHECK(max_pool(source(f.data(), extents(2)), window<1>{.sizes = {3}, .padding_high = {1}})(0) == -1.f);
  const auto of_integers = []<class T>(T) {
    const std::vector<T> v = {-5, -7, -9, -3};
    const auto y =
        max_pool(values(v.data(), extents(4)), window<1>{.sizes = {2}, .padding_low = {2}, .padding_high = {1}});
    CHECK(std::vector<T>(y.data(), y.data() + y.size()) ==
          std::vector<T>{std::numeric_limits<T>::min(), -5, -5, -7, -3, -3});
  };
  of_integers(std::int8_t{});
  of_integers(std::int32_t{});
  of_integers(std::int64_t{});
}

TEST_CASE(
    "reduce_window: floats by vectors, the bits of any other body; windows of every stride, dilation and padding") {
  std::vector<float> x(2 * 7 * 9 * 150);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const auto random = static_cast<std::uint32_t>(i) * 0x9E3779B9u;
    x[i] = random % 97 == 0 ? quiet_nan : random % 89 == 0 ? -0.f : static_cast<float>(random >> 8) * 0x1p-20f - 7.f;
  }
  const auto check = [&](const auto& body, const auto& shape, const auto& w) {
    const auto from = values(x.data(), shape);
    const auto y = reduce_window(from, .5f, w, body);
    const auto want = reduce_window(from, .5f, w, [&](float a, float b) { return body(a, b); });
    REQUIRE(y.extents() == want.extents());
    for (index_t i = 0; i < y.size(); ++i)
      REQUIRE((bits_of(y.data()[i]) == bits_of(want.data()[i]) || (is_nan(y.data()[i]) && is_nan(want.data()[i]))));
  };
  const auto all = [&](const auto& shape, const auto& w) {
    check(add, shape, w);
    check(max, shape, w);
  };
  const auto nhwc = extents(2, 9, 7, 150), nchw = extents(2, 5, 18, 105);
  all(nhwc, window<4>{.sizes = {1, 3, 3, 1}, .strides = {1, 2, 2, 1}, .padding_low = {0, 1, 1, 0}});
  all(nhwc, window<4>{.sizes = {2, 2, 1, 3}, .window_dilations = {1, 3, 1, 40}, .padding_high = {0, 2, 0, 70}});
  all(nchw, window<4>{.sizes = {1, 1, 3, 3}, .strides = {1, 1, 2, 2}, .padding_low = {0, 0, 1, 1}});
  all(nchw, window<4>{.sizes = {1, 2, 9, 5}, .strides = {1, 1, 4, 3}, .padding_low = {0, 0, -2, 7}});
  all(nchw, window<4>{.sizes = {1, 1, 2, 4}, .base_dilations = {1, 1, 2, 1}, .padding_low = {0, 1, 0, -9}});
  all(nchw, window<4>{.sizes = {1, 1, 2, 4}, .base_dilations = {1, 1, 1, 3}});
  check(multiply, extents(700), window<1>{.sizes = {40}, .strides = {2}, .padding_low = {30}, .padding_high = {90}});
  check(min, extents(700), window<1>{.sizes = {40}, .padding_low = {30}, .padding_high = {90}});
  check(add, extents(0), window<1>{.sizes = {1}, .padding_low = {3}});
}

TEST_CASE("reduce_window: constraints by name") {
  const std::vector<float> x(6);
  const auto s = source(x.data(), extents(2, 3));
  const auto said = [&](const window<2>& w) { return sentence([&] { reduce_window(s, 0.f, w, add); }); };
  CHECK(mentions(said({.sizes = {0, 1}}), "0 < window_dimensions"));
  CHECK(mentions(said({.strides = {1, 0}}), "0 < window_strides"));
  CHECK(mentions(said({.base_dilations = {0, 1}}), "0 < base_dilations"));
  CHECK(mentions(said({.window_dilations = {1, -1}}), "0 < window_dilations"));
  constexpr index_t most = std::numeric_limits<index_t>::max();
  CHECK(mentions(said({.sizes = {1, 3}, .window_dilations = {1, most}}), "axis 1 of 3 elements under windows of 3"));
  CHECK(mentions(said({.padding_low = {most, 0}, .padding_high = {most, 0}}), "does not fit 60 bits"));
  CHECK(reduce_window(s, 0.f, window<2>{.sizes = {3, 1}}, add).size() == 0);
  CHECK(reduce_window(s, 0.f, window<2>{.padding_low = {-5, 0}}, add).size() == 0);
}

TEST_CASE("reduce_window and average_pool: no results take no time or memory, however large windows and padding are") {
  constexpr index_t huge = index_t{1} << 40;
  const std::vector<float> x(1);
  const auto none = source(x.data(), extents(0, 1));
  const window<2> large{.sizes = {1, huge}, .padding_low = {0, huge}}, padded{.padding_low = {0, huge}};
  CHECK(reduce_window(none, 0.f, large, add).extents() == std::array<index_t, 2>{0, 2});
  CHECK(reduce_window(none, 0.f, padded, add).extents() == std::array<index_t, 2>{0, huge + 1});
  const auto same = convert_to<f32>{};
  CHECK(average_pool(none, padded, same, same, pool_count::elements).extents() == std::array<index_t, 2>{0, huge + 1});
}

TEST_CASE("average_pool: the elements of every window, by definition, on every kind of sum and result") {
  std::vector<int> codes(40 * 45);
  for (std::size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<int>(i * 61 % 251);
  const auto x = codes_in<u8>(extents(40, 45), .5f, 10, codes);
  const auto sums = requantize_to<i32>(.5f);
  const auto check = [&](const window<2>& w, const auto& accumulator, const auto& result) {
    const auto means = average_pool(x, w, accumulator, result, pool_count::elements);
    const auto each = elements(means);
    const auto of_x = elements(x);
    for (index_t i = 0; i < each.extents()[0]; ++i)
      for (index_t j = 0; j < each.extents()[1]; ++j) {
        auto sum = accumulator(number_like(x, 0.f));
        float n = 0.f;
        for (index_t k = 0; k < w.sizes[0]; ++k)
          for (index_t l = 0; l < w.sizes[1]; ++l) {
            const index_t row = i * w.strides[0] + k * w.window_dilations[0] - w.padding_low[0];
            const index_t col = j * w.strides[1] + l * w.window_dilations[1] - w.padding_low[1];
            if (row < 0 || row >= 40 || col < 0 || col >= 45) continue;
            sum = add(sum, accumulator(of_x.line({row, col}, 1)(0)));
            n += 1.f;
          }
        const float total = detail::to_f32(sum);
        const auto want = result(n > 0.f ? total / n : 0.f);
        REQUIRE(each.line({i, j}, 1)(0) == want);
      }
  };
  using i4 = scheme<int4, per_tensor, zero_point<int4>, static_only, zp_before_round>;
  const auto all = [&](const window<2>& w) {
    check(w, sums, requantize_to<u8>(.6f, 9));
    check(w, sums, convert_to<f32>{});
    check(w, sums, requantize_to<i4>(20.f, 1));
    check(w, requantize_to<i32>(3e-6f), requantize_to<u8>(.6f, 9));
    check(w, convert_to<f32>{}, convert_to<f32>{});
  };
  all({.sizes = {3, 3}});
  all({.sizes = {3, 3}, .padding_low = {1, 2}, .padding_high = {2, 1}});
  all({.sizes = {2, 5}, .strides = {2, 3}, .window_dilations = {1, 2}, .padding_low = {1, 30}, .padding_high = {0, 3}});
  all({.sizes = {1, 1}, .padding_low = {3, -2}, .padding_high = {0, 2}});
}
