// Convolutions of 8-bit codes: exact sums on the integer tiles, handed tile by tile to a sink.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <qtensor/core/executor.hpp>
#include <qtensor/ops/convolution_lanes.hpp>
#include <qtensor/ops/convolution_rows.hpp>

namespace qtensor::inline QTENSOR_ABI {

/// A finished part of a convolution: the sum of pixel `pixel + p` (counted through depth, height and width of the
/// result) and channel `channel + c` of result batch `batch` is sums[p * stride + c]. The sink may change the sums.
struct convolution_tile {
  index_t batch, pixel, channel, pixels, channels;
  std::int32_t* sums;
  index_t stride;
};

/// Pixels of a tile at most; its stride is at most `convolution_stride`.
inline constexpr index_t convolution_pixels = 96;
/// Pixels of a tile whose sink asks for no more: one with many stores to make of each may have fewest_pixels().
inline constexpr index_t usual_convolution_pixels = 24;
template <simd::usable_arch A>
inline constexpr index_t convolution_stride = std::max(simd::int_tile<A>::panel, simd::channel_panel<A>);

namespace ops {

/// Pixels that a sink wants at once: two, or what it or its result `y` says.
template <class Sink>
index_t fewest_pixels(const Sink& sink) {
  if constexpr (requires { sink.fewest_pixels(); })
    return sink.fewest_pixels();
  else if constexpr (requires { sink.y.fewest_pixels(); })
    return sink.y.fewest_pixels();
  else
    return 2;
}

/// A sink that can say beforehand where the sums of half a panel's channels or a whole one's go: where is_direct(), an
/// object direct<Channels>(batch, pixel, channel) takes (p, count, sums) for pixels from pixel + p on, sums Channels
/// apart, and nothing it stores changes it.
template <class Sink>
concept direct_sink = requires(const Sink& s, index_t n) {
  s.is_direct();
  s.template direct<square_channels>(n, n, n);
};

/// The driver of one convolution over an executor.
template <simd::usable_arch A, class Sink>
class convolution_run {
  using unit = typename simd::quad_dot<A>::unit;

 public:
  /// x with a code for a zero point, which padding has; sums are less `distance` times the weights, as if none met it.
  convolution_run(const packed_convolution<A>& w, const convolution_input& x, const Sink& sink,
                  std::int64_t distance = 0)
      : w_(w), x_(x), sink_(sink), s_(w.shape()) {
    // Units are codes plus an offset, or as they are; sums start at what that and the zero point add.
    const std::int64_t zero = signed_number(static_cast<std::uint8_t>(x.zero_point), x.sign);
    sink_pixels_ = std::clamp(fewest_pixels(sink), usual_convolution_pixels, convolution_pixels);
    if constexpr (simd::square_unit<A>::exists) in_place_ = squares_read_in_place(w);
    const std::int64_t added = zero + (takes_signed_codes() ? 0 : simd::quad_dot<A>::unit_offset);
    start_ = line_array<std::int32_t>(w.group_count() * w.panels() * w.width());
    for (index_t i = 0; i < start_.size(); ++i) {
      const std::int64_t sum = w.sums(0, 0)[i], weights = sum - s_.depth() * w.zeros(0, 0)[i];
      start_[i] = static_cast<std::int32_t>(static_cast<std::uint32_t>(-added * sum - distance * weights));
    }
    if (w.form() == convolution_form::channels && w.has_zeros()) {
      ones_ = line_array<std::int8_t>(w.terms() * w.width());
      for (index_t n = 0; n < s_.taps(); ++n)
        for (index_t c = 0; c < w.width(); ++c) ones_[(w.place_of(n) / 4 * w.width() + c) * 4 + w.place_of(n) % 4] = 1;
      window_start_ = static_cast<std::int32_t>(-added * s_.depth());
    }
    if constexpr (simd::square_unit<A>::exists)
      if (convolves_by_squares(w))
        squares_ = square_panels<A>(w, is_direct() && s_.group_outputs() % simd::int_tile<A>::panel == 0);
    if constexpr (simd::sum_dot<A>::exists)
      if (convolves_by_sums(w)) {
        panel_units_ = w.segments() * w.segment_quads() * 4 * w.width();
        wide_ = line_array<unit>::for_overwrite(
            qtensor::detail::checked_product(w.group_count() * w.panels(), panel_units_));
        for (index_t i = 0; i < w.group_count() * w.panels(); ++i)
          simd::widen_panel<A>(w.panel(0, i), w.segments() * w.segment_quads(), wide_.data() + i * panel_units_,
                               start_.data() + i * w.width());
      }
  }

