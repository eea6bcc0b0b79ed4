// Bands of input rows as quads with every output on a lane of its own: depthwise convolutions.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <qtensor/ops/convolution_bytes.hpp>
#include <qtensor/ops/convolution_pack.hpp>
#include <qtensor/simd/ops.hpp>
#include <qtensor/simd/ops_columns.hpp>

namespace qtensor::inline QTENSOR_ABI::ops {

/// A band for the form channels: each lane has the units of its output, as quads of a row of taps.
template <simd::usable_arch A>
class channel_rows_of {
  static constexpr index_t width = simd::channel_panel<A>, quad = 4 * width, step = simd::lanes<A>;
  static constexpr std::int32_t unit_offset = simd::quad_dot<A>::unit_offset;

 public:
  channel_rows_of(const packed_convolution<A>& w, const convolution_input& x, index_t rows)
      : weights_(&w), x_(x), bytes_(w.plan(), x), band_(w.shape(), rows) {
    const convolution_shape& s = w.shape();
    const convolution_axis& along = s.axes[2];
    const index_t next = 4 * along.tap_dilation, quads = w.segment_quads();  // next: places to the next quad
    if (quads == 1 || next % along.stride == 0) place_step_ = along.stride;
    const index_t last = std::max((along.out() - 1) * along.stride, index_t{0}) + (quads - 1) * next;
    places_ = last / place_step_ + 1;
    row_ = places_ * quad;
    if (s.group_outputs() > 1) line_ = line_array<std::uint8_t>(bytes_.width() * s.inputs + 64);
    lanes_ = line_array<std::uint8_t>(std::max(last + 3 * along.tap_dilation + 1, bytes_.width()) * width);
    units_ = line_array<std::uint8_t>::for_overwrite(
        qtensor::detail::checked_product(std::max(index_t{1}, band_.slot_count), row_));
    for (index_t d = 0; d < s.axes[0].taps; ++d)
      for (index_t h = 0; h < s.axes[1].taps; ++h)
        for (index_t q = 0; q < quads; ++q)
          offsets_.push_back((d * band_.slot_rows + h * s.axes[1].tap_dilation) * row_ + q * next / place_step_ * quad);
  }
  /// Where the quads of a pixel begin.
  const index_t* offsets() const { return offsets_.data(); }
  index_t quads() const { return static_cast<index_t>(offsets_.size()); }
  /// Where the lanes of a pixel begin, and from one to the next in a row.
  const std::uint8_t* pixel(index_t row, index_t col) const {
    return units_.data() + row * weights_->shape().axes[1].stride * row_ + col * pixel_step();
  }
  index_t pixel_step() const { return weights_->shape().axes[2].stride / place_step_ * quad; }

  /// The inputs of panel p.
  void fill(index_t batch, index_t p, index_t d, index_t first, index_t n) {
    const convolution_shape& s = weights_->shape();
    const index_t outputs = std::min(width, s.outputs - p * width), per_group = s.group_outputs();
    const index_t channel = p * width / per_group, channels = (p * width + outputs - 1) / per_group + 1 - channel;
    const simd::bytes<A> channel_of_output =
        per_group == 1 ? simd::bytes<A>(std::uint8_t{0}) : channels_of(p * width, outputs, per_group);
    constexpr std::uint8_t to_unit = unit_offset == 0 ? 0 : 0x80;
    const auto flip = static_cast<std::uint8_t>(static_cast<std::uint8_t>(x_.sign) ^ to_unit);
    bytes_.reads_to(band_.last_row(s, first, n));
    band_.for_each(s, d, first, n, [&](index_t slot, index_t from_d, index_t from_h) {
      std::uint8_t* const to = units_.data() + slot * row_;
      if (from_d < 0 || from_h < 0) {
        std::memset(to, bytes_.zero_code() ^ flip, static_cast<std::size_t>(row_));
        return;
      }
      if (per_group == 1 && bytes_.has_pixels()) {
        spread_pixels(bytes_.row(batch, channel, channels, from_d, from_h), channels, flip);
        return join_lanes(outputs, to);
      }
      if (per_group == 1) {
        bytes_.read(batch, channel, channels, from_d, from_h, lanes_.data(), width);
      } else {
        bytes_.read(batch, channel, channels, from_d, from_h, line_.data(), channels);
        for (index_t at = 0; at < bytes_.width(); ++at)
          simd::store(&lanes_[at * width], simd::byte_table<A, table_size>(&line_[at * channels])(channel_of_output));
      }
      std::uint8_t* const lanes = lanes_.data();
      for (index_t at = 0, end = bytes_.width() * width; at < end; at += width)
        spread(simd::load<A>(static_cast<const std::uint8_t*>(lanes + at)), flip, lanes + at);
      join_lanes(outputs, to);
    });
  }

