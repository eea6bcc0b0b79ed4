// Convolutions on matrix registers: squares of places, most of them pixels, whose sums are given away beside the next.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <qtensor/ops/convolution_pack.hpp>
#include <qtensor/simd/gemm_squares.hpp>

namespace qtensor::inline QTENSOR_ABI::ops {

/// Whether a convolution is summed by matrix registers: where vectors would take ten times as many instructions, for
/// the registers' steps may be half empty, and some thousand in all.
template <simd::usable_arch A>
bool convolves_by_squares(const packed_convolution<A>& w) {
  constexpr index_t least_gain = 10, least_dots = 2500;
  if (w.form() == convolution_form::channels || !simd::uses_squares<A>()) return false;
  const convolution_shape& s = w.shape();
  const index_t steps = w.segments() * divide_up(w.segment_quads(), simd::square_edge);
  const index_t pairs = divide_up(s.group_outputs(), 2 * simd::square_edge);
  const index_t dots = w.segments() * w.segment_quads() * divide_up(s.group_outputs(), simd::lanes<A>);
  return dots > 0 && dots >= least_gain * steps * pairs && dots * s.pixels() >= least_dots;
}

/// Whether these registers can read the source where it lies: it is dense with channels innermost, no tap meets padding
/// or holes, the terms of a segment are whole quads side by side, and nothing but products is asked of the codes.
template <simd::usable_arch A>
bool squares_read_in_place(const packed_convolution<A>& w) {
  if (!convolves_by_squares(w) || w.form() != convolution_form::pixels || w.has_zeros()) return false;
  const convolution_shape& s = w.shape();
  for (const convolution_axis& a : s.axes)
    if (!a.is_whole()) return false;
  const activation_map& m = w.plan().input;
  const auto lies_behind = [&](index_t size, index_t stride, index_t inner) { return size == 1 || stride == inner; };
  const index_t pixel = m.channels, row = m.sizes[2] * pixel, plane = m.sizes[1] * row;
  const bool is_dense = m.channel_stride == 1 && lies_behind(m.sizes[2], m.spatial[2], pixel) &&
                        lies_behind(m.sizes[1], m.spatial[1], row) && lies_behind(m.sizes[0], m.spatial[0], plane) &&
                        lies_behind(m.batch, m.batch_stride, m.sizes[0] * plane);
  const bool segments_are_dense = s.axes[2].taps == 1 || s.axes[2].tap_dilation != 1 || s.groups == 1;
  return is_dense && segments_are_dense && s.axes[0].taps == 1 && s.group_inputs() % 4 == 0;
}

/// Channels of half a panel, which are summed together.
inline constexpr index_t square_channels = 2 * simd::square_edge;

/// The codes of panels with each segment filled up to whole steps of matrix registers. Where halves stay in the first
/// cache, and are wanted, they lie apart: side by side, each would fill half of the cache's sets.
template <simd::usable_arch A>
class square_panels {
  static constexpr index_t width = simd::int_tile<A>::panel;

 public:
  square_panels() = default;
  square_panels(const packed_convolution<A>& w, bool halves_wanted)
      : weights_(&w), segment_quads_(round_up(w.segment_quads(), simd::square_edge)) {
    constexpr index_t most_bytes = 24 * 1024, least_steps = 8, least_pixels = 512;  // that are worth a copy
    const index_t quads = w.segments() * segment_quads_;
    const bool apart = halves_wanted && quads * 4 * square_channels <= most_bytes &&
                       quads >= least_steps * simd::square_edge &&
                       w.shape().result_batch() * w.shape().pixels() >= least_pixels;
    if (apart)
      copy(square_channels);
    else if (segment_quads_ != w.segment_quads())
      copy(width);
  }
  /// 0: there are no panels.
  index_t segment_quads() const { return segment_quads_; }
  /// That lie side by side: those of a panel or half of them.
  index_t columns() const { return columns_; }
  /// Of panel p, from a channel on, a multiple of columns().
  const std::int8_t* panel(index_t group, index_t p, index_t channel) const {
    if (copies_.size() == 0) return weights_->panel(group, p);
    const index_t quads = weights_->segments() * segment_quads_;
    return copies_.data() + ((group * weights_->panels() + p) * width + channel) * 4 * quads;
  }

 private:
  void copy(index_t columns) {
    columns_ = columns;
    const index_t panels = weights_->group_count() * weights_->panels(), segments = weights_->segments();
    const index_t quads = weights_->segment_quads(), all = qtensor::detail::checked_product(panels, segments);
    copies_ = line_array<std::int8_t>(qtensor::detail::checked_product(all, segment_quads_ * 4 * width));
    std::int8_t* to = copies_.data();
    for (index_t i = 0; i < panels; ++i)
      for (index_t c = 0; c < width; c += columns)
        for (index_t s = 0; s < segments; ++s, to += segment_quads_ * 4 * columns)
          for (index_t q = 0; q < quads; ++q)
            std::memcpy(to + q * 4 * columns, weights_->panel(0, i) + ((s * quads + q) * width + c) * 4,
                        static_cast<std::size_t>(4 * columns));
  }

  const packed_convolution<A>* weights_ = nullptr;
  index_t segment_quads_ = 0, columns_ = width;
  line_array<std::int8_t> copies_;
};

/// Pixels that follow each other, and where among places the first of them is.
struct pixel_run {
  index_t pixel, place, count;
};

/// Pixels of a band of output as places at one distance from each other: all rows in one run, with places between them
/// that are no pixels, or every row a run.
struct place_runs {
  index_t rows, cols;  ///< of pixels
  index_t pitch;       ///< places from one row to the next; 0: every row is a run
  index_t row_step;    ///< units from one row to the next