  template <executor By>
  void over(const By& by) const {
    const index_t rows = band_rows(by.concurrency());
    if (w_.form() == convolution_form::channels)
      over_bands<channel_rows_of<A>>(by, rows, [&](auto& of, index_t n, index_t d, index_t first, index_t count) {
        channels(of, n, d, first, count);
      });
    else
      over_bands<unit_rows_of<A>>(
          by, rows, [&](auto& of, index_t n, index_t d, index_t first, index_t count) { dots(of, n, d, first, count); },
          in_place_);
  }

 private:
  /// Rows of output that are computed together: enough pixels to read the weights for, input that stays in L2, several
  /// times the rows that are read again by the next, and no short tiles where another number of rows leaves none.
  index_t band_rows(index_t threads) const {
    constexpr index_t pixels_wanted = 128;
    const index_t height = panel_units_ > 0 ? simd::sum_tile_rows : simd::int_tile<A>::max_rows;
    const convolution_axis &h = s_.axes[1], &w = s_.axes[2];
    const bool lanes = w_.form() == convolution_form::channels;
    const bool squares = squares_.segment_quads() > 0;
    const index_t bytes_wanted = lanes ? 512 * 1024 : 256 * 1024;
    const index_t place = lanes ? 4 * simd::channel_panel<A> : s_.group_inputs();
    const index_t line = std::max(index_t{1}, (w.in + w.reach()) * place * s_.axes[0].taps);
    const index_t kept = std::max(index_t{1}, (bytes_wanted / line - h.reach()) / h.stride + 1);
    const index_t enough = std::max(divide_up(pixels_wanted, w.out()), 4 * (h.reach() - h.stride));
    const index_t wanted = lanes || squares ? kept : std::min(kept, enough);
    const index_t others = s_.result_batch() * s_.axes[0].out();
    const index_t share = threads > others ? divide_up(h.out(), divide_up(threads, others)) : h.out();
    const index_t least = std::clamp(std::min(wanted, share), index_t{1}, h.out());
    if (squares) return square_band_rows(least);
    for (index_t rows = least; rows < 2 * least && rows <= share; ++rows)
      if (rows * w.out() % height == 0) return rows;
    return least;
  }

  /// Of at most so many: the results stay in the second cache where several panels write parts of them, and all bands
  /// have nearly as many.
  index_t square_band_rows(index_t most) const {
    constexpr index_t result_bytes = index_t{1} << 20;
    const index_t row = s_.axes[2].out() * s_.outputs * index_t{sizeof(std::int32_t)};
    const index_t kept = w_.panels() == 1 ? most : std::clamp(result_bytes / row, index_t{1}, most);
    return divide_up(s_.axes[1].out(), divide_up(s_.axes[1].out(), kept));
  }
  /// Whether units are signed codes as they are.
  bool takes_signed_codes() const { return in_place_ && x_.sign == simd::code_sign::is_signed; }
  /// Whether the sink says beforehand where the sums of whole panels go.
  bool is_direct() const {
    if constexpr (direct_sink<Sink>)
      return !w_.has_zeros() && sink_.is_direct();
    else
      return false;
  }

  /// What one thread works with: a band, and room for the sums of a tile and of its windows.
  template <class Band>
  struct working_memory {
    Band band;
    line_array<std::int32_t> sums, windows;
  };
  /// `more`: what a band is made of besides.
  template <class Band, class By, class Body, class... More>
  void over_bands(const By& by, index_t rows, const Body& body, const More&... more) const {
    const index_t height = s_.axes[1].out(), depth = s_.axes[0].out(), bands = divide_up(height, rows);
    const index_t items = s_.result_batch() * depth * bands;
    const index_t work = rows * s_.axes[2].out() * s_.outputs * std::max(index_t{1}, s_.depth() / 16);
    const index_t parts = qtensor::detail::part_count(by, items, 1, work);
    const index_t tile = sink_pixels_ * w_.width(), windows = ones_.size() > 0 ? tile : 0;
    std::vector<working_memory<Band>> memory;
    memory.reserve(static_cast<std::size_t>(parts));
    for (index_t i = 0; i < parts; ++i)
      memory.push_back(
          {Band(w_, x_, rows, more...), line_array<std::int32_t>(tile), line_array<std::int32_t>(windows)});
    qtensor::detail::for_ranges(by, parts, items, 1, [&](index_t part, index_t begin, index_t count) {
      for (index_t item = begin; item < begin + count; ++item) {
        const index_t first = item % bands * rows, d = item / bands % depth;
        body(memory[static_cast<std::size_t>(part)], item / bands / depth, d, first, std::min(rows, height - first));
      }
    });
  }

