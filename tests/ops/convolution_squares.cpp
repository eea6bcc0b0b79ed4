// Mirrors include/qtensor/ops/convolution_squares.hpp: matrix registers give the sums that vectors give.
// SPDX-License-Identifier: BSD-3-Clause
#include <array>
#include <qtensor/ops/convolution_sinks.hpp>
#include <qtensor/ops/convolution_squares.hpp>
#include <qtensor/scheme/schemes.hpp>

#include "../simd/check.hpp"
#include "convolution_check.hpp"
#include "threads.hpp"

using namespace convolution_check;

namespace {

using arch = qt::simd::best_arch;
constexpr auto is_unsigned = qt::simd::code_sign::is_unsigned;

/// By sinks that may run beside the registers and by others, with the registers and without.
template <class By = qt::serial>
void check_both_ways(const problem& p, const By& by = {}) {
  const operands data(p);
  const auto want = data.expected(p);
  const qt::convolution_shape& s = data.plan.shape;
  const auto packed = qt::pack_convolution<arch>(data.plan, {data.w.data(), p.w_sign, p.w_zeros});
  check::fenced<std::uint8_t> source(data.x);
  const qt::convolution_input x{source.data(), p.x_sign, p.x_zero};
  for (const bool allowed : {true, false}) {
    qt::simd::squares_allowed = allowed;
    compare<arch>(p, data, want, by);
    INFO(p.text());
    std::vector<std::int32_t> y(want.size(), 77), last(want.size(), 77);
    const index_t pixels = s.pixels(), outputs = s.outputs, all = outputs * pixels;
    const qt::convolution_result<std::int32_t> to{y.data(), pixels, all, 1, pixels},
        to_last{last.data(), pixels, all, outputs, 1};
    qt::convolve_into(packed, x, to, by);
    qt::convolve_into(packed, x, to_last, by);
    REQUIRE(std::equal(y.begin(), y.end(), want.begin()));
    for (index_t i = 0; i < s.result_batch() * all; ++i)
      REQUIRE(*to_last.at(i / all, i % pixels, i / pixels % outputs) == y[static_cast<std::size_t>(i)]);
  }
  qt::simd::squares_allowed = true;
}

/// Sums, floats and codes side by side, with the registers and without.
template <class A>
void check_results(const problem& p) {
  const operands data(p);
  const auto want = data.expected(p);
  const qt::convolution_shape& s = data.plan.shape;
  const auto packed = qt::pack_convolution<A>(data.plan, {data.w.data(), p.w_sign, p.w_zeros});
  check::fenced<std::uint8_t> source(data.x);
  const qt::convolution_input x{source.data(), p.x_sign, p.x_zero};
  const index_t pixels = s.pixels(), outputs = s.outputs, all = outputs * pixels;
  std::vector<float> scales(static_cast<std::size_t>(outputs)), bias(static_cast<std::size_t>(outputs));
  for (std::size_t c = 0; c < scales.size(); ++c)
    scales[c] = 1e-3f * static_cast<float>(c + 1), bias[c] = static_cast<float>(c) - 20.f;
  check::fenced<std::int32_t> sums(all);
  check::fenced<float> floats(all), floats_before(all);
  check::fenced<std::int8_t> codes(all), codes_before(all);
  INFO(p.text());
  for (const bool allowed : {false, true}) {
    qt::simd::squares_allowed = allowed;
    const auto to = [&]<class T>(check::fenced<T>& y) {
      std::fill_n(y.data(), all, T(77));
      return qt::convolution_result<T>{y.data(), pixels, all, outputs, 1};
    };
    const qt::convolution_scales how{.02f, scales, bias, {}};
    qt::convolve_into(packed, x, to(sums));
    qt::convolve_into(packed, x, how, to(floats));
    qt::convolve_into<qt::scheme<qt::int8, qt::per_tensor, qt::zero_point<qt::int8>, qt::static_only>>(
        packed, x, how, .4f, -3, to(codes));
    index_t wrong = 0, others = 0;
    for (index_t i = 0; i < all; ++i) {
      wrong += sums[i] != want[static_cast<std::size_t>(i % outputs * pixels + i / outputs)];
      others += allowed && (floats[i] != floats_before[i] || codes[i] != codes_before[i]);
      floats_before[i] = floats[i], codes_before[i] = codes[i];
    }
    REQUIRE(wrong == 0);
    REQUIRE(others == 0);
  }
}

qt::packed_convolution<arch> packed_of(const problem& p) {
  const operands data(p);
  return qt::pack_convolution<arch>(data.plan, {data.w.data(), p.w_sign, p.w_zeros});
}

}  // namespace

