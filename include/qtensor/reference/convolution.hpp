// Convolution by definition: its geometry, and every output as a sum over taps and input channels.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <qtensor/core/support.hpp>

namespace qtensor {

/// One spatial axis of a convolution: taps slide over the padded input. Padding counts dilated elements and may be
/// negative, which takes elements away (NUMERICS 7.3).
struct convolution_axis {
  index_t in = 1, taps = 1, stride = 1;
  index_t tap_dilation = 1;    ///< 2: taps meet every second element
  index_t input_dilation = 1;  ///< 2: a hole between neighbours of the input
  index_t pad_low = 0, pad_high = 0;

  /// Whether all places on the padded and dilated axis are numbers that an index holds, and may be added to others.
  constexpr bool fits() const {
    constexpr index_t most = index_t{1} << 60;
    index_t input = 0, window = 0;
    return !__builtin_mul_overflow(in, input_dilation, &input) &&
           !__builtin_mul_overflow(taps, tap_dilation, &window) && input <= most && window <= most &&
           pad_low >= -most && pad_low <= most && pad_high >= -most && pad_high <= most;
  }
  /// Padded elements from the first tap to the last.
  constexpr index_t reach() const { return taps == 0 ? 0 : (taps - 1) * tap_dilation + 1; }
  constexpr index_t padded() const { return pad_low + (in == 0 ? 0 : (in - 1) * input_dilation + 1) + pad_high; }
  constexpr index_t out() const { return padded() <= 0 || reach() > padded() ? 0 : (padded() - reach()) / stride + 1; }
  /// Element `place` of the padded and dilated axis, counted from the first of the padding, as one of the input; -1 for
  /// padding and holes.
  constexpr index_t source(index_t place) const {
    const index_t at = place - pad_low;
    if (input_dilation == 1) return at < 0 || at >= in ? -1 : at;  // what is asked often is told without a division
    return at < 0 || at % input_dilation != 0 || at / input_dilation >= in ? -1 : at / input_dilation;
  }
  /// What tap t of output o reads, so.
  constexpr index_t source(index_t o, index_t t) const { return source(o * stride + t * tap_dilation); }

  /// Whether all taps of output o meet the input; not where there are holes, which few outputs miss.
  constexpr bool is_whole(index_t o) const {
    return input_dilation == 1 && source(o, 0) >= 0 && source(o, taps - 1) >= 0;
  }
  /// The same of all outputs.
  constexpr bool is_whole() const { return is_whole(0) && is_whole(out() - 1); }

  struct tap_range {
    index_t first, end;
  };
  /// The taps that lie between the ends of the input under some output; under all of them the others read padding.
  constexpr tap_range taps_inside() const {
    const index_t last = (out() - 1) * stride;  // where the last output's first tap lies
    const index_t behind = in == 0 ? 0 : std::max(index_t{0}, pad_low + (in - 1) * input_dilation + 1);
    const index_t end = std::min(taps, divide_up(behind, tap_dilation));
    const index_t first = divide_up(std::max(index_t{0}, pad_low - last), tap_dilation);
    return {std::min(first, end), end};
  }
};

/// The geometry of a convolution of up to three spatial axes (depth, height, width; absent ones have one element and
/// one tap). With groups, output o reads the input channels of its group only; with batch groups, the batches of its
/// group only, and the result has batch / batch_groups of them.
struct convolution_shape {
  using position = std::array<index_t, 3>;

  index_t batch = 1, inputs = 1, outputs = 1;
  index_t groups = 1, batch_groups = 1;
  std::array<convolution_axis, 3> axes{};

  constexpr index_t result_batch() const { return batch / batch_groups; }
  /// Input channels and outputs of one group.
  constexpr index_t group_inputs() const { return inputs / groups; }
  constexpr index_t group_outputs() const { return outputs / (groups * batch_groups); }
  constexpr index_t taps() const { return axes[0].taps * axes[1].taps * axes[2].taps; }
  /// Terms of a sum.
  constexpr index_t depth() const { return taps() * group_inputs(); }
  /// Outputs of one channel and batch.
  constexpr index_t pixels() const { return axes[0].out() * axes[1].out() * axes[2].out(); }
  /// Whether the result has no elements.
  constexpr bool is_empty() const { return result_batch() == 0 || outputs == 0 || pixels() == 0; }