  void dots(working_memory<unit_rows_of<A>>& memory, index_t n, index_t d, index_t first, index_t rows) const {
    unit_rows_of<A>& band = memory.band;
    std::int32_t* const sums = memory.sums.data();
    constexpr index_t width = simd::int_tile<A>::panel;
    const index_t cols = s_.axes[2].out(), begin = (d * s_.axes[1].out() + first) * cols;
    for (index_t g = 0; g < w_.group_count(); ++g) {
      const index_t channel = g * s_.group_outputs();
      band.fill(s_.source_batch(n, channel), s_.first_input(channel), d, first, rows);
      for (index_t p = 0; p < w_.panels(); ++p) {
        const index_t channels = std::min(width, s_.group_outputs() - p * width);
        const auto give = [&](index_t pixel, index_t count, std::int32_t* of) {
          if (w_.has_zeros())
            take_zeros<width>(w_.zeros(g, p), count, of, [&](index_t r, index_t) QTENSOR_INLINE_LAMBDA {
              return simd::ints<A>(band.window_sums()[pixel + r]);
            });
          sink_(convolution_tile{n, begin + pixel, channel + p * width, count, channels, of, width});
        };
        if constexpr (simd::square_unit<A>::exists)
          if (squares_.segment_quads() > 0 && band.by_squares()) {
            squares(band, n, begin, rows, g, p, give);
            continue;
          }
        const panel_sums sum = sums_of(band, g, p);
        simd::for_each_row_tile(rows * cols, sink_pixels_, [&](index_t pixel, index_t count) {
          sum(pixel, count, sums);
          give(pixel, count, sums);
        });
      }
    }
  }
  /// A panel of weights and the pixels of a band that meet it, on vectors.
  struct panel_sums {
    const std::int8_t* panel;
    const unit* wide;  // the panel for products of sums, or null
    const std::int32_t* start;
    index_t channels, cols, pixel_step;
    const unit* const* pixels;
    const std::int32_t* products;
    simd::tap_segments taps, runs;

    /// Of pixels [pixel, pixel + count), counted through rows of `cols`.
    [[gnu::noinline]] void operator()(index_t pixel, index_t count, std::int32_t* sums) const {
      constexpr index_t width = simd::int_tile<A>::panel;
      if constexpr (simd::has_row_tiles<A>)
        if (channels <= simd::lanes<A> && runs.count > 0) {
          for (index_t end = pixel + count, some; pixel < end; pixel += some, sums += some * width) {
            const index_t left = std::min(end - pixel, cols - pixel % cols);  // of a row
            some = divide_up(left, divide_up(left, simd::row_tile_pixels));
            simd::dot_row_tile<A>(panel, pixels[pixel], pixel_step, some, runs, start, sums);
          }
          return;
        }
      const index_t height = wide != nullptr ? simd::sum_tile_rows : simd::int_tile<A>::max_rows;
      simd::for_each_row_tile(count, height, [&](index_t r, index_t some) {
        const auto* const rows = pixels + pixel + r;
        if constexpr (simd::sum_dot<A>::exists)
          if (wide != nullptr)
            return simd::dot_sums_tile<A>(wide, rows, some, taps, products + pixel + r, start, sums + r * width);
        simd::dot_taps_tile<A>(panel, rows, some, taps, start, sums + r * width, channels);
      });
    }
  };
  panel_sums sums_of(unit_rows_of<A>& band, index_t g, index_t p) const {
    constexpr index_t width = simd::int_tile<A>::panel;
    const index_t at = g * w_.panels() + p;
    return {w_.panel(g, p),
            panel_units_ > 0 ? wide_.data() + at * panel_units_ : nullptr,
            start_.data() + at * width,
            std::min(width, s_.group_outputs() - p * width),
            s_.axes[2].out(),
            band.pixel_step(),
            band.pixels(),
            band.window_products(),
            band.segments(),
            band.row_runs()};
  }
  /// Panel p of group g on matrix registers, for rows of a band that begin at a pixel: sums go where the sink says
  /// beforehand, or to give(pixel, count, sums).
  template <class Give>
  void squares(const unit_rows_of<A>& band, index_t n, index_t begin, index_t rows, index_t g, index_t p,
               const Give& give) const requires(simd::square_unit<A>::exists) {
    constexpr index_t width = simd::int_tile<A>::panel;
    const index_t first = p * width, channels = std::min(width, s_.group_outputs() - first);
    const simd::tap_segments taps = band.segments();
    const auto panel = [&](index_t c) {
      return simd::square_taps<A>{{nullptr, band.pixel_step()},
                                  squares_.panel(g, p, c),
                                  {taps.offsets, taps.count, squares_.segment_quads()},
                                  start_.data() + g * w_.panels() * width + first + c,
                                  squares_.columns()};
    };
    const auto sum_units = [&]<index_t Columns, simd::code_sign Units>(const auto& give_channels) {
      square_convolution<A, Sink, Columns, Units>(fewest_pixels(sink_))
          .over(
              band.places(rows), [&](index_t at) { return band.square_at(at); }, channels, panel, give_channels);
    };
    const auto sum = [&]<index_t Columns>(const auto& give_channels) {
      if (takes_signed_codes())
        sum_units.template operator()<Columns, simd::code_sign::is_signed>(give_channels);
      else
        sum_units.template operator()<Columns, simd::code_sign::is_unsigned>(give_channels);
    };
    if constexpr (direct_sink<Sink>)
      if (is_direct() && channels == width) {
        const auto sum_directly = [&]<index_t Columns>() {
          sum.template operator()<Columns>([&](index_t c) QTENSOR_INLINE_LAMBDA {
            return sink_.template direct<Columns>(n, begin, g * s_.group_outputs() + first + c);
          });
        };
        return squares_.columns() == width ? sum_directly.template operator()<width>()
                                           : sum_directly.template operator()<square_channels>();
      }
    sum.template operator()<width>([&](index_t) -> const auto& { return give; });
  }
  /// Less the weights' zero points times the sums of windows, window(pixel, column) for a vector of columns.
  template <index_t Width, class Window>
  static void take_zeros(const std::int32_t* zeros, index_t count, std::int32_t* sums, const Window& window) {
    for (index_t r = 0; r < count; ++r)
      for (index_t c = 0; c < Width; c += simd::lanes<A>) {
        std::int32_t* at = sums + r * Width + c;
        simd::store(at, simd::load<A>(at) - simd::load<A>(zeros + c) * window(r, c));
      }
  }

