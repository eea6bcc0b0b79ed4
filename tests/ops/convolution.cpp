// Mirrors include/qtensor/ops/convolution.hpp: every geometry, form and architecture gives the sums of the definition.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/ops/convolution.hpp>

#include "convolution_check.hpp"
#include "threads.hpp"

using namespace convolution_check;

namespace {

constexpr auto is_signed = qt::simd::code_sign::is_signed, is_unsigned = qt::simd::code_sign::is_unsigned;

}  // namespace

TEST_CASE("convolution: every small axis of taps, strides, dilations and paddings") {
  for (index_t in = 0; in <= 5; ++in)
    for (index_t taps = 1; taps <= 3; ++taps)
      for (index_t stride = 1; stride <= 3; ++stride)
        for (index_t dilation = 1; dilation <= 2; ++dilation)
          for (index_t hole = 1; hole <= 2; ++hole)
            for (index_t low = -1; low <= 2; ++low)
              for (index_t high = -1; high <= 1; ++high)
                check_sums({.x_order = "NCW",
                            .w_order = "OIW",
                            .inputs = 1 + in % 2 * 4,
                            .outputs = 3,
                            .sizes = {in},
                            .taps = {taps},
                            .how = {{stride}, {dilation}, {hole}, {low}, {high}},
                            .x_zero = 5,
                            .w_zeros = {-3}});
}

TEST_CASE("convolution: two axes that differ in everything") {
  for (index_t pick = 0; pick < 256; ++pick) {
    const auto bit = [&](int i) { return pick >> i & 1; };
    problem p{.x_order = bit(0) ? "NHWC" : "NCHW", .w_order = bit(1) ? "OIHW" : bit(2) ? "HWIO" : "OHWI"};
    p.batch = 2, p.inputs = bit(3) ? 9 : 4, p.outputs = bit(4) ? 70 : 2;
    p.sizes = {7, 6}, p.taps = {3, 2};
    p.how = {{1 + bit(5), 2 - bit(5)}, {1 + bit(6), 1 + bit(7)}, {}, {1, 0}, {0, 2}};
    p.x_sign = bit(3) ? is_unsigned : is_signed;
    p.x_zero = p.x_sign == is_unsigned ? 130 : -9;
    check_sums(p);
  }
}

TEST_CASE("convolution: channels of every number, few and many outputs") {
  for (index_t inputs = 1; inputs <= 18; ++inputs)
    for (const index_t outputs : {1, 15, 65})
      for (const char* order : {"NHWC", "NCHW"})
        check_sums({.x_order = order,
                    .inputs = inputs,
                    .outputs = outputs,
                    .sizes = {3, 9},
                    .taps = {2, 3},
                    .how = {{}, {}, {}, {0, 1}, {1, 1}},
                    .x_sign = is_unsigned,
                    .x_zero = 255,
                    .w_zeros = {7}});
}

TEST_CASE("convolution: groups, depthwise with multipliers, grouped weight layouts") {
  for (const index_t groups : {2, 3, 17, 70})
    for (const index_t inputs : {1, 2, 4})
      for (const index_t outputs : {1, 2, 5})
        for (const char* order : {"OIHW", "GOIHW", "HWIO"})
          check_sums({.w_order = order,
                      .batch = 2,
                      .inputs = inputs * groups,
                      .outputs = outputs * groups,
                      .sizes = {4, 5},
                      .taps = {3, 3},
                      .how = {{2, 1}, {}, {}, {1, 1}, {1, 1}, groups},
                      .w_sign = is_unsigned,
                      .x_zero = -128,
                      .w_zeros = {100}});
}

TEST_CASE("convolution: batch groups") {
  for (const index_t groups : {2, 3})
    check_sums({.batch = 6,
                .inputs = 4,
                .outputs = 6,
                .sizes = {4, 3},
                .taps = {2, 2},
                .how = {.batch_groups = groups},
                .x_zero = 1});
}

