// The rows of input that some outputs of a convolution read, padded, as floats: for tiles, or outputs on lanes.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <qtensor/ops/convolution_bytes.hpp>
#include <qtensor/ops/convolution_pack.hpp>

namespace qtensor::inline QTENSOR_ABI::ops {

/// Floats of a place in each form: see float_rows_of.
template <simd::usable_arch A>
index_t place_floats(const convolution_shape& s, convolution_form form) {
  return s.group_inputs() * (form == convolution_form::channels ? simd::channel_panel<A> : 1);
}

/// Some outputs of one depth that follow each other: whole rows, or a part of one.
struct output_block {
  index_t depth, row, rows, col, cols;
  index_t pixels() const { return rows * cols; }
};

/// What blocks of outputs read, from activations with read(batch, first, n, at, places, to, step): channels [first,
/// first + n) of `places` places of a row, the first of them at `at`, to to[place * step + c]. In the form `pixels` a
/// place has the input channels of a group side by side; in the form `channels` each input channel of a group is a
/// panel of lanes, and every lane has that of the group of its output.
template <simd::usable_arch A, class X>
class float_rows_of {
  static constexpr index_t width = simd::channel_panel<A>;

 public:
  /// For blocks of at most so many rows and columns.
  float_rows_of(const convolution_shape& s, const X& x, convolution_form form, index_t rows, index_t cols)
      : shape_(&s), x_(&x), lanes_(form == convolution_form::channels), band_(s, rows) {
    const convolution_axis &h = s.axes[1], &w = s.axes[2];
    const index_t inputs = s.group_inputs(), places = (cols - 1) * w.stride + w.reach();
    place_ = place_floats<A>(s, form);
    row_ = qtensor::detail::checked_product(places, place_);
    floats_ = line_array<float>(qtensor::detail::checked_product(std::max(index_t{1}, band_.slot_count), row_));
    is_spread_ = lanes_ && (inputs > 1 || s.group_outputs() > 1);
    if (is_spread_) line_ = line_array<float>(places * std::min(s.inputs, width * inputs));
    pixels_.reserve(static_cast<std::size_t>(rows * cols));
    for (index_t row = 0; row < rows; ++row)
      for (index_t col = 0; col < cols; ++col)
        pixels_.push_back(floats_.data() + row * h.stride * row_ + col * w.stride * place_);
    const bool joined = !lanes_ && w.tap_dilation == 1;
    run_ = lanes_ ? 1 : joined ? w.taps * inputs : inputs;
    reference::for_each_position(reference::taps_of(s), [&](const convolution_shape::position& tap) {
      if (joined && tap[2] > 0) return;
      for (index_t i = 0; i < (lanes_ ? inputs : 1); ++i)
        offsets_.push_back((tap[0] * band_.slot_rows + tap[1] * h.tap_dilation) * row_ +
                           tap[2] * w.tap_dilation * place_ + i * width);
    });
  }
  /// Where the places of a block's pixels begin, and how far on the runs of their terms do: on lanes, one of each.
  const float* const* pixels() const { return pixels_.data(); }
  const index_t* offsets() const { return offsets_.data(); }
  /// The terms of pixels [first, first + n) of the form `pixels` side by side.
  void gather(index_t first, index_t n, float* to) const {
    for (index_t p = first; p < first + n; ++p)
      for (const index_t offset : offsets_) {
        simd::copy_bytes(pixels_[static_cast<std::size_t>(p)] + offset, run_ * index_t{sizeof(float)}, to);
        to += run_;
      }
  }

  /// Reads for the outputs of a group, or of a panel of lanes, of a result's batch.
  void fill(index_t batch, index_t part, const output_block& block) {
    const convolution_shape& s = *shape_;
    const convolution_axis& w = s.axes[2];
    const index_t output = part * (lanes_ ? width : s.group_outputs());
    const index_t outputs = lanes_ ? std::min(width, s.outputs - output) : s.group_outputs();
    const index_t source = s.source_batch(batch, output), first = s.first_input(output);
    const index_t channels = s.first_input(output + outputs - 1) + s.group_inputs() - first;
    // Elements [from, end) of a row are at every `hole`-th place from `at` on.
    const index_t places = (block.cols - 1) * w.stride + w.reach(), hole = w.input_dilation;
    const index_t shift = w.pad_low - block.col * w.stride, from = shift < 0 ? divide_up(-shift, hole) : 0;
    const index_t end = shift < places ? std::min(w.in, (places - 1 - shift) / hole + 1) : 0, n = end - from;
    const index_t at = shift + from * hole, last = n > 0 ? at + (n - 1) * hole + 1 : 0;
    if (is_spread_)
      for (index_t o = 0; o < outputs; ++o) lane_channels_[o] = s.first_input(output + o) - first;
    band_.for_each(s, block.depth, block.row, block.rows, [&](index_t slot, index_t from_d, index_t from_h) {
      float* to = floats_.data() + slot * row_;
      const bool inside = from_d >= 0 && from_h >= 0 && n > 0;
      if (!inside || hole > 1) {
        std::fill_n(to, places * place_, 0.f);
      } else {
        std::fill_n(to, at * place_, 0.f);
        std::fill_n(to + last * place_, (places - last) * place_, 0.f);
      }
      if (!inside) return;
      to += at * place_;
      if (!is_spread_) return x_->read(source, first, channels, {from_d, from_h, from}, n, to, hole * place_);
      x_->read(source, first, channels, {from_d, from_h, from}, n, line_.data(), channels);
      for (index_t p = 0; p < n; ++p, to += hole * place_) spread(line_.data() + p * channels, outputs, to);
    });
  }

 private:
  /// The channels of a place on the lanes of the outputs that read them.
  void spread(const float* channels, index_t outputs, float* to) const {
    for (index_t i = 0; i < shape_->group_inputs(); ++i, ++channels, to += width)
      for (index_t o = 0; o < outputs; ++o) to[o] = channels[lane_channels_[o]];
  }

  const convolution_shape* shape_;
  const X* x_;
  bool lanes_, is_spread_ = false;
  row_band band_;
  index_t place_ = 0, row_ = 0, run_ = 0;
  line_array<float> floats_, line_;
  index_t lane_channels_[width] = {};
  std::vector<const float*> pixels_;
  std::vector<index_t> offsets_;
};

}  // namespace qtensor::inline QTENSOR_ABI::ops