  /// Pixels below each other come one after the other, as many as read rows that stay in the first cache.
  void channels(working_memory<channel_rows_of<A>>& memory, index_t n, index_t d, index_t first, index_t rows) const {
    channel_rows_of<A>& band = memory.band;
    std::int32_t *const sums = memory.sums.data(), *const windows = memory.windows.data();
    constexpr index_t width = simd::channel_panel<A>;
    const index_t cols = s_.axes[2].out(), begin = (d * s_.axes[1].out() + first) * cols;
    alignas(64) std::int32_t window_start[width];
    std::fill_n(window_start, width, window_start_);
    for (index_t p = 0; p < w_.panels(); ++p) {
      const index_t channels = std::min(width, s_.outputs - p * width);
      band.fill(n, p, d, first, rows);
      const auto sum = [&](const std::int8_t* panel, const std::uint8_t* pixel, index_t count,
                           const std::int32_t* start, std::int32_t* to) {
        simd::dot_lanes_tile<A>(panel, pixel, band.pixel_step(), count, band.offsets(), band.quads(), start, to,
                                channels);
      };
      simd::for_each_row_tile(cols, sink_pixels_, [&](index_t col, index_t count) {
        for (index_t row = 0; row < rows; ++row) {
          sum(w_.panel(0, p), band.pixel(row, col), count, start_.data() + p * width, sums);
          if (w_.has_zeros()) {
            sum(ones_.data(), band.pixel(row, col), count, window_start, windows);
            take_zeros<width>(w_.zeros(0, p), count, sums, [&](index_t r, index_t c) QTENSOR_INLINE_LAMBDA {
              return simd::load<A>(windows + r * width + c);
            });
          }
          sink_(convolution_tile{n, begin + row * cols + col, p * width, count, channels, sums, width});
        }
      });
    }
  }

  const packed_convolution<A>& w_;
  convolution_input x_;
  const Sink& sink_;
  const convolution_shape& s_;
  index_t sink_pixels_;  // that the sink gets at once
  line_array<std::int32_t> start_;
  line_array<unit> wide_;    // panels for products of sums, where tiles are
  index_t panel_units_ = 0;  // of each; 0: none
  square_panels<A> squares_;
  bool in_place_ = false;         // whether squares read the source where it lies
  line_array<std::int8_t> ones_;  // a panel of channels that sums windows, where weights have zero points
  std::int32_t window_start_ = 0;
};

/// Between the tiles and a sink where the source's zero point lies `distance` from the code that padding has: sums are
/// less that distance times all weights, and get it back for those that meet padding or holes.
template <simd::usable_arch A, class Sink>
class distant_zero_sink {
 public:
  static constexpr bool runs_beside = simd::runs_beside<Sink>;