TEST_CASE("convolution: three axes") {
  for (const char* order : {"NDHWC", "NCDHW"})
    check_sums({.x_order = order,
                .w_order = "OIDHW",
                .batch = 2,
                .inputs = 5,
                .outputs = 7,
                .sizes = {4, 5, 6},
                .taps = {2, 3, 2},
                .how = {{1, 2, 1}, {2, 1, 3}, {1, 1, 2}, {1, 1, 0}, {0, 1, 2}},
                .x_zero = 3,
                .w_zeros = {-1}});
}

TEST_CASE("convolution: work enough for products of sums, a few input channels, many, in groups") {
  for (const index_t groups : {1, 2})
    for (const index_t inputs : {2, 7, 30})
      for (const std::int32_t w_zero : {0, 9})
        for (const index_t dilation : {1, 2})
          check_sums({.batch = 2,
                      .inputs = inputs * groups,
                      .outputs = 46 * groups,
                      .sizes = {9, 13},
                      .taps = {5, 9},
                      .how = {{2, 1}, {1, dilation}, {}, {2, 7}, {1, 6}, groups},
                      .x_sign = is_unsigned,
                      .x_zero = 255,
                      .w_zeros = {w_zero},
                      .kind = inputs == 7 ? codes::extreme : codes::any});
}

TEST_CASE("convolution: extreme codes, zero points on both sides at both ends") {
  for (const auto x_sign : {is_signed, is_unsigned})
    for (const auto w_sign : {is_signed, is_unsigned})
      for (const int end : {0, 127, 255})
        for (const int w_end : {0, 128, 255})
          for (const index_t groups : {1, 12}) {
            const std::int32_t x_zero = x_sign == is_signed ? end - 128 : end;
            const std::int32_t w_zero = w_sign == is_signed ? w_end - 128 : w_end;
            check_sums({.inputs = 12,
                        .outputs = 24,
                        .sizes = {5, 5},
                        .taps = {3, 3},
                        .how = {{}, {}, {}, {2, 2}, {2, 2}, groups},
                        .x_sign = x_sign,
                        .w_sign = w_sign,
                        .x_zero = x_zero,
                        .w_zeros = {w_zero},
                        .kind = codes::extreme});
          }
}

TEST_CASE("convolution: a zero point for every output") {
  problem p{.inputs = 6, .outputs = 67, .sizes = {3, 4}, .taps = {2, 2}, .x_zero = -7};
  for (index_t o = 0; o < p.outputs; ++o) p.w_zeros.push_back(static_cast<std::int32_t>(o * 3 - 100));
  check_sums(p);
  p.how.groups = 2, p.outputs = 134;
  for (index_t o = 0; o < 67; ++o) p.w_zeros.push_back(static_cast<std::int32_t>(90 - o));
  check_sums(p);
}

TEST_CASE("convolution: nothing to sum, nothing to compute") {
  check_sums({.inputs = 0, .outputs = 3, .sizes = {2, 2}});
  check_sums({.inputs = 3, .outputs = 0, .sizes = {2, 2}});
  check_sums({.batch = 0, .inputs = 3, .outputs = 3, .sizes = {2, 2}});
  check_sums({.inputs = 3, .outputs = 3, .sizes = {2, 2}, .taps = {3, 3}});
  for (const std::vector<index_t>& taps : {std::vector<index_t>{0, 2}, {2, 0}, {0, 0}})
    for (const index_t groups : {1, 3}) {
      check_sums({.inputs = 3, .outputs = 6, .sizes = {2, 3}, .taps = taps, .how = {.groups = groups}});
      check_sums(
          {.inputs = 3, .outputs = 6, .sizes = {1, 1}, .taps = taps, .how = {.groups = groups}, .w_zeros = {300}});
    }
}

