// Mirrors include/qtensor/reference/convolution.hpp: the geometry's arithmetic, and sums written out by hand.
// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <qtensor/reference/convolution.hpp>
#include <vector>

namespace {

using qtensor::convolution_axis;
using qtensor::convolution_shape;
using qtensor::index_t;
using position = convolution_shape::position;
using numbers = std::vector<std::int64_t>;

/// One axis, one channel.
numbers line(const convolution_axis& axis, const numbers& x, const numbers& w) {
  convolution_shape s;
  s.axes[2] = axis;
  s.axes[2].in = static_cast<index_t>(x.size());
  s.axes[2].taps = static_cast<index_t>(w.size());
  numbers y;
  qtensor::reference::convolution(
      s, [&](index_t, index_t, const position& at) { return x[static_cast<std::size_t>(at[2])]; },
      [&](index_t, index_t, const position& tap) { return w[static_cast<std::size_t>(tap[2])]; },
      [&](index_t, index_t, const position&, std::int64_t sum) { y.push_back(sum); });
  return y;
}

}  // namespace

TEST_CASE("convolution: sizes of results (NUMERICS 7.3)") {
  CHECK(convolution_axis{.in = 7, .taps = 3}.out() == 5);
  CHECK(convolution_axis{.in = 7, .taps = 3, .stride = 2}.out() == 3);
  CHECK(convolution_axis{.in = 7, .taps = 3, .tap_dilation = 3}.out() == 1);
  CHECK(convolution_axis{.in = 7, .taps = 3, .tap_dilation = 4}.out() == 0);
  CHECK(convolution_axis{.in = 4, .taps = 3, .input_dilation = 2}.out() == 5);
  CHECK(convolution_axis{.in = 4, .taps = 3, .pad_low = 1, .pad_high = 2}.out() == 5);
  CHECK(convolution_axis{.in = 4, .taps = 3, .pad_low = -1}.out() == 1);
  CHECK(convolution_axis{.in = 0, .taps = 3, .pad_low = 3}.out() == 1);
  CHECK(convolution_axis{.in = 0, .taps = 1}.out() == 0);
}

TEST_CASE("convolution: taps inside are those between the ends of the input under some output, or few beside them") {
  for (const index_t in : {0, 1, 2, 5})
    for (const index_t taps : {0, 1, 2, 3, 7})
      for (const index_t stride : {1, 3})
        for (const index_t tap_dilation : {1, 2, 9})
          for (const index_t input_dilation : {1, 2})
            for (const index_t low : {-9, -1, 0, 1, 4, 30})
              for (const index_t high : {-3, 0, 2, 30}) {
                const convolution_axis a{in, taps, stride, tap_dilation, input_dilation, low, high};
                if (a.out() == 0) continue;
                const index_t behind = low + (in == 0 ? 0 : (in - 1) * input_dilation + 1);
                const auto [first, end] = a.taps_inside();
                REQUIRE(0 <= first);
                REQUIRE(first <= end);
                REQUIRE(end <= taps);
                for (index_t t = 0; t < taps; ++t) {
                  bool reads = false;
                  for (index_t o = 0; o < a.out(); ++o) reads = reads || a.source(o, t) >= 0;
                  if (reads) REQUIRE((first <= t && t < end));
                  const index_t place = t * tap_dilation, last = (a.out() - 1) * stride + place;
                  if (first <= t && t < end) REQUIRE((last >= low && place < behind));
                }
              }
}

TEST_CASE("convolution: taps slide, padding and holes are 0") {
  CHECK(line({}, {1, 2, 3, 4}, {1, 10}) == numbers{21, 32, 43});
  CHECK(line({.stride = 2}, {1, 2, 3, 4}, {1, 10}) == numbers{21, 43});
  CHECK(line({.tap_dilation = 2}, {1, 2, 3, 4}, {1, 10}) == numbers{31, 42});
  CHECK(line({.input_dilation = 2}, {1, 2, 3}, {1, 10}) == numbers{1, 20, 2, 30});
  CHECK(line({.pad_low = 1, .pad_high = 2}, {1, 2}, {1, 10}) == numbers{10, 21, 2, 0});
  CHECK(line({.pad_low = -1, .pad_high = -1}, {1, 2, 3, 4}, {1}) == numbers{2, 3});
}

TEST_CASE("convolution: groups read their own channels, batch groups their own batches") {
  convolution_shape s{.batch = 1, .inputs = 4, .outputs = 4, .groups = 2};
  const auto x = [](index_t n, index_t c, const position&) { return std::int64_t{1} + n * 10 + c; };
  const auto w = [](index_t o, index_t i, const position&) { return o < 2 ? std::int64_t{1} : 100 * (i + 1); };
  numbers y;
  const auto take = [&](index_t, index_t, const position&, std::int64_t sum) { y.push_back(sum); };
  qtensor::reference::convolution(s, x, w, take);
  CHECK(y == numbers{1 + 2, 1 + 2, 100 * 3 + 200 * 4, 100 * 3 + 200 * 4});

  y.clear();
  s = {.batch = 4, .inputs = 1, .outputs = 2, .batch_groups = 2};
  qtensor::reference::convolution(
      s, x, [](index_t, index_t, const position&) { return std::int64_t{1}; }, take);
  CHECK(y == numbers{1, 21, 11, 31});  // batches 0 and 2, then 1 and 3
}

TEST_CASE("convolution: a float output is one chain, taps ascending, channels under each") {
  convolution_shape s{.inputs = 2, .outputs = 1};
  s.axes[2] = {.in = 2, .taps = 2};
  const float big = 0x1p30f;
  const auto chain = [&](std::vector<float> x) {
    float y = 0;
    qtensor::reference::convolution_chain(
        s, [&](index_t, index_t c, const position& at) { return x[static_cast<std::size_t>(at[2] * 2 + c)]; },
        [](index_t, index_t, const position&) { return 1.f; },
        [&](index_t, index_t, const position&, float sum) { y = sum; });
    return y;
  };
  CHECK(chain({big, 1, -big, 0}) == 0);
  CHECK(chain({big, -big, 1, 0}) == 1);
  // A step is one fused multiply-add: (1 + 2^-12)^2 keeps its last term.
  s = {.inputs = 2, .outputs = 1};
  const float a = 1 + 0x1p-12f;
  qtensor::reference::convolution_chain(
      s, [&](index_t, index_t c, const position&) { return c == 0 ? 1 + 0x1p-11f : a; },
      [&](index_t, index_t i, const position&) { return i == 0 ? -1.f : a; },
      [&](index_t, index_t, const position&, float sum) { CHECK(sum == 0x1p-24f); });
}
