// Convolutions on matrix registers: squares of places, most of them pixels, whose sums are given away beside the next.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <optional>
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

/// The codes of panels with each segment filled up to whole steps of matrix registers.
template <simd::usable_arch A>
class square_panels {
 public:
  square_panels() = default;
  explicit square_panels(const packed_convolution<A>& w)
      : weights_(&w), segment_quads_(round_up(w.segment_quads(), simd::square_edge)) {
    if (segment_quads_ == w.segment_quads()) return;
    constexpr index_t quad_bytes = 4 * simd::int_tile<A>::panel;
    const index_t each = w.segment_quads() * quad_bytes, filled = segment_quads_ * quad_bytes;
    const index_t all = w.group_count() * w.panels() * w.segments();
    filled_ = line_array<std::int8_t>(qtensor::detail::checked_product(all, filled));
    for (index_t i = 0; i < all; ++i)
      std::memcpy(filled_.data() + i * filled, w.panel(0, 0) + i * each, static_cast<std::size_t>(each));
  }
  /// 0: there are no panels.
  index_t segment_quads() const { return segment_quads_; }
  const std::int8_t* panel(index_t group, index_t p) const {
    const index_t bytes = weights_->segments() * segment_quads_ * 4 * weights_->width();
    return filled_.size() == 0 ? weights_->panel(group, p) : filled_.data() + (group * weights_->panels() + p) * bytes;
  }

 private:
  const packed_convolution<A>* weights_ = nullptr;
  index_t segment_quads_ = 0;
  line_array<std::int8_t> filled_;
};

/// Pixels of a band of output as places at one distance from each other: all rows in one run, with places between them
/// that are no pixels, or every row a run.
struct place_runs {
  index_t rows, cols;  ///< of pixels
  index_t pitch;       ///< places from one row to the next; 0: every row is a run
  index_t row_step;    ///< units from one row to the next

  index_t count() const { return pitch > 0 ? 1 : rows; }
  index_t places() const { return pitch > 0 ? (rows - 1) * pitch + cols : cols; }
};

/// The squares of one panel and band. give(pixel, count, sums) gets the sums of pixels [pixel, pixel + count), at most
/// 16, a panel apart, and brings them to a Sink: while others are summed, if that leaves matrix registers alone.
template <simd::usable_arch A, class Sink, class Give>
class square_convolution {
  static constexpr bool beside = simd::runs_beside<Sink>;
  using shape = simd::square_shape;
  using session = typename simd::square_unit<A>::session;
  static constexpr index_t width = simd::int_tile<A>::panel, edge = simd::square_edge, most_places = 2 * edge;

  /// Places that are summed together, and where the first of them is among the pixels.
  struct block {
    std::int32_t* sums;
    index_t places, row, col;
  };

 public:
  /// At least so many pixels are given away at once, where there are as many.
  square_convolution(const simd::square_taps<A>& panel, index_t channels, const Give& give, index_t fewest_pixels)
      : panel_(panel), halves_(channels > width / 2 ? 2 : 1), fewest_pixels_(fewest_pixels), give_(give) {}

  /// All places of some runs, the first of which begins at the units of a pixel.
  template <class Unit>
  void over(const place_runs& runs, const Unit* first) {
    alignas(64) std::int32_t room[2][most_places * width] = {};
    runs_ = runs;
    session_.emplace();
    for (index_t r = 0, turn = 0; r < runs.count(); ++r)
      for (index_t m = 0; m < runs.places(); m += most_places, turn ^= 1) {
        panel_.rows.data = first + r * runs.row_step + m * panel_.rows.stride;
        block b{room[turn], std::min(most_places, runs.places() - m), r, m};
        if (runs.pitch > 0) b.row = m / runs.pitch, b.col = m % runs.pitch;
        sum(b);
        give(last_.places);
        last_ = b;
        if constexpr (!beside) finish();
      }
    if constexpr (beside) finish();
    session_.reset();
  }

 private:
  /// The sums of the last block are in memory after the first step, and given away in shares after the others: the CPU
  /// has room for little else beside a step. After many steps that take longer to read, all at once costs nothing.
  void sum(const block& b) {
    constexpr auto stays = simd::resident::rows;
    constexpr index_t many_steps = 64;
    const bool is_square = b.places > edge;
    const index_t later_steps = (is_square ? halves_ : 1) * (panel_.taps.count * (panel_.taps.quads / edge) - 1);
    const index_t share = later_steps < many_steps
                              ? std::max(divide_up(last_.places, std::max(later_steps, index_t{1})), fewest_pixels_)
                              : 0;
    const auto give_share = [&] {
      if (share > 0) give(share);
    };
    if (!is_square) return squares_.template sum<shape::one_by_four, stays>(panel_, b.sums, width, give_share);
    for (index_t h = 0; h < halves_; ++h)
      squares_.template sum<shape::two_by_two, stays>(panel_.from(h * width / 2), b.sums + h * width / 2, width,
                                                      give_share);
  }
  void finish() {
    squares_.finish();
    give(last_.places);
    if constexpr (!beside) session_->resume();
  }
  /// The next `places` of the last block, those of them that are pixels.
  void give(index_t places) {
    for (index_t n; places > 0 && last_.places > 0; places -= n) {
      if (last_.col < runs_.cols) {
        n = std::min({places, last_.places, runs_.cols - last_.col, edge});
        give_(last_.row * runs_.cols + last_.col, n, last_.sums);
        last_.col += n;
      } else {
        n = runs_.pitch - last_.col;
        last_.col = 0, ++last_.row;
      }
      last_.sums += n * width, last_.places -= n;
    }
  }

  simd::square_taps<A> panel_;
  index_t halves_;  // of the panel that have channels
  index_t fewest_pixels_;
  const Give& give_;
  place_runs runs_{};
  std::optional<session> session_;
  simd::square_sums_in_turn<A> squares_;
  block last_{};
};

}  // namespace qtensor::inline QTENSOR_ABI::ops
