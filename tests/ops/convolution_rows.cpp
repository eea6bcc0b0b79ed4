// Mirrors include/qtensor/ops/convolution_rows.hpp: units of bands, and what their windows come to.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/ops/convolution_rows.hpp>

#include "convolution_check.hpp"

using namespace convolution_check;

namespace {

constexpr auto is_signed = qt::simd::code_sign::is_signed, is_unsigned = qt::simd::code_sign::is_unsigned;

}  // namespace

TEST_CASE("unit_rows_of: sums of windows where weights have zero points: places of any size, windows of any width") {
  for (const index_t inputs : {1, 2, 3, 4, 5, 8, 17, 35})
    for (const index_t width : {1, 2, 3, 7, 15, 16, 17, 33, 40, 70})
      for (const index_t taps : {1, 2, 3, 9, 34})
        for (const index_t high : {1, 3})
          for (const index_t stride : {1, 3})
            check_sums(
                {.x_order = width % 3 ? "NHWC" : "NCHW",
                 .inputs = inputs,
                 .outputs = 3,
                 .sizes = {4, width},
                 .taps = {high, taps},
                 .how = {{high, stride}, {1, taps < 9 ? 2 : 1}, {}, {0, taps / 2}, {0, taps - taps / 2 + width % 5}},
                 .x_sign = width % 2 ? qt::simd::code_sign::is_signed : qt::simd::code_sign::is_unsigned,
                 .x_zero = width % 2 ? -7 : 250,
                 .w_zeros = {-200}});
}

TEST_CASE("convolution: groups of whole quads of channels, rows of which are filled for several at once") {
  int turn = 0;
  for (const index_t inputs : {4, 8, 12, 16, 20, 24, 64, 68})
    for (const index_t groups : {2, 3, 5, 9, 17})
      for (const index_t outputs : {1, 16, 21}) {
        const index_t dilation = 1 + ++turn % 2, stride = 1 + turn % 3 / 2;
        check_sums({.x_order = turn % 3 == 0 ? "NCHW" : "NHWC",
                    .batch = 1 + turn % 2,
                    .inputs = inputs * groups,
                    .outputs = outputs * groups,
                    .sizes = {4, 5 + turn % 4},
                    .taps = {2, 1 + turn % 3},
                    .how = {{1, stride}, {1, dilation}, {1, 1 + turn % 7 / 6}, {1, 1}, {0, 4}, groups},
                    .x_sign = turn % 5 < 2 ? is_signed : is_unsigned,
                    .x_zero = turn % 11,
                    .w_zeros = {turn % 4 == 0 ? 7 : 0}});
      }
}

TEST_CASE("convolution: sources that are units where they lie, of either sign, met by no padding, or nearly so") {
  int turn = 0;
  for (const auto sign : {is_signed, is_unsigned})
    for (const index_t inputs : {4, 8, 12, 68})
      for (const index_t groups : {1, 3})
        for (const index_t taps : {1, 2, 3})
          for (const index_t low : {-1, 0, 1})
            check_sums({.x_order = ++turn % 5 == 0 ? "HNWC" : "NHWC",
                        .batch = 2,
                        .inputs = inputs * groups,
                        .outputs = (1 + turn % 70) * groups,
                        .sizes = {9, 7 + turn % 9},
                        .taps = {1 + turn % 3, taps},
                        .how = {{1 + turn % 2, 1 + turn % 3}, {1, 1 + turn % 2}, {}, {low, low}, {-1, 0}, groups},
                        .x_sign = sign,
                        .x_zero = turn % 11});
}

TEST_CASE("convolution: few outputs, taps side by side in threes, rows of any number of pixels") {
  int turn = 0;
  for (const index_t taps : {3, 6, 9})
    for (const index_t inputs : {3, 4, 9, 16})
      for (const index_t wide : {1, 2, 13, 14, 15, 29, 43})
        check_sums({.x_order = ++turn % 3 == 0 ? "NCHW" : "NHWC",
                    .inputs = inputs,
                    .outputs = 1 + turn % 16,
                    .sizes = {3, wide},
                    .taps = {1 + turn % 3, taps},
                    .how = {{1 + turn % 2, 1}, {}, {}, {1, taps / 2}, {1, taps - taps / 2 - 1}},
                    .x_zero = turn % 11,
                    .w_zeros = {turn % 4 == 0 ? 7 : 0}});
}
