// Bands of input rows as units, for convolutions whose terms are those of a pixel or of a row of taps.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <limits>
#include <qtensor/ops/convolution_bytes.hpp>
#include <qtensor/ops/convolution_squares.hpp>
#include <qtensor/simd/gemm_sums.hpp>
#include <utility>

namespace qtensor::inline QTENSOR_ABI::ops {

/// Whether the tiles of a convolution are products of sums: where an architecture has them, panels are nearly full, for
/// these tiles compute whole ones, there are pixels enough to widen the weights for, and a pixel has work enough to
/// look at its units for.
template <simd::usable_arch A>
bool convolves_by_sums(const packed_convolution<A>& w) {
  constexpr index_t least_quads = 64;
  const convolution_shape& s = w.shape();
  return simd::sum_dot<A>::exists && w.form() != convolution_form::channels &&
         5 * s.group_outputs() >= 4 * w.panels() * w.width() &&
         s.result_batch() * s.pixels() >= simd::least_rows_of_sums &&
         w.segments() * w.segment_quads() * w.panels() >= least_quads;
}

/// Whether vectors can read the source where it lies: its codes are units, the channels of a pixel side by side and
/// whole quads, no tap meets padding or holes, and nothing but products is asked of the codes.
template <simd::usable_arch A>
bool units_lie_in_place(const packed_convolution<A>& w, const convolution_input& x) {
  using dot = simd::quad_dot<A>;
  const convolution_shape& s = w.shape();
  if (sizeof(typename dot::unit) != 1 || dot::unit_offset != sign_offset(x.sign)) return false;
  for (const convolution_axis& a : s.axes)
    if (!a.is_whole()) return false;
  return w.form() == convolution_form::pixels && !w.has_zeros() && w.plan().input.channel_stride == 1 &&
         s.axes[0].taps == 1 && s.group_inputs() % 4 == 0;
}

/// A band as units, for the forms pixels and rows.
template <simd::usable_arch A>
class unit_rows_of {
  using unit = typename simd::quad_dot<A>::unit;
  static constexpr index_t term_piece = 16;  ///< bytes

 public:
  /// in_place: as squares_read_in_place(w) has it.
  unit_rows_of(const packed_convolution<A>& w, const convolution_input& x, index_t rows, bool in_place)
      : weights_(&w),
        x_(x),
        bytes_(w.plan(), x),
        band_(w.shape(), rows),
        in_place_(in_place),
        filled_(std::max(index_t{1}, w.shape().group_inputs())) {
    const convolution_shape& s = w.shape();
    const index_t taps = s.axes[2].taps, inputs = s.group_inputs();
    by_rows_ = w.form() == convolution_form::rows;
    by_sums_ = convolves_by_sums(w);
    by_squares_ = in_place || convolves_by_squares(w);
    lies_in_place_ = !by_sums_ && !by_squares_ && units_lie_in_place(w, x);
    if (in_place_) {
      step_ = s.inputs, row_units_ = s.axes[2].in * step_, pixel_step_ = step_ * s.axes[2].stride;
    } else if (lies_in_place_) {
      step_ = w.plan().input.spatial[2], row_units_ = w.plan().input.spatial[1];
      pixel_step_ = step_ * s.axes[2].stride;
    } else {
      if (may_fill_for_many()) filled_ *= std::clamp(index_t{64} / inputs, index_t{1}, s.groups);
      step_ = by_rows_ ? inputs : round_up(filled_, 4);
      pixel_step_ = by_rows_ ? round_up(taps * inputs, 4) : step_ * s.axes[2].stride;
      // Rows of squares run on from row to row where these lie a number of pixels apart.
      row_units_ = round_up(by_rows_ ? pixel_step_ * s.axes[2].out() : step_ * bytes_.width(),
                            by_squares_ ? pixel_step_ : index_t{64});
      make_room(rows);
    }
    // Taps of a row follow each other where their channels do.
    const bool joined = by_rows_ || (s.axes[2].tap_dilation == 1 && step_ == round_up(inputs, 4));
    segment_quads_ = joined ? w.segment_quads() : divide_up(inputs, 4);
    for (index_t d = 0; d < s.axes[0].taps; ++d)
      for (index_t h = 0; h < s.axes[1].taps; ++h) {
        const index_t row = (d * band_.slot_rows + h * s.axes[1].tap_dilation) * row_units_;
        for (index_t t = 0; t < (joined ? 1 : taps); ++t) offsets_.push_back(row + t * s.axes[2].tap_dilation * step_);
        for (index_t t = 0; t < (has_row_runs() ? taps : 0); t += simd::row_tile_taps)
          row_offsets_.push_back(row + t * step_);
      }
  }