  index_t count() const { return pitch > 0 ? 1 : rows; }
  index_t places() const { return pitch > 0 ? (rows - 1) * pitch + cols : cols; }
  /// How long they take: a square below another 5 each, one alone 7, for it has the weights to itself.
  index_t cost() const {
    const index_t squares = divide_up(places(), simd::square_edge);
    return count() * (5 * squares + 2 * (squares % 2));
  }
  /// Calls f(pixel_run) for the pixels among places [place, place + count) of a run, counted from the first of them.
  template <class F>
  void for_each(index_t run, index_t place, index_t count, const F& f) const {
    if (pitch == 0 || pitch == cols) return f(pixel_run{run * cols + place, 0, count});
    for (index_t row = place / pitch, at = place; at < place + count; at = ++row * pitch)
      if (const index_t col = at - row * pitch; col < cols)
        f(pixel_run{row * cols + col, at - place, std::min(cols - col, place + count - at)});
  }
};

/// The squares of one panel and band, so many columns at a time, for a Sink: it gets sums while others are summed, if
/// it leaves matrix registers alone. Units: what the bytes of pixels are.
template <simd::usable_arch A, class Sink, index_t Columns, simd::code_sign Units>
class square_convolution {
  static_assert(Columns == square_channels || Columns == 2 * square_channels);
  static constexpr bool beside = simd::runs_beside<Sink>;
  // Halves of panels stay in the first cache, whole panels pass by.
  static constexpr simd::resident stays = Columns == square_channels ? simd::resident::both : simd::resident::rows;
  using shape = simd::square_shape;
  using session = typename simd::square_unit<A>::session;
  static constexpr index_t edge = simd::square_edge, most_places = 2 * edge;

 public:
  /// So many pixels are given away at once, or a multiple, where there are as many.
  explicit square_convolution(index_t fewest_pixels) : fewest_pixels_(fewest_pixels) {}

  /// All places of some runs, and the first `channels` of a panel. units(n) are those n units behind the first place's;
  /// panel(c) are its operands from channel c on, a multiple of Columns; give(c)(pixel, count, sums) gets the sums of
  /// pixels [pixel, pixel + count), at most 16, and of channels from c on, Columns apart.
  template <class UnitsAt, class Panel, class Give>
  void over(const place_runs& runs, const UnitsAt& units, index_t channels, const Panel& panel, const Give& give) {
    for (index_t c = 0; c < channels; c += Columns) {
      simd::square_taps<A> operands = panel(c);
      const index_t halves = std::min(channels - c, Columns) > square_channels ? 2 : 1;
      const index_t steps = halves * operands.taps.count * (operands.taps.quads / edge);
      const index_t share =
          std::min(round_up(divide_up(most_places, std::max(steps - 1, index_t{1})), fewest_pixels_), edge);
      for (index_t r = 0; r < runs.count(); ++r)
        for (index_t m = 0; m < runs.places(); m += most_places) {
          operands.rows.data = units(r * runs.row_step + m * operands.rows.stride);
          const index_t places = std::min(most_places, runs.places() - m);
          sum(operands, places, halves, share, give(channel_));
          channel_ = c;
          index_t n = 0;
          runs.for_each(r, m, places, [&](const pixel_run& run) { runs_[n++] = run; });
          runs_[n].count = 0;
          if constexpr (!beside) finish(give(c));
        }
    }
    if constexpr (beside) finish(give(channel_));
  }

 private:
  /// Sums go to memory beside the first step of the next places, and away in shares after the others: the CPU has room
  /// for little else beside a step.
  template <class Give>
  QTENSOR_INLINE void sum(const simd::square_taps<A>& panel, index_t places, index_t halves, index_t share,
                          const Give& give) {
    pixel_run* next = runs_;
    pixel_run now = *next;
    std::int32_t *const sums = room_[turn_], *const last = room_[turn_ ^ 1];
    const auto give_share = [&]() QTENSOR_INLINE_LAMBDA {
      if (now.count == 0) return;
      const index_t n = std::min(now.count, share);
      give(now.pixel, n, last + now.place * Columns);
      now = {now.pixel + n, now.place + n, now.count - n};
      if (now.count == 0) now = *++next;
    };
    if (places > edge) {
      for (index_t h = 0; h < halves; ++h)
        squares_.template sum<shape::two_by_two, stays, Units>(panel.from(h * square_channels),
                                                               sums + h * square_channels, Columns, give_share);
    } else if (halves == 1) {
      squares_.template sum<shape::one_by_two, stays, Units>(panel, sums, Columns, give_share);
    } else {
      squares_.template sum<shape::one_by_four, stays, Units>(panel, sums, Columns, give_share);
    }
    *next = now;
    give_rest(next, give);
    turn_ ^= 1;
  }
  template <class Give>
  void give_rest(const pixel_run* runs, const Give& give) {
    for (; runs->count > 0; ++runs)
      for (index_t i = 0; i < runs->count; i += edge)
        give(runs->pixel + i, std::min(edge, runs->count - i), room_[turn_ ^ 1] + (runs->place + i) * Columns);
  }
  template <class Give>
  void finish(const Give& give) {
    squares_.finish();
    give_rest(runs_, give);
    runs_[0].count = 0;
    if constexpr (!beside) session_.resume();
  }

  alignas(64) std::int32_t room_[2][most_places * Columns];
  session session_;
  simd::square_sums_in_turn<A> squares_;
  index_t fewest_pixels_, turn_ = 0;
  // What there is to give of the last places: pixels, the list ends with none; and their first channel.
  pixel_run runs_[most_places + 1]{};
  index_t channel_ = 0;
};

}  // namespace qtensor::inline QTENSOR_ABI::ops