  distant_zero_sink(const packed_convolution<A>& w, std::int64_t distance, const Sink& sink)
      : s_(w.shape()), tap_sums_(w.tap_sums().data()), distance_(static_cast<std::int32_t>(distance)), sink_(sink) {}
  index_t fewest_pixels() const { return ops::fewest_pixels(sink_); }
  void operator()(const convolution_tile& t) const {
    const index_t cols = s_.axes[2].out();
    for (index_t r = 0, n = 0; r < t.pixels; r += n) {
      convolution_shape::position at = s_.pixel_at(t.pixel + r);
      n = std::min(cols - at[2], t.pixels - r);
      const bool whole_rows = s_.axes[0].is_whole(at[0]) && s_.axes[1].is_whole(at[1]);
      for (index_t i = 0; i < n; ++i, ++at[2])
        if (!whole_rows || !s_.axes[2].is_whole(at[2])) give_back(at, t, t.sums + (r + i) * t.stride);
    }
    sink_(t);
  }

 private:
  void give_back(const convolution_shape::position& at, const convolution_tile& t, std::int32_t* sums) const {
    constexpr index_t step = simd::lanes<A>;
    const simd::ints<A> distance(distance_);
    const std::int32_t* weights = tap_sums_ + t.channel;
    reference::for_each_position(reference::taps_of(s_), [&](const convolution_shape::position& tap) {
      if (!reference::source_of(s_, at, tap).inside)
        for (index_t c = 0; c < t.channels; c += step) {
          const simd::ints<A> w = simd::load_n<A>(weights + c, std::min(step, t.channels - c));
          simd::store(sums + c, simd::load<A>(sums + c) + distance * w);
        }
      weights += s_.outputs;
    });
  }

  const convolution_shape& s_;
  const std::int32_t* tap_sums_;  // [tap][output]
  std::int32_t distance_;
  const Sink& sink_;
};

/// How far codes of 8 bits may be from a zero point.
inline std::int64_t farthest_from_zero(std::int32_t zero, simd::code_sign sign) {
  const std::int64_t distance = std::int64_t{zero} - nearest_code(zero, sign);
  return 255 + (distance < 0 ? -distance : distance);
}

/// Throws where the source's zero point is so far from its codes that a sum might leave 32 bits.
template <simd::usable_arch A>
void check_source_zero(const packed_convolution<A>& w, std::int32_t zero, simd::code_sign sign) {
  const std::int64_t farthest = farthest_from_zero(zero, sign);
  require(w.reach() < divide_up(std::int64_t{1} << 31, farthest), "the zero point of the source is ", zero, ", up to ",
          farthest, " from its codes, and weights come to ", w.reach(),
          ": sums may leave 32 bits; a convolution's sums are exact in 32 bits.");
}

/// What there is to check before a convolution, and whether it has results.
template <simd::usable_arch A>
bool has_results(const packed_convolution<A>& w, const convolution_input& x) {
  check_source_zero(w, x.zero_point, x.sign);
  return !w.shape().is_empty();
}

}  // namespace ops

/// The exact sums of a convolution, in tiles that cover the result once, in any order, from any thread of the executor:
/// sum of (x - zero point) (w - zero point) over taps and input channels; padding and holes are 0. x lies as the plan
/// of the weights says. Throws where the source's zero point is so far from its codes that sums might leave 32 bits;
/// std::bad_alloc. Bits depend on nothing else. Cost: a zero point that is one of the codes costs nothing, another
/// something for pixels below padding or holes only.
template <class Sink, simd::usable_arch A, executor By = serial>
void convolve(const packed_convolution<A>& w, const convolution_input& x, const Sink& sink, const By& by = {}) {
  if (!ops::has_results(w, x)) return;
  const std::int32_t code = ops::nearest_code(x.zero_point, x.sign);
  if (code == x.zero_point) return ops::convolution_run<A, Sink>(w, x, sink).over(by);
  using exact_sink = ops::distant_zero_sink<A, Sink>;
  const std::int64_t distance = std::int64_t{x.zero_point} - code;
  const exact_sink exact(w, distance, sink);
  ops::convolution_run<A, exact_sink>(w, {x.codes, x.sign, code}, exact, distance).over(by);
}

}  // namespace qtensor::inline QTENSOR_ABI