  simd::tap_segments segments() const {
    return {offsets_.data(), static_cast<index_t>(offsets_.size()), segment_quads_};
  }
  /// Taps that lie side by side as dot_row_tile takes them, three a run; no runs where they do not, or pixels do not.
  simd::tap_segments row_runs() const {
    const index_t quads = divide_up(weights_->shape().group_inputs(), 4);
    return {row_offsets_.data(), static_cast<index_t>(row_offsets_.size()), quads};
  }
  /// Where the units of each pixel begin, rows of the band one after the other.
  const unit* const* pixels() {
    if (pixels_.empty()) list_pixels(band_.rows);
    return pixels_.data();
  }
  /// So many units behind those of the first one, where a square begins.
  const unit* square_at(index_t offset) const {
    return offset < copied_from_ ? first_ + offset : units_.data() + (offset - copied_from_);
  }
  /// Whether there is room for squares, which are read to 16 places and whole steps.
  bool by_squares() const { return by_squares_; }
  /// From one pixel of a row to the next.
  index_t pixel_step() const { return pixel_step_; }
  /// So many rows of pixels as places of squares: one by one or, where that costs clearly less, joined.
  place_runs places(index_t rows) const {
    const index_t cols = weights_->shape().axes[2].out(), between = row_step();
    const place_runs one{rows, cols, between / pixel_step_, between}, each{rows, cols, 0, between};
    return between % pixel_step_ == 0 && one.pitch >= cols && 14 * one.cost() <= 13 * each.cost() ? one : each;
  }
  /// Of pixel row * width + col, where the weights have zero points: the sum of its numbers.
  const std::int32_t* window_sums() const { return window_sums_.data(); }
  /// The same, for products of sums: the products among its units.
  const std::int32_t* window_products() const { return window_products_.data(); }

  /// For the group that begins at a channel: they come one after the other, and find what the one before has filled.
  void fill(index_t batch, index_t first_channel, index_t d, index_t first, index_t n) {
    const convolution_shape& s = weights_->shape();
    if constexpr (simd::square_unit<A>::exists)
      if (in_place_) return find(batch, first_channel, d, first, n);
    if (lies_in_place_) return point_at(batch, first_channel, d, first, n);
    const index_t behind = first_channel % filled_;
    for (auto* offsets : {&offsets_, &row_offsets_})
      for (index_t& offset : *offsets) offset += behind - behind_;
    behind_ = behind;
    if (behind > 0) return;
    bytes_.reads_to(band_.last_row(s, first, n));
    band_.for_each(s, d, first, n, [&](index_t slot, index_t from_d, index_t from_h) {
      fill_row(slot, batch, first_channel, from_d, from_h);
      if constexpr (simd::sum_dot<A>::exists)
        if (by_sums_) multiply_places(slot);
    });
    const convolution_axis& w = s.axes[2];
    if (weights_->has_zeros())
      add_windows(n, place_sums_.data(), bytes_.width(), {w.taps, w.stride}, window_sums_.data());
    if (by_sums_)
      add_windows(n, place_products_.data(), product_places(), by_rows_ ? along_row{1, 1} : along_row{w.taps, w.stride},
                  window_products_.data());
  }

