// Mirrors include/qtensor/ops/convolution_lanes.hpp: depthwise convolutions, by their sums.
// SPDX-License-Identifier: BSD-3-Clause
#include "convolution_check.hpp"

using namespace convolution_check;

namespace {

constexpr auto is_signed = qt::simd::code_sign::is_signed, is_unsigned = qt::simd::code_sign::is_unsigned;

}  // namespace

TEST_CASE("convolution: depthwise sums beyond 2^24") {
  check_sums({.inputs = 5,
              .outputs = 5,
              .sizes = {20, 20},
              .taps = {17, 17},
              .how = {.groups = 5},
              .x_zero = -128,
              .w_zeros = {127},
              .kind = codes::extreme});
}

TEST_CASE("convolution: outputs on lanes of their own, by taps and by input channels, zero points of weights") {
  int turn = 0;
  for (const index_t taps : {1, 2, 3, 4, 5, 8, 9})
    for (const index_t stride : {1, 2, 3, 4})
      for (const index_t dilation : {1, 2, 3})
        for (const auto& [inputs, outputs] :
             {std::pair<index_t, index_t>{1, 1}, {1, 3}, {2, 2}, {3, 1}, {4, 4}, {9, 1}}) {
          const index_t groups = ++turn % 3 == 0 ? 70 : 5;
          check_sums(
              {.x_order = turn % 2 == 0 ? "NHWC" : "NCHW",
               .inputs = inputs * groups,
               .outputs = outputs * groups,
               .sizes = {3, 7 + turn % 30},
               .taps = {1 + turn % 3, taps},
               .how = {{1, stride}, {1, dilation}, {}, {1, 2}, {1, dilation * taps}, groups},
               .x_sign = turn % 4 < 2 ? is_signed : is_unsigned,
               .w_sign = turn % 5 < 2 ? is_signed : is_unsigned,
               .x_zero = turn % 7,
               .w_zeros = turn % 3 == 1 ? std::vector<std::int32_t>{} : std::vector<std::int32_t>{40 * (turn % 9)}});
        }
}

TEST_CASE("convolution: rows of many channels, each on a lane of its own, that meet padding or not") {
  int turn = 0;
  for (const index_t width : {1, 2, 3, 5, 8, 13, 20})
    for (const index_t taps : {1, 2, 3, 5})
      for (const index_t stride : {1, 2, 3})
        for (const auto& [low, high] : {std::pair<index_t, index_t>{0, 0}, {1, 1}, {2, 0}, {0, 3}, {-1, 4}}) {
          const index_t dilation = 1 + ++turn % 2, groups = turn % 3 == 0 ? 80 : 16;
          check_sums({.batch = 1 + turn % 2,
                      .inputs = groups,
                      .outputs = groups,
                      .sizes = {3, width},
                      .taps = {1 + turn % 3, taps},
                      .how = {{1, stride}, {1, dilation}, {}, {1, low}, {0, high + dilation * (taps - 1)}, groups},
                      .x_sign = turn % 5 < 2 ? is_signed : is_unsigned,
                      .x_zero = turn % 11});
        }
}