TEST_CASE("convolves_by_squares: steps that are not too empty, and some work, where they may be used at all") {
  const bool can = qt::simd::uses_squares<arch>();
  CHECK(qt::ops::convolves_by_squares(packed_of({.inputs = 64, .outputs = 64, .sizes = {9, 9}, .taps = {3, 3}})) ==
        can);
  CHECK(qt::ops::convolves_by_squares(packed_of({.inputs = 16, .outputs = 16, .sizes = {30, 30}, .taps = {3, 3}})) ==
        can);
  CHECK(!qt::ops::convolves_by_squares(packed_of({.inputs = 4, .outputs = 64, .sizes = {30, 30}, .taps = {3, 3}})));
  CHECK(!qt::ops::convolves_by_squares(packed_of({.inputs = 16, .outputs = 16, .sizes = {5, 5}, .taps = {3, 3}})));
  CHECK(!qt::ops::convolves_by_squares(
      packed_of({.inputs = 64, .outputs = 64, .sizes = {30, 30}, .taps = {3, 3}, .how = {.groups = 64}})));
  CHECK(!qt::ops::convolves_by_squares(packed_of({.inputs = 0, .outputs = 64, .sizes = {30, 30}})));
}

TEST_CASE("convolution_squares: rows of every length, joined and one by one, fewer pixels than a square and more") {
  for (index_t width = 1; width <= 36; ++width)
    for (const index_t stride : {1, 2, 3})
      check_both_ways({.inputs = 24,
                       .outputs = 17,
                       .sizes = {3 + width % 4, width},
                       .taps = {2, 3},
                       .how = {{1 + width % 2, stride}, {}, {}, {1, 1}, {0, 2}},
                       .x_zero = 5});
}
TEST_CASE("convolution_squares: channels of every number on both sides, of a tap's own words or of a row of taps") {
  for (const index_t inputs : {1, 3, 5, 16, 20, 63, 64, 65, 130})
    for (const index_t outputs : {15, 32, 33, 64, 65, 129})
      for (const char* order : {"NHWC", "NCHW"})
        check_both_ways({.x_order = order,
                         .batch = 2,
                         .inputs = inputs,
                         .outputs = outputs,
                         .sizes = {6, 7},
                         .taps = {3, inputs < 4 ? 9 : 2},
                         .how = {{}, {}, {}, {1, 4}, {1, 5}},
                         .x_sign = is_unsigned,
                         .x_zero = 255,
                         .kind = codes::extreme});
}
TEST_CASE("convolution_squares: sources that are read where they lie, of both signs, up to their ends") {
  const std::vector<problem> in_place = {
      {.inputs = 64, .outputs = 48, .sizes = {13, 11}},
      {.batch = 3, .inputs = 36, .outputs = 65, .sizes = {7, 9}},
      {.inputs = 128, .outputs = 64, .sizes = {9, 17}, .how = {{2, 2}}},
      {.inputs = 40, .outputs = 64, .sizes = {12, 15}, .taps = {3, 3}},
      {.batch = 2, .inputs = 64, .outputs = 64, .sizes = {5, 40}, .taps = {2, 2}, .how = {{1, 3}}},
      {.inputs = 32, .outputs = 32, .sizes = {14, 12}, .taps = {3, 3}, .how = {{}, {2, 2}}},
      {.inputs = 64, .outputs = 64, .sizes = {10, 9}, .taps = {3, 2}, .how = {{}, {}, {}, {-1, -1}, {0, -1}}},
      {.batch = 2, .inputs = 128, .outputs = 128, .sizes = {8, 9}, .how = {{}, {}, {}, {}, {}, 2}},
      {.x_order = "NDHWC",
       .w_order = "OIDHW",
       .y_order = "NDHWC",
       .inputs = 64,
       .outputs = 64,
       .sizes = {3, 5, 9},
       .taps = {1, 1, 1},
       .how = {{2, 1, 1}}},
      {.inputs = 64, .outputs = 256, .sizes = {16, 17}}};
  for (problem p : in_place)
    for (const auto sign : {qt::simd::code_sign::is_signed, is_unsigned})
      for (const std::int32_t zero : {0, 3, 300}) {
        p.x_sign = sign, p.x_zero = zero;
        if constexpr (qt::simd::square_unit<arch>::exists)
          CHECK(qt::ops::squares_read_in_place(packed_of(p)) == qt::simd::uses_squares<arch>());
        check_both_ways(p);
        check_both_ways(p, qt::parallel_for(3, pool::thread_each{}));
      }
}
TEST_CASE("squares_read_in_place: neither padding nor holes, dense rows, whole quads side by side, no zero points") {
  const auto reads = [](const problem& p) { return qt::ops::squares_read_in_place(packed_of(p)); };
  const problem p{.inputs = 64, .outputs = 64, .sizes = {12, 12}, .taps = {3, 3}};
  const auto with = [&](auto change) {
    problem other = p;
    change(other);
    return reads(other);
  };
  CHECK(reads(p) == qt::simd::uses_squares<arch>());
  CHECK(!with([](problem& o) { o.how.pad_low = {0, 1}; }));
  CHECK(!with([](problem& o) { o.how.pad_high = {1, 0}; }));
  CHECK(!with([](problem& o) { o.how.input_dilations = {1, 2}; }));
  CHECK(!with([](problem& o) { o.x_order = "NCHW"; }));
  CHECK(!with([](problem& o) { o.inputs = 62; }));
  CHECK(!with([](problem& o) { o.w_zeros = {1}; }));
  CHECK(!with([](problem& o) { o.inputs = o.outputs = 128, o.how.groups = 2; }));
}
TEST_CASE("convolution_squares: so many steps that sums are given away behind them") {
  for (const index_t inputs : {128, 256, 300})
    check_both_ways({.inputs = inputs, .outputs = 64, .sizes = {9, 9}, .taps = {3, 3}, .x_zero = 1});
}
TEST_CASE("convolution_squares: zero points of weights, distant ones of the source, groups, dilations, holes") {
  for (const index_t groups : {1, 2})
    for (const index_t dilation : {1, 2})
      for (const std::int32_t zero : {-3, 300})
        check_both_ways({.inputs = 40 * groups,
                         .outputs = 40 * groups,
                         .sizes = {9, 10},
                         .taps = {3, 3},
                         .how = {{1, 2}, {2, dilation}, {1, 3 - dilation}, {1, 1}, {1, 1}, groups},
                         .w_sign = is_unsigned,
                         .x_zero = zero,
                         .w_zeros = {131}});
}
TEST_CASE("convolution_squares: bands of any height, threads change nothing") {
  const problem p{.inputs = 64, .outputs = 70, .sizes = {61, 50}, .taps = {3, 3}, .how = {{}, {}, {}, {1, 1}, {1, 1}}};
  check_both_ways(p);
  for (const index_t threads : {2, 3, 16}) check_both_ways(p, qt::parallel_for(threads, pool::thread_each{}));
}
template <class A>
void check_whole_panels() {
  if constexpr (qt::simd::square_unit<A>::exists) {
    // Many pixels and few steps, few pixels, many steps, few steps; rows of more than a square and less, joined or not.
    for (const index_t inputs : {64, 24, 192, 8})
      for (const std::vector<index_t>& sizes : {std::vector<index_t>{23, 25}, {9, 11}, {45, 13}})
        check_results<A>({.inputs = inputs,
                          .outputs = inputs == 24 ? 128 : 64,
                          .sizes = sizes,
                          .taps = {3, inputs < 16 ? 2 : 3},
                          .how = {{}, {}, {}, {1, 1}, {1, 1}},
                          .x_zero = 3});
    check_results<A>({.inputs = 64, .outputs = 64, .sizes = {30, 61}, .taps = {2, 2}, .how = {{1, 2}}, .x_zero = 200});
    check_results<A>(
        {.inputs = 128, .outputs = 128, .sizes = {30, 30}, .taps = {2, 2}, .how = {{}, {}, {}, {}, {}, 2}});
    check_results<A>({.inputs = 64, .outputs = 64, .sizes = {24, 24}, .taps = {3, 3}, .w_zeros = {5}});
  }
}
TEST_CASE("convolution_squares: whole panels of sums, floats and codes, their halves apart and side by side") {
  check_whole_panels<arch>();
}
TEST_CASE("square_panels: halves lie apart where they stay in the first cache and pixels are worth a copy") {
  if constexpr (qt::simd::square_unit<arch>::exists) {
    const auto columns = [](const problem& p, bool wanted) {
      return qt::ops::square_panels<arch>(packed_of(p), wanted).columns();
    };
    constexpr index_t width = qt::simd::int_tile<arch>::panel, half = qt::ops::square_channels;
    const problem fits{.inputs = 64, .outputs = 64, .sizes = {30, 30}, .taps = {3, 3}};
    CHECK(columns(fits, true) == half);
    CHECK(columns(fits, false) == width);
    CHECK(columns({.inputs = 64, .outputs = 64, .sizes = {20, 20}, .taps = {3, 3}}, true) == width);
    CHECK(columns({.inputs = 256, .outputs = 64, .sizes = {30, 30}, .taps = {3, 3}}, true) == width);
    CHECK(columns({.inputs = 64, .outputs = 64, .sizes = {30, 30}, .taps = {1, 1}}, true) == width);
  }
}
TEST_CASE("place_runs: places, what they cost, and the pixels among them") {
  const qt::ops::place_runs joined{5, 7, 9, 900}, apart{5, 7, 0, 900}, dense{5, 7, 7, 900};
  CHECK(joined.count() == 1);
  CHECK(joined.places() == 4 * 9 + 7);
  CHECK(apart.count() == 5);
  CHECK(apart.places() == 7);
  CHECK(joined.cost() == 3 * 5 + 2);
  CHECK(apart.cost() == 5 * (5 + 2));
  const auto pixels = [](const qt::ops::place_runs& runs, index_t run, index_t place, index_t count) {
    std::vector<std::array<index_t, 3>> all;
    runs.for_each(run, place, count, [&](const qt::ops::pixel_run& r) { all.push_back({r.pixel, r.place, r.count}); });
    return all;
  };
  using list = std::vector<std::array<index_t, 3>>;
  CHECK(pixels(joined, 0, 0, 32) == list{{0, 0, 7}, {7, 9, 7}, {14, 18, 7}, {21, 27, 5}});
  CHECK(pixels(joined, 0, 7, 2).empty());
  CHECK(pixels(joined, 0, 32, 11) == list{{26, 0, 2}, {28, 4, 7}});
  CHECK(pixels(apart, 3, 0, 7) == list{{21, 0, 7}});
  CHECK(pixels(dense, 0, 3, 32) == list{{3, 0, 32}});
}
