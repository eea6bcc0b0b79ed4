// The definition of an integer convolution as loops, and a random one, for the programs over vendors' entry points.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>

#include "array.hpp"

namespace fuzz {

/// Up to three spatial axes, the outer ones of a single position where there are fewer.
struct plain_convolution {
  struct axis {
    index_t in = 1, taps = 1, stride = 1, dilation = 1, low = 0, high = 0;
    index_t out() const {
      const index_t reach = taps == 0 ? 0 : (taps - 1) * dilation + 1, padded = low + in + high;
      return padded < reach || padded == 0 ? 0 : (padded - reach) / stride + 1;
    }
  };
  index_t batch = 1, groups = 1, inputs = 1, outputs = 1;  // inputs and outputs of one group
  std::array<axis, 3> axes{};
  index_t rank = 2;

  explicit plain_convolution(dice& d) {
    batch = d.chance(20) ? 0 : d.within(1, 3);
    rank = d.within(1, 3);
    groups = d.chance(2) ? 1 : d.within(1, 5);
    inputs = d.chance(3) ? d.within(1, 70) : d.within(1, 9);
    outputs = d.chance(3) ? d.within(1, 70) : d.within(1, 9);
    if (d.chance(5)) groups = d.within(1, 40), inputs = 1, outputs = d.within(1, 2);  // depthwise
    for (index_t i = 3 - rank; i < 3; ++i) {
      axis& a = axes[static_cast<std::size_t>(i)];
      a.in = d.chance(4) && rank == 1 ? d.within(1, 200) : d.within(1, 12);
      a.taps = d.chance(3) ? 1 : d.within(1, 4);
      a.stride = d.chance(2) ? 1 : d.within(1, 3);
      a.dilation = d.chance(2) ? 1 : d.within(1, 3);
      a.low = d.chance(2) ? 0 : d.within(0, 3);
      a.high = d.chance(2) ? a.low : d.within(0, 3);
    }
  }
  index_t pixels() const { return axes[0].out() * axes[1].out() * axes[2].out(); }
  index_t results() const { return batch * groups * outputs * pixels(); }
  index_t products() const { return results() * inputs * axes[0].taps * axes[1].taps * axes[2].taps; }

  using position = std::array<index_t, 3>;
  /// Calls visit(n, output, position of y, sum of x(n, channel, position) * w(output, channel of its group, tap)) for
  /// every element of y; taps beside x give nothing.
  template <class X, class W, class Visit>
  void each(X x, W w, Visit visit) const {
    for (index_t n = 0; n < batch; ++n)
      for (index_t o = 0; o < groups * outputs; ++o)
        for (index_t p = 0; p < pixels(); ++p) {
          const position y{p / axes[2].out() / axes[1].out(), p / axes[2].out() % axes[1].out(), p % axes[2].out()};
          std::int64_t sum = 0;
          for (index_t t = 0; t < axes[0].taps * axes[1].taps * axes[2].taps; ++t) {
            const position tap{t / axes[2].taps / axes[1].taps, t / axes[2].taps % axes[1].taps, t % axes[2].taps};
            position at;
            bool inside = true;
            for (std::size_t i = 0; i < 3; ++i) {
              at[i] = y[i] * axes[i].stride + tap[i] * axes[i].dilation - axes[i].low;
              inside = inside && at[i] >= 0 && at[i] < axes[i].in;
            }
            for (index_t c = 0; inside && c < inputs; ++c) sum += x(n, o / outputs * inputs + c, at) * w(o, c, tap);
          }
          visit(n, o, y, sum);
        }
  }
  std::string description() const {
    std::string out = std::to_string(batch) + " x " + std::to_string(groups) + " groups of " + std::to_string(inputs) +
                      " -> " + std::to_string(outputs);
    for (const axis& a : axes)
      out += ", in " + std::to_string(a.in) + " taps " + std::to_string(a.taps) + " stride " +
             std::to_string(a.stride) + " dilation " + std::to_string(a.dilation) + " pads " + std::to_string(a.low) +
             " " + std::to_string(a.high);
    return out;
  }
};

}  // namespace fuzz