 private:
  /// Whether rows may be filled for several groups at once, for a line of each pixel: a group has whole quads of it.
  bool may_fill_for_many() const {
    return !by_rows_ && !by_sums_ && !by_squares_ && !weights_->has_zeros() && filled_ % 4 == 0;
  }
  bool has_row_runs() const {
    const convolution_axis& w = weights_->shape().axes[2];
    return simd::has_row_tiles<A> && weights_->form() == convolution_form::pixels && !by_sums_ && !by_squares_ &&
           w.stride == 1 && w.tap_dilation == 1 && w.taps % simd::row_tile_taps == 0;
  }
  /// Memory for a band of so many rows of output.
  void make_room(index_t rows) {
    const convolution_shape& s = weights_->shape();
    const bool has_zeros = weights_->has_zeros();
    line_ = line_array<std::uint8_t>(bytes_.width() * step_ + 64);
    if (by_rows_) terms_ = line_array<std::uint8_t>(pixel_step_ * s.axes[2].out() + term_piece);
    units_ = line_array<unit>::for_overwrite(
        qtensor::detail::checked_product(std::max(index_t{1}, band_.slot_count), row_units_ + 64) +
        (by_squares_ ? simd::square_edge * (pixel_step_ + 4) : 0));
    if (has_zeros) place_sums_ = line_array<std::int32_t>(band_.slot_count * bytes_.width());
    if (has_zeros) window_sums_ = line_array<std::int32_t>(rows * s.axes[2].out());
    if (has_zeros || by_sums_) columns_ = line_array<std::int32_t>(std::max(bytes_.width(), s.axes[2].out()) + 1);
    if (by_sums_) place_products_ = line_array<std::int32_t>(band_.slot_count * product_places());
    if (by_sums_) window_products_ = line_array<std::int32_t>(rows * s.axes[2].out());
    first_ = units_.data();
  }
  /// Where the first code of output row `first` lies in a source that meets no padding.
  index_t first_code(index_t batch, index_t first_channel, index_t d, index_t first) const {
    const auto at = [&](std::size_t axis, index_t o) { return weights_->shape().axes[axis].source(o, 0); };
    return weights_->plan().input.at(batch, first_channel, {at(0, d), at(1, first), at(2, 0)});
  }
  /// The pixels of a band in the source.
  void point_at(index_t batch, index_t first_channel, index_t d, index_t first, index_t n) {
    first_ = static_cast<const unit*>(x_.codes) + first_code(batch, first_channel, d, first);
    list_pixels(n);
  }
  void list_pixels(index_t rows) {
    const index_t cols = weights_->shape().axes[2].out();
    pixels_.resize(static_cast<std::size_t>(rows * cols));
    const unit** to = pixels_.data();
    for (index_t r = 0; r < rows; ++r, to += cols)
      for (index_t c = 0; c < cols; ++c) to[c] = first_ + r * row_step() + c * pixel_step_;
  }
  /// Where the units of a band lie. Squares read rows of two of them and whole steps: from where on that may leave the
  /// source, it is copied.
  void find(index_t batch, index_t first_channel, index_t d, index_t first, index_t n) {
    constexpr index_t line = simd::cache_line;
    const convolution_shape& s = weights_->shape();
    const activation_map& m = weights_->plan().input;
    const index_t begin = first_code(batch, first_channel, d, first);
    const index_t left = m.batch * m.sizes[0] * m.sizes[1] * m.sizes[2] * m.channels - begin;
    const index_t read = (2 * simd::square_edge - 1) * pixel_step_ + offsets_.back() +
                         4 * round_up(weights_->segment_quads(), simd::square_edge);
    const index_t last = (n - 1) * row_step() + (s.axes[2].out() - 1) * pixel_step_;
    first_ = static_cast<const std::uint8_t*>(x_.codes) + begin;
    copied_from_ = std::max(index_t{0}, left - read) / line * line;
    if (last < copied_from_) return;
    if (units_.size() < last + read - copied_from_) units_ = line_array<unit>(last + read - copied_from_);
    std::memcpy(units_.data(), first_ + copied_from_, static_cast<std::size_t>(left - copied_from_));
  }
  /// From one row of pixels to the next.
  index_t row_step() const { return row_units_ * weights_->shape().axes[1].stride; }
  /// A row of pixels without anything between them.
  void pack_dense(const byte_rows::pixel_row& pixels, unit* to) const {
    const index_t begin = bytes_.begin(), end = bytes_.end();
    std::fill_n(to, begin * step_, zero_unit());
    simd::pack_units<A>(pixels.from + (begin - weights_->shape().axes[2].pad_low) * step_, (end - begin) * step_,
                        x_.sign, to + begin * step_);
    std::fill_n(to + end * step_, (bytes_.width() - end) * step_, zero_unit());
  }
  unit zero_unit() const {
    return static_cast<unit>(signed_number(bytes_.zero_code(), x_.sign) + simd::quad_dot<A>::unit_offset);
  }
  void fill_row(index_t slot, index_t batch, index_t first_channel, index_t d, index_t h) {
    const convolution_shape& s = weights_->shape();
    const index_t inputs = s.group_inputs(), width = bytes_.width();
    const index_t channels = std::min(filled_, s.inputs - first_channel);
    unit* to = units_.data() + slot * row_units_;
    std::int32_t* sums = weights_->has_zeros() ? place_sums_.data() + slot * width : nullptr;
    if (d < 0 || h < 0) {
      std::fill_n(to, row_units_, zero_unit());
      if (weights_->has_zeros()) std::fill_n(sums, width, 0);
      return;
    }
    if (!by_rows_ && !weights_->has_zeros() && step_ == channels && bytes_.has_pixels())
      if (const auto pixels = bytes_.row(batch, first_channel, channels, d, h); pixels.apart == channels)
        return pack_dense(pixels, to);
    bytes_.read(batch, first_channel, channels, d, h, line_.data(), step_);
    if (weights_->has_zeros()) sum_places(sums);
    if (!by_rows_) {
      simd::pack_units<A>(line_.data(), width * step_, x_.sign, to);
      return;
    }
    // In whole pieces: what comes after the terms of a pixel meets weights that are 0, or is the next one's place.
    const convolution_axis w = s.axes[2];  // bytes are stored below, which might be of the shape
    const index_t out = w.out(), each = pixel_step_;
    const std::uint8_t* from = line_.data();
    std::uint8_t* terms = terms_.data();
    for (index_t o = 0; o < out; ++o, terms += each, from += w.stride * inputs)
      if (w.tap_dilation == 1)
        for (index_t k = 0; k < each; k += term_piece) std::memcpy(terms + k, from + k, term_piece);
      else
        for (index_t t = 0; t < w.taps; ++t)
          std::memcpy(terms + t * inputs, from + t * w.tap_dilation * inputs, static_cast<std::size_t>(inputs));
    simd::pack_units<A>(terms_.data(), out * each, x_.sign, to);
  }
  /// Of every place of the line: the sum of its numbers, less the zero point. Every number is 128 less than its flipped
  /// code.
  void sum_places(std::int32_t* sums) const {
    constexpr index_t step = simd::lanes<A>;
    const index_t inputs = weights_->shape().group_inputs(), width = bytes_.width();
    const std::uint32_t flip = 0x80u ^ static_cast<std::uint32_t>(x_.sign);
    const auto less = static_cast<std::int32_t>(inputs) * (128 + signed_number(bytes_.zero_code(), x_.sign));
    if (step_ != 1 && step_ != 4) {
      for (index_t p = 0; p < width; ++p) sums[p] = sum_of(line_.data() + p * step_, inputs, flip) - less;
      return;
    }
    // A lane for each place: bytes are added in pairs.
    const simd::words<A> flips(flip * 0x01010101u), kept(low_bits(static_cast<int>(8 * inputs))), even(0x00ff00ffu);
    for (index_t p = 0; p < width; p += step) {
      const std::uint8_t* from = line_.data() + p * step_;
      const simd::words<A> raw =
          step_ == 1 ? simd::widen_u8<A>(from) : simd::bits_as<std::uint32_t>(simd::load<A>(from));
      const simd::words<A> v = (raw ^ flips) & kept, pairs = (v & even) + ((v >> 8) & even);
      const simd::ints<A> sum = simd::bits_as<std::int32_t>((pairs & simd::words<A>(0xffffu)) + (pairs >> 16));
      simd::store_n(sums + p, std::min(step, width - p), sum - simd::ints<A>(less));
    }
  }
  /// The sum of n flipped codes.
  static std::int32_t sum_of(const std::uint8_t* codes, index_t n, std::uint32_t flip) {
    constexpr index_t step = simd::lanes<A>;
    simd::words<A> all(0u);
    for (index_t c = 0; c < n; c += step) {
      const simd::words<A> raw = n - c >= step ? simd::widen_u8<A>(codes + c) : simd::widen_u8_n<A>(codes + c, n - c);
      all = all + (raw ^ simd::words<A>(flip));
    }
    // Lanes past the end had the code 0.
    return static_cast<std::int32_t>(simd::reduce_add(all) - static_cast<std::uint32_t>(round_up(n, step) - n) * flip);
  }
  /// Places of a row of input whose products are known: of pixels where each has terms of its own.
  index_t product_places() const { return by_rows_ ? weights_->shape().axes[2].out() : bytes_.width(); }
  void multiply_places(index_t slot) requires(simd::sum_dot<A>::exists) {
    constexpr index_t at_once = 0;
    const index_t places = product_places(), step = by_rows_ ? pixel_step_ : step_;
    const unit* from = units_.data() + slot * row_units_;
    for (index_t p = 0; p < places; ++p, from += step)
      place_products_[slot * places + p] = simd::unit_products<A>(from, {&at_once, 1, step / 4});
  }
  /// How a window runs along a row of places: how many it takes, and how far the next pixel's is.
  struct along_row {
    index_t taps, stride;
  };
  /// Of every pixel: what the places of its window come to, modulo 2^32. Places are added down the rows of the window,
  /// then along one: many that lie side by side as the difference of two running sums.
  void add_windows(index_t n, const std::int32_t* places, index_t row_places, const along_row& row,
                   std::int32_t* windows) {
    const convolution_shape& s = weights_->shape();
    const convolution_axis &h = s.axes[1], &w = s.axes[2];
    const index_t out = w.out();
    const bool running = w.tap_dilation == 1 && row.taps * out > row_places * (row.stride == 1 ? simd::lanes<A> : 1);
    for (index_t r = 0; r < n; ++r, windows += out) {
      const auto places_at = [&](index_t tap) {
        return places + (tap / h.taps * band_.slot_rows + r * h.stride + tap % h.taps * h.tap_dilation) * row_places;
      };
      const std::int32_t* down = places_at(0);
      std::int32_t* const columns = columns_.data();
      if (const index_t high = s.axes[0].taps * h.taps; high > 1) {
        std::copy_n(down, row_places, columns);
        for (index_t tap = 1; tap < high; ++tap) add(places_at(tap), 1, row_places, columns);
        down = columns;
      }
      if (!running) {
        std::fill_n(windows, out, 0);
        for (index_t t = 0; t < row.taps; ++t) add(down + t * w.tap_dilation, row.stride, out, windows);
        continue;
      }
      std::uint32_t sum = 0;
      for (index_t p = 0; p < row_places; ++p) {
        const auto next = sum + static_cast<std::uint32_t>(down[p]);
        columns[p] = static_cast<std::int32_t>(std::exchange(sum, next));
      }
      columns[row_places] = static_cast<std::int32_t>(sum);
      for (index_t o = 0; o < out; ++o)
        windows[o] = static_cast<std::int32_t>(static_cast<std::uint32_t>(columns[o * row.stride + row.taps]) -
                                               static_cast<std::uint32_t>(columns[o * row.stride]));
    }
  }
  /// to[i] += from[i * stride] for i < n, modulo 2^32.
  static void add(const std::int32_t* from, index_t stride, index_t n, std::int32_t* to) {
    constexpr index_t step = simd::lanes<A>;
    index_t i = 0;
    if (stride == 1)
      for (; i + step <= n; i += step) simd::store(to + i, simd::load<A>(to + i) + simd::load<A>(from + i));
    for (; i < n; ++i)
      to[i] =
          static_cast<std::int32_t>(static_cast<std::uint32_t>(to[i]) + static_cast<std::uint32_t>(from[i * stride]));
  }

  const packed_convolution<A>* weights_;
  convolution_input x_;
  byte_rows bytes_;
  row_band band_;
  bool in_place_, lies_in_place_ = false, by_rows_ = false, by_sums_ = false, by_squares_ = false;
  index_t filled_, behind_ = 0;  // channels that are filled at once, and of them those before the group's
  index_t step_ = 0, pixel_step_ = 0, row_units_ = 0, segment_quads_ = 0;
  line_array<std::uint8_t> line_, terms_;
  line_array<unit> units_;
  const unit* first_ = nullptr;
  index_t copied_from_ = std::numeric_limits<index_t>::max();  // from these units on they are in units_
  std::vector<const unit*> pixels_;
  line_array<std::int32_t> place_sums_, window_sums_, place_products_, window_products_, columns_;
  std::vector<index_t> offsets_, row_offsets_;
};

}  // namespace qtensor::inline QTENSOR_ABI::ops
