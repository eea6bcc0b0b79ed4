// Mirrors include/qtensor/ops/float_rows.hpp: the terms of every pixel, in both forms.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/ops/float_rows.hpp>

#include "convolution_check.hpp"

using namespace convolution_check;
using form = qt::ops::convolution_form;

namespace {

/// The numbers of a problem, one by one.
struct numbers_of {
  const problem& p;
  const operands& data;
  void read(index_t batch, index_t first, index_t n, const position& at, index_t places, float* to,
            index_t step) const {
    for (index_t place = 0; place < places; ++place)
      for (index_t c = 0; c < n; ++c)
        to[place * step + c] = static_cast<float>(data.x_number(p, batch, first + c, {at[0], at[1], at[2] + place}));
  }
};

}  // namespace

TEST_CASE("float_rows_of: blocks of rows and parts of rows; lanes have the channels of their groups") {
  using A = qt::simd::best_arch;
  for (index_t pick = 0; pick < 48; ++pick) {
    problem p{.x_order = pick % 2 ? "NHWC" : "NCHW", .batch = 2, .x_zero = -3};
    const index_t groups = pick % 3 == 0 ? 70 : pick % 3, outputs = 1 + pick % 4;
    p.inputs = groups * (1 + pick % 5 / 3), p.outputs = groups * outputs;
    p.sizes = {3, 5, 9}, p.taps = {1 + pick % 2, 2, 1 + pick % 3}, p.x_order.insert(p.x_order.find('H'), "D");
    p.w_order = "OIDHW";
    p.how = {{1, 1 + pick % 2, 1 + pick / 2 % 2},
             {1, 2, 1 + pick / 4 % 2},
             {1, 1, 1 + pick / 8 % 3},
             {0, 1, 2 - pick % 5},
             {1, 1, 1 + pick % 4},
             groups};
    const operands data(p);
    const qt::convolution_shape& s = data.plan.shape;
    const numbers_of numbers{p, data};
    for (const form f : {form::pixels, form::channels}) {
      const index_t lanes = f == form::pixels ? s.group_outputs() : qt::simd::channel_panel<A>;
      const index_t rows = pick % 2 ? 2 : 1, cols = rows == 2 ? s.axes[2].out() : 3;
      qt::ops::float_rows_of<A, numbers_of> band(s, numbers, f, rows, cols);
      std::vector<float> terms(static_cast<std::size_t>(rows * cols * s.depth()));
      for (index_t d = 0; d < s.axes[0].out(); ++d)
        for (index_t row = 0; row < s.axes[1].out(); row += rows)
          for (index_t col = 0; col < s.axes[2].out(); col += cols)
            for (index_t part = 0; part * lanes < s.outputs; ++part) {
              const qt::ops::output_block block{d, row, std::min(rows, s.axes[1].out() - row), col,
                                                std::min(cols, s.axes[2].out() - col)};
              band.fill(1, part, block);
              if (f == form::pixels) band.gather(0, block.pixels(), terms.data());
              for (index_t pixel = 0; pixel < block.pixels(); ++pixel)
                for (index_t o = part * lanes; o < std::min(s.outputs, (part + 1) * lanes); ++o) {
                  const position at{d, row + pixel / block.cols, col + pixel % block.cols};
                  index_t k = 0;
                  qt::reference::for_each_term(
                      s, 1, o, at, [&](bool inside, index_t n, index_t c, const auto& from, index_t, const auto&) {
                        const float want = inside ? static_cast<float>(data.x_number(p, n, c, from)) : 0.f;
                        const float got = f == form::pixels ? terms[static_cast<std::size_t>(pixel * s.depth() + k)]
                                                            : band.pixels()[pixel][band.offsets()[k] + o % lanes];
                        INFO(p.text(), " form ", static_cast<int>(f), " output ", o, " term ", k);
                        REQUIRE(got == want);
                        ++k;
                      });
                }
            }
    }
  }
}
