// The rows of input that some rows of output read, as bytes: padded, their channels side by side.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <qtensor/ops/convolution_shape.hpp>
#include <qtensor/ops/line_array.hpp>
#include <qtensor/simd/memory.hpp>
#include <qtensor/simd/ops_columns.hpp>
#include <qtensor/simd/ops_dot.hpp>

namespace qtensor::inline QTENSOR_ABI {

/// 8-bit codes of activations in memory: signed or unsigned bytes with one zero point, a code or not.
struct convolution_input {
  const void* codes;
  simd::code_sign sign = simd::code_sign::is_signed;
  std::int32_t zero_point = 0;
};

namespace ops {

/// Rows of input as bytes: padded width, channels side by side.
class byte_rows {
 public:
  byte_rows(const convolution_plan& plan, const convolution_input& x) : plan_(&plan), x_(x) {
    const convolution_axis& w = plan.shape.axes[2];
    width_ = w.out() == 0 ? 0 : (w.out() - 1) * w.stride + w.reach();
    const index_t reach = (w.in - 1) * w.input_dilation + 1;
    begin_ = std::clamp(w.pad_low, index_t{0}, width_);
    end_ = w.in == 0 ? begin_ : std::clamp(w.pad_low + reach, begin_, width_);
  }
  index_t width() const { return width_; }
  std::uint8_t zero_code() const { return static_cast<std::uint8_t>(x_.zero_point); }
  /// The places [begin, end) of a row are not padding.
  index_t begin() const { return begin_; }
  index_t end() const { return end_; }
  /// Whether there are such places, and they are pixels, one after the other.
  bool has_pixels() const { return end_ > begin_ && plan_->shape.axes[2].input_dilation == 1; }
  /// Rows from this one on will not be read before others are.
  void reads_to(index_t h) { last_ = h; }

  /// A row's pixels, their channels side by side. Pixel i is at from + i * apart.
  struct pixel_row {
    const std::uint8_t* from;
    index_t apart;
  };
  /// Channels [first, first + channels) of one row: where they lie or, where a pixel's do not lie side by side, turned,
  /// together with rows that come next. Valid until the next call.
  pixel_row row(index_t batch, index_t first, index_t channels, index_t d, index_t h) {
    const activation_map& m = plan_->input;
    const auto* const from = static_cast<const std::uint8_t*>(x_.codes) + m.at(batch, first, {d, 0, 0});
    if (m.channel_stride == 1 || channels == 1) return {from + h * m.spatial[1], m.spatial[2]};
    if (from != turned_.from || channels != turned_.channels || h < turned_.begin || h >= turned_.end)
      turn(from, channels, h);
    const index_t apart = place_of(channels);
    return {codes_.data() + (h - turned_.begin) * plan_->shape.axes[2].in * apart, apart};
  }

  /// Channels [first, first + channels) of one row to to[place * step + c], for place < width(); places of padding and
  /// holes get the zero point, bytes between channels and step are left.
  void read(index_t batch, index_t first, index_t channels, index_t d, index_t h, std::uint8_t* to, index_t step) {
    const convolution_axis& w = plan_->shape.axes[2];
    const auto fill = [&](index_t place, index_t n) {
      if (n > 0) std::memset(to + place * step, zero_code(), static_cast<std::size_t>(n * step));
    };
    if (!has_pixels() || channels == 0) fill(0, width_);
    if (end_ == begin_ || channels == 0) return;
    const pixel_row pixels = row(batch, first, channels, d, h);
    if (has_pixels()) {
      fill(0, begin_);
      fill(end_, width_ - end_);
      return copy(pixels.from + (begin_ - w.pad_low) * pixels.apart, pixels.apart, end_ - begin_, channels,
                  to + begin_ * step, step);
    }
    for (index_t p = begin_; p < end_; ++p)
      if (const index_t i = w.source(p); i >= 0)
        std::memcpy(to + p * step, pixels.from + i * pixels.apart, static_cast<std::size_t>(channels));
  }