TEST_CASE("convolution: taps that read nothing but padding take no rows, however far they are") {
  constexpr index_t far = index_t{1} << 39;
  for (const index_t inputs : {1, 3, 8, 16})
    for (const index_t groups : {index_t{1}, inputs})
      for (const std::int32_t x_zero : {0, 900})
        for (const std::vector<std::int32_t>& w_zeros : {std::vector<std::int32_t>{}, {5}}) {
          const auto run = [&](const std::vector<index_t>& sizes, const std::vector<index_t>& taps,
                               const qt::convolution_options& how) {
            check_sums({.inputs = inputs,
                        .outputs = 2 * inputs,
                        .sizes = sizes,
                        .taps = taps,
                        .how = how,
                        .x_zero = x_zero,
                        .w_zeros = w_zeros});
          };
          run({3, 4}, {3, 3}, {{}, {far, far}, {}, {far, far}, {far, far}, groups});
          run({3, 4}, {2, 3}, {{}, {1, far}, {}, {0, far - 1}, {0, far + 1}, groups});
          run({3, 4}, {2, 3}, {{2, 1}, {far, 1}, {}, {0, 1}, {far, 1}, groups});
          run({1, 1}, {5, 3}, {{}, {}, {}, {2, 1}, {2, 1}, groups});
          run({2, 2}, {2, 2}, {{}, {}, {}, {5, -2}, {0, 3}, groups});
        }
}

TEST_CASE("convolution: strides beyond the last place, of any length, are those to it") {
  constexpr index_t most = std::numeric_limits<index_t>::max();
  for (const index_t groups : {1, 4})
    for (const index_t stride : {index_t{3}, index_t{1} << 40, most}) {
      check_sums({.inputs = 4,
                  .outputs = 4,
                  .sizes = {3, 3},
                  .taps = {2, 2},
                  .how = {{stride, stride}, {}, {}, {}, {}, groups}});
      check_sums({.inputs = 4,
                  .outputs = 4,
                  .sizes = {3, 3},
                  .taps = {3, 1},
                  .how = {{stride, 2}, {}, {}, {1, 0}, {0, 0}, groups}});
    }
}

TEST_CASE("convolution: a padded source of more places than an index counts is refused before it takes memory") {
  constexpr index_t far = index_t{1} << 59;
  const std::vector<std::uint8_t> w(64, 1);
  for (const index_t groups : {1, 32}) {
    const auto plan = qt::plan_convolution({"NWC", {1, 1, 32}}, {"OIW", {groups, 32 / groups, 1}},
                                           {.strides = {far}, .pad_low = {far}, .pad_high = {far}, .groups = groups});
    CHECK(plan.shape.pixels() == 3);
    CHECK_THROWS_WITH_AS(qt::pack_convolution(plan, {w.data()}), doctest::Contains("does not fit 63 bits"), qt::error);
  }
}

TEST_CASE("convolution: threads change nothing") {
  const problem p{.batch = 3,
                  .inputs = 19,
                  .outputs = 70,
                  .sizes = {40, 31},
                  .taps = {3, 3},
                  .how = {{}, {}, {}, {1, 1}, {1, 1}},
                  .x_zero = 4,
                  .w_zeros = {-2}};
  const problem depthwise{.batch = 1,
                          .inputs = 70,
                          .outputs = 70,
                          .sizes = {61, 37},
                          .taps = {3, 3},
                          .how = {{2, 1}, {}, {}, {1, 1}, {1, 1}, 70},
                          .x_zero = 4};
  for (const problem& each : {p, depthwise}) {
    const operands data(each);
    const auto want = data.expected(each);
    for (const index_t threads : {2, 3, 16})
      compare<qt::simd::best_arch>(each, data, want, qt::parallel_for(threads, pool::thread_each{}));
  }
}