  /// Where output channel o of result batch n reads: which input batch, and the first of its input channels.
  constexpr index_t source_batch(index_t n, index_t o) const {
    return n + o / (outputs / batch_groups) * result_batch();
  }
  constexpr index_t first_input(index_t o) const { return o / group_outputs() % groups * group_inputs(); }
  /// Where pixel p of the result is, counted through depth, height and width.
  constexpr position pixel_at(index_t p) const {
    const index_t wide = axes[2].out(), high = axes[1].out();
    return {p / wide / high, p / wide % high, p % wide};
  }
};

namespace reference {

/// What a tap of an output reads: a position of the input, or, not `inside`, padding or a hole.
struct tap_source {
  convolution_shape::position from{};
  bool inside = true;
};
constexpr tap_source source_of(const convolution_shape& s, const convolution_shape::position& at,
                               const convolution_shape::position& tap) {
  tap_source source;
  for (std::size_t a = 0; a < 3; ++a) {
    source.from[a] = s.axes[a].source(at[a], tap[a]);
    source.inside = source.inside && source.from[a] >= 0;
  }
  return source;
}

/// Calls f(position) for all positions below `sizes`, the last axis fastest.
template <class F>
constexpr void for_each_position(const convolution_shape::position& sizes, F f) {
  for (index_t d = 0; d < sizes[0]; ++d)
    for (index_t h = 0; h < sizes[1]; ++h)
      for (index_t w = 0; w < sizes[2]; ++w) f(convolution_shape::position{d, h, w});
}
constexpr convolution_shape::position taps_of(const convolution_shape& s) {
  return {s.axes[0].taps, s.axes[1].taps, s.axes[2].taps};
}

/// Calls term(inside, input batch, input channel, input position, input channel in the group, tap) for every term of an
/// output: taps ascend with the last axis fastest, and under each tap the input channels. Where a tap meets padding or
/// a hole, `inside` is false and the input position means nothing.
template <class Term>
constexpr void for_each_term(const convolution_shape& s, index_t n, index_t o, const convolution_shape::position& at,
                             Term term) {
  const index_t batch = s.source_batch(n, o), first = s.first_input(o);
  for_each_position(taps_of(s), [&](const convolution_shape::position& tap) {
    const tap_source source = source_of(s, at, tap);
    for (index_t i = 0; i < s.group_inputs(); ++i) term(source.inside, batch, first + i, source.from, i, tap);
  });
}

/// Calls f(batch, output, position) for every element of the result.
template <class F>
constexpr void for_each_output(const convolution_shape& s, F f) {
  for (index_t n = 0; n < s.result_batch(); ++n)
    for (index_t o = 0; o < s.outputs; ++o)
      for_each_position({s.axes[0].out(), s.axes[1].out(), s.axes[2].out()},
                        [&](const convolution_shape::position& at) { f(n, o, at); });
}

/// The exact integer sums of a convolution: x(batch, channel, position) and w(output, channel in the group, tap) are
/// codes less their zero points; padding and holes are 0 (NUMERICS 5.4: the source zero point). Calls
/// sink(batch, output, position, sum).
template <class X, class W, class Sink>
constexpr void convolution(const convolution_shape& s, const X& x, const W& w, Sink sink) {
  for_each_output(s, [&](index_t n, index_t o, const convolution_shape::position& at) {
    std::int64_t sum = 0;
    for_each_term(
        s, n, o, at, [&](bool inside, index_t batch, index_t channel, const auto& from, index_t i, const auto& tap) {
          if (inside)
            sum += static_cast<std::int64_t>(x(batch, channel, from)) * static_cast<std::int64_t>(w(o, i, tap));
        });
    sink(n, o, at, sum);
  });
}

/// The float product: x and w give floats, an output is the chain of fused multiply-adds from +0 over ascending taps
/// and, under each, ascending input channels. Padding and holes are factors of 0.
template <class X, class W, class Sink>
void convolution_chain(const convolution_shape& s, const X& x, const W& w, Sink sink) {
  for_each_output(s, [&](index_t n, index_t o, const convolution_shape::position& at) {
    float sum = 0.f;
    for_each_term(s, n, o, at,
                  [&](bool inside, index_t batch, index_t channel, const auto& from, index_t i, const auto& tap) {
                    sum = std::fma(inside ? x(batch, channel, from) : 0.f, w(o, i, tap), sum);
                  });
    sink(n, o, at, sum);
  });
}

}  // namespace reference

}  // namespace qtensor