 private:
  [[gnu::noinline]] static void copy(const std::uint8_t* from, index_t apart, index_t pixels, index_t channels,
                                     std::uint8_t* to, index_t step) {
    if (apart == channels && step == channels)
      return void(std::memcpy(to, from, static_cast<std::size_t>(pixels * channels)));
    index_t p = 0;
    // Whole words: what comes after the channels is of later pixels, and meets weights that are 0.
    if (step == channels && channels < 4 && apart >= 4) {
      for (; (pixels - p) * step >= 4; ++p) std::memcpy(to + p * step, from + p * apart, 4);
    } else if (step == 4 && apart >= channels) {
      QTENSOR_KEEP_LOOP
      for (; p + 3 < pixels; ++p) std::memcpy(to + p * 4, from + p * apart, 4);
    } else if (step == round_up(channels, 4) && apart >= channels) {
      for (; p + 3 < pixels; ++p) {
        index_t c = 0;
        for (; c + 16 <= step; c += 16) std::memcpy(to + p * step + c, from + p * apart + c, 16);
        for (; c < step; c += 4) std::memcpy(to + p * step + c, from + p * apart + c, 4);
      }
    }
    for (; p < pixels; ++p) std::memcpy(to + p * step, from + p * apart, static_cast<std::size_t>(channels));
  }
  /// Turns row h and, where rows follow each other in memory and all are read, those after it that fit.
  void turn(const std::uint8_t* from, index_t channels, index_t h) {
    constexpr index_t most_bytes = 32768;
    const activation_map& m = plan_->input;
    const convolution_axis& high = plan_->shape.axes[1];
    const index_t wide = plan_->shape.axes[2].in, row_bytes = wide * place_of(channels);
    const bool follow = m.spatial[2] == 1 && m.spatial[1] == wide && high.stride <= high.reach();
    const index_t rows = follow ? std::clamp(most_bytes / row_bytes, index_t{1}, std::max(last_ - h, index_t{1})) : 1;
    const index_t room = qtensor::detail::checked_product(rows, row_bytes) + few * few_at_once;
    if (codes_.size() < room) codes_ = line_array<std::uint8_t>(room);
    const std::uint8_t* const first = from + h * m.spatial[1];
    if (m.spatial[2] != 1)
      for (index_t i = 0; i < wide; ++i)
        for (index_t c = 0; c < channels; ++c)
          codes_[i * place_of(channels) + c] = first[i * m.spatial[2] + c * m.channel_stride];
    else if (channels <= few)
      turn_few(first, channels, rows * wide);
    else
      simd::transpose(first, m.channel_stride, rows * wide, channels, codes_.data(), channels);
    turned_ = {from, channels, h, h + rows};
  }
  /// Planes of up to four channels, four bytes a pixel; whole batches are written.
  void turn_few(const std::uint8_t* from, index_t channels, index_t pixels) {
    using A = simd::best_arch;
    std::uint8_t* to = codes_.data();
    for (index_t i = 0; i < pixels; i += few_at_once, to += few * few_at_once) {
      std::array<simd::bytes<A>, few> planes;
      for (index_t c = 0; c < few; ++c) {
        const std::uint8_t* plane = from + std::min(c, channels - 1) * plan_->input.channel_stride + i;
        planes[static_cast<std::size_t>(c)] =
            simd::spread_rows<A>(pixels - i >= few_at_once ? simd::load<A>(plane) : simd::load_n<A>(plane, pixels - i));
      }
      const auto fours = simd::interleave_rows<A>(planes);
#pragma GCC unroll 4
      for (index_t v = 0; v < few; ++v) simd::store(to + v * few_at_once, fours[static_cast<std::size_t>(v)]);
    }
  }

  static constexpr index_t few = 4, few_at_once = 4 * simd::lanes<simd::best_arch>;
  /// Bytes from a turned pixel to the next.
  static constexpr index_t place_of(index_t channels) { return std::max(channels, few); }

  /// What codes_ are: rows [begin, end) of so many channels, the first row of which is at `from`.
  struct turned_rows {
    const std::uint8_t* from = nullptr;
    index_t channels = 0, begin = 0, end = 0;
  };

  const convolution_plan* plan_;
  convolution_input x_;
  index_t width_ = 0, begin_ = 0, end_ = 0, last_ = 0;
  turned_rows turned_;
  line_array<std::uint8_t> codes_;
};

/// What some rows of output at one depth have in common: the rows of input below them, counted as `slot`s.
struct row_band {
  index_t rows;        ///< of output
  index_t slot_rows;   ///< rows of input at one depth
  index_t slot_count;  ///< at all depths that are taps

  row_band(const convolution_shape& s, index_t rows_of_output)
      : rows(rows_of_output),
        slot_rows(rows == 0 ? 0 : (rows - 1) * s.axes[1].stride + s.axes[1].reach()),
        slot_count(slot_rows * s.axes[0].taps) {}

  /// Calls f(slot, input depth, input row) for every row that is read for output rows [first, first + n) at depth d; -1
  /// for padding and holes.
  template <class F>
  void for_each(const convolution_shape& s, index_t d, index_t first, index_t n, const F& f) const {
    const convolution_axis& h = s.axes[1];
    for (index_t i = 0; i < s.axes[0].taps; ++i)
      for (index_t r = 0; r < (n - 1) * h.stride + h.reach(); ++r)
        if (is_read(h, r, n)) f(i * slot_rows + r, s.axes[0].source(d, i), h.source(first * h.stride + r));
  }

  /// Behind the last row of input that is read for output rows [first, first + n).
  index_t last_row(const convolution_shape& s, index_t first, index_t n) const {
    const convolution_axis& h = s.axes[1];
    const index_t places = (first + n - 1) * h.stride + h.reach() - h.pad_low;
    return std::clamp(divide_up(std::max(places, index_t{0}), h.input_dilation), index_t{0}, h.in);
  }

 private:
  static bool is_read(const convolution_axis& h, index_t r, index_t n) {
    for (index_t t = 0; t < h.taps; ++t) {
      const index_t rest = r - t * h.tap_dilation;
      if (rest >= 0 && rest % h.stride == 0 && rest / h.stride < n) return true;
    }
    return false;
  }
};

}  // namespace ops

}  // namespace qtensor::inline QTENSOR_ABI