TEST_CASE("convolution: zero points of the source that are no codes, near and far, padding stays exact") {
  for (const std::int32_t zero : {-129, 128, 256, -1000, 70000})
    for (const auto x_sign : {is_signed, is_unsigned})
      for (const index_t inputs : {1, 3, 12})  // rows of taps, pixels
        for (const index_t groups : {1, 4})    // and lanes
          for (const bool holes : {false, true}) {
            problem p{.x_order = holes ? "NCHW" : "NHWC",
                      .batch = 2,
                      .inputs = inputs * groups,
                      .outputs = 5 * groups,
                      .sizes = {5, 4},
                      .taps = {3, 2},
                      .how = {{2, 1}, {1, 2}, {}, {2, 1}, {1, 3}, groups},
                      .x_sign = x_sign,
                      .x_zero = zero,
                      .w_zeros = {-3},
                      .kind = codes::extreme};
            if (holes) p.how.input_dilations = {2, 3}, p.how.pad_low = {-1, 2}, p.w_zeros = {};
            check_sums(p);
          }
  check_sums({.x_order = "NCW",
              .w_order = "OIW",
              .batch = 4,
              .inputs = 3,
              .outputs = 6,
              .sizes = {4},
              .taps = {3},
              .how = {.pad_low = {2}, .batch_groups = 2},
              .x_zero = 128});
  check_sums({.x_order = "NCDHW",
              .w_order = "OIDHW",
              .inputs = 5,
              .outputs = 20,
              .sizes = {3, 4, 5},
              .taps = {2, 3, 2},
              .how = {{1, 2, 1}, {}, {}, {1, 1, 0}, {0, 1, 2}},
              .x_zero = 300,
              .w_zeros = {-500}});
  // Few pixels at a border of any width, in many tiles, panels and rows at once.
  for (const index_t outputs : {1, 15, 33, 70})
    for (const index_t groups : {1, 3})
      for (index_t width = 1; width <= 40; width += 1 + width / 8)
        for (const index_t low : {-2, 0, 1, 3})
          check_sums({.inputs = 3 * groups,
                      .outputs = outputs * groups,
                      .sizes = {7, width},
                      .taps = {3, 4},
                      .how = {{1 + width % 2, 1 + width % 3}, {}, {}, {1, low}, {width % 3, 3}, groups},
                      .x_sign = width % 2 ? is_signed : is_unsigned,
                      .x_zero = width % 4 < 2 ? 300 : -300,
                      .w_zeros = {width % 5 < 2 ? 9 : 0}});
}

TEST_CASE("convolution: zero points of weights that are no codes") {
  for (const index_t groups : {1, 8})
    for (const std::int32_t zero : {-129, 128, 2000, -70000}) {
      problem p{.inputs = 2 * groups, .outputs = 3 * groups, .sizes = {4, 5}, .taps = {3, 3}};
      p.how = {{}, {}, {}, {1, 1}, {1, 1}, groups};
      p.x_sign = is_unsigned, p.x_zero = 3, p.w_zeros = {zero};
      check_sums(p);
      p.w_zeros.assign(static_cast<std::size_t>(p.outputs), 5);
      p.w_zeros[1] = zero;
      check_sums(p);
    }
}

TEST_CASE("convolution: a source whose zero point is too far is refused, with nothing computed; the last is exact") {
  // One weight of -128: 128 * (255 + distance) is below 2^31 up to the distance 2^24 - 256.
  const problem p{.x_order = "NWC", .w_order = "OIW", .sizes = {1}, .taps = {1}};
  operands data(p);
  data.w = {0x80}, data.x = {0x80};
  const auto packed = qt::pack_convolution(data.plan, {data.w.data()});
  CHECK(packed.reach() == 128);
  constexpr std::int32_t last = 127 + (1 << 24) - 256;
  index_t tiles = 0;
  const auto sink = [&](const qt::convolution_tile& t) {
    ++tiles;
    CHECK(t.sums[0] == (-128 - std::int64_t{last}) * -128);
  };
  qt::convolve(packed, {data.x.data(), is_signed, last}, sink);
  CHECK(tiles == 1);
  CHECK_THROWS_WITH_AS(qt::convolve(packed, {data.x.data(), is_signed, last + 1}, sink),
                       doctest::Contains("up to 16777216 from its codes, and weights come to 128"), qt::error);
  CHECK_THROWS_AS(qt::convolve(packed, {data.x.data(), is_signed, INT32_MIN}, sink), qt::error);
  CHECK(tiles == 1);
}