 private:
  static constexpr int table_size = std::max(16, static_cast<int>(width));
  /// Where each of some outputs has its channel, counted from the first one's, `per_group` outputs to a channel.
  static simd::bytes<A> channels_of(index_t first, index_t outputs, index_t per_group) {
    std::uint8_t at[width] = {};
    for (index_t o = 0; o < outputs; ++o)
      at[o] = static_cast<std::uint8_t>((first + o) / per_group - first / per_group);
    return simd::load<A>(at);
  }
  // Bytes are stored below, which might be of this object for all that compilers know: what loops need is copied first.

  /// Codes of a place as units that interleave_rows takes.
  static QTENSOR_INLINE void spread(const simd::bytes<A>& codes, std::uint8_t flip, std::uint8_t* to) {
    simd::store(to, simd::spread_rows<A>(codes ^ simd::bytes<A>(flip)));
  }
  /// The same of a row of pixels with their channels side by side, from where they lie.
  void spread_pixels(const byte_rows::pixel_row& row, index_t channels, std::uint8_t flip) {
    const index_t begin = bytes_.begin(), end = bytes_.end();
    const auto pad = [&](index_t from, index_t to) {
      if (to > from)
        std::memset(&lanes_[from * width], bytes_.zero_code() ^ flip, static_cast<std::size_t>((to - from) * width));
    };
    pad(0, begin);
    pad(end, bytes_.width());
    // What is read behind the channels of a pixel is of later ones.
    const index_t behind = row.apart < channels ? end : divide_up(width - channels, std::max(row.apart, index_t{1}));
    const index_t apart = row.apart;
    const std::uint8_t* from = row.from + (begin - weights_->shape().axes[2].pad_low) * apart;
    std::uint8_t* to = lanes_.data() + begin * width;
    index_t left = end - begin;
    for (; left > behind; --left, from += apart, to += width) spread(simd::load<A>(from), flip, to);
    for (; left > 0; --left, from += apart, to += width) spread(simd::load_n<A>(from, channels), flip, to);
  }
  /// The lanes of four taps each, as quads.
  void join_lanes(index_t outputs, std::uint8_t* to) const {
    const index_t apart = weights_->shape().axes[2].tap_dilation * width, vectors = divide_up(outputs, step);
    const index_t next = place_step_ * width;
    const std::uint8_t* from = lanes_.data();
    for (index_t left = places_; left > 0; --left, from += next, to += quad) {
      const auto quads = simd::interleave_rows<A>({simd::load<A>(from), simd::load<A>(from + apart),
                                                   simd::load<A>(from + 2 * apart), simd::load<A>(from + 3 * apart)});
      simd::detail::repeat<4>([&](auto v) QTENSOR_INLINE_LAMBDA {
        if (v < vectors) simd::store(to + 4 * v * step, quads[v]);
      });
    }
  }

  const packed_convolution<A>* weights_;
  convolution_input x_;
  byte_rows bytes_;
  row_band band_;
  index_t places_ = 0, place_step_ = 1, row_ = 0;  // places of a row with quads, and from one to the next; their bytes
  line_array<std::uint8_t> line_, lanes_, units_;
  std::vector<index_t> offsets_;
};

}  // namespace qtensor::inline QTENSOR_ABI::ops
