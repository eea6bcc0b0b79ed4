// Mirrors include/qtensor/ops/convolution_squares.hpp: matrix registers give the sums that vectors give.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/ops/convolution_sinks.hpp>
#include <qtensor/ops/convolution_squares.hpp>

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
  for (const bool allowed : {true, false}) {
    qt::simd::squares_allowed = allowed;
    compare<arch>(p, data, want, by);
    INFO(p.text());
    std::vector<std::int32_t> y(want.size(), 77), last(want.size(), 77);
    const index_t pixels = s.pixels(), outputs = s.outputs, all = outputs * pixels;
    const qt::convolution_result<std::int32_t> to{y.data(), pixels, all, 1, pixels},
        to_last{last.data(), pixels, all, outputs, 1};
    qt::convolve_into(packed, {data.x.data(), p.x_sign, p.x_zero}, to, by);
    qt::convolve_into(packed, {data.x.data(), p.x_sign, p.x_zero}, to_last, by);
    REQUIRE(std::equal(y.begin(), y.end(), want.begin()));
    for (index_t i = 0; i < s.result_batch() * all; ++i)
      REQUIRE(*to_last.at(i / all, i % pixels, i / pixels % outputs) == y[static_cast<std::size_t>(i)]);
  }
  qt::simd::squares_allowed = true;
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
TEST_CASE("place_runs: places and runs of both kinds") {
  const qt::ops::place_runs joined{5, 7, 9, 900}, apart{5, 7, 0, 900};
  CHECK(joined.count() == 1);
  CHECK(joined.places() == 4 * 9 + 7);
  CHECK(apart.count() == 5);
  CHECK(apart.places() == 7);
}
