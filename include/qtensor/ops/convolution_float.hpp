// Convolutions by float products: for scales along the input channels, and for floats.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <qtensor/ops/convolution_sinks.hpp>
#include <qtensor/ops/float_rows.hpp>
#include <qtensor/simd/gemm_float.hpp>

// Every output is reference::convolution_chain, bit for bit: one chain of fused multiply-adds over ascending taps and,
// under each tap, ascending input channels, from +0; padding and holes are factors of 0.
namespace qtensor::inline QTENSOR_ABI {

/// Activations that are floats in memory.
struct float_activations {
  const float* data;
  activation_map map;

  /// Channels [first, first + n) of `places` places of a row, the first of them at `at`: to[place * step + c].
  void read(index_t batch, index_t first, index_t n, const convolution_shape::position& at, index_t places, float* to,
            index_t step) const {
    const float* from = data + map.at(batch, first, at);
    if (map.channel_stride == 1) return simd::copy_rows(from, map.spatial[2], places, n, to, step);
    if (map.spatial[2] == 1) return simd::transpose(from, map.channel_stride, places, n, to, step);
    for (index_t p = 0; p < places; ++p)
      for (index_t c = 0; c < n; ++c) to[p * step + c] = from[p * map.spatial[2] + c * map.channel_stride];
  }
};

/// Activations that are codes, as RN((code - zero point) * scale): one scale, or one for each channel.
struct code_activations {
  convolution_input codes;
  activation_map map;
  std::span<const float> scales;

  void read(index_t batch, index_t first, index_t n, const convolution_shape::position& at, index_t places, float* to,
            index_t step) const {
    constexpr index_t piece = 64;
    const auto* from = static_cast<const std::uint8_t*>(codes.codes) + map.at(batch, first, at);
    const index_t apart = map.spatial[2];
    const bool is_run = step == n && scales.size() == 1;  // as if all were of one channel
    if (map.channel_stride == 1 || n == 1) {
      if (is_run && apart == n) return read_run(from, first, places * n, to);
      for (index_t p = 0; p < places; ++p) read_run(from + p * apart, first, n, to + p * step);
      return;
    }
    // Pieces of some places and channels, with the channels of a place side by side.
    std::uint8_t side_by_side[piece * piece];
    for (index_t p = 0; p < places; p += piece)
      for (index_t c = 0; c < n; c += piece) {
        const index_t high = std::min(piece, places - p), wide = std::min(piece, n - c);
        const std::uint8_t* codes_at = from + p * apart + c * map.channel_stride;
        if (apart == 1)
          simd::transpose(codes_at, map.channel_stride, high, wide, side_by_side, wide);
        else
          for (index_t i = 0; i < high * wide; ++i)
            side_by_side[i] = codes_at[i / wide * apart + i % wide * map.channel_stride];
        if (is_run && wide == n)
          read_run(side_by_side, first, high * n, to + p * n);
        else
          for (index_t i = 0; i < high; ++i)
            read_run(side_by_side + i * wide, first + c, wide, to + (p + i) * step + c);
      }
  }

 private:
  /// n codes side by side, of channels from `first` on or, with one scale, of any.
  void read_run(const std::uint8_t* from, index_t first, index_t n, float* to) const {
    using A = simd::best_arch;
    constexpr index_t lanes = simd::lanes<A>;
    constexpr std::int32_t farthest = 1 << 30;  // from which a difference of any code stays in 32 bits
    const bool is_single = scales.size() == 1, is_signed = codes.sign == simd::code_sign::is_signed;
    const float* const scale = scales.data() + (is_single ? 0 : first);
    if (codes.zero_point < -farthest || codes.zero_point > farthest) {
      for (index_t i = 0; i < n; ++i) {
        const std::int64_t code = ops::signed_number(from[i], codes.sign) + ops::sign_offset(codes.sign);
        to[i] = rounded(static_cast<float>(code - codes.zero_point) * scale[is_single ? 0 : i]);
      }
      return;
    }
    const simd::ints<A> zero(codes.zero_point);
    for (index_t i = 0; i < n; i += lanes) {
      const index_t some = std::min(lanes, n - i);
      const simd::ints<A> code = is_signed ? simd::widen_i8_n<A>(from + i, some)
                                           : simd::bits_as<std::int32_t>(simd::widen_u8_n<A>(from + i, some));
      const simd::floats<A> by = is_single ? simd::floats<A>(scale[0]) : simd::load_n<A>(scale + i, some);
      simd::store_n(to + i, some, simd::mul(simd::to_float(code - zero), by));
    }
  }
};

/// Float weights of one convolution in the order in which its tiles read them.
template <simd::usable_arch A = simd::best_arch>
class packed_float_convolution {
 public:
  using arch = A;
  static constexpr index_t width = simd::float_tile<A>::panel;

  /// element(output, input channel in the group, tap) gives a weight as a float.
  template <class Element>
  packed_float_convolution(const convolution_plan& plan, const Element& element)
      : plan_(plan.shape.depth() > 0 ? plan : ops::without_terms(plan)) {
    const convolution_shape& s = shape();
    ops::check_places(s);
    // Groups of few outputs leave most lanes of a tile idle.
    if (s.groups > 1 && 4 * s.group_outputs() <= simd::lanes<A>) form_ = ops::convolution_form::channels;
    if (s.depth() == 0) return;  // of any number of outputs
    values_ = ops::line_array<float>(qtensor::detail::checked_product(parts() * panels() * width, s.depth()));
    for (index_t o = 0; o < s.outputs; ++o) {
      const index_t at = o % part_outputs();
      float* to = values_.data() + (o / part_outputs() * panels() + at / width) * s.depth() * width + at % width;
      reference::for_each_position(reference::taps_of(s), [&](const convolution_shape::position& tap) {
        for (index_t i = 0; i < s.group_inputs(); ++i, to += width) *to = element(o, i, tap);
      });
    }
  }
  const convolution_plan& plan() const { return plan_; }
  const convolution_shape& shape() const { return plan_.shape; }
  /// `pixels`: in tiles; `channels`: every output on a lane of its own (depthwise, and groups of few outputs).
  ops::convolution_form form() const { return form_; }
  /// Outputs that are computed from the same rows of input: those of a group, or of a panel of lanes.
  index_t part_outputs() const { return form_ == ops::convolution_form::channels ? width : shape().group_outputs(); }
  index_t parts() const { return shape().outputs == 0 ? 0 : divide_up(shape().outputs, part_outputs()); }
  /// Panels of a part, and the weights of one: [tap][input channel][width].
  index_t panels() const { return shape().outputs == 0 ? 0 : divide_up(part_outputs(), width); }
  const float* panel(index_t part, index_t p) const {
    return values_.data() + (part * panels() + p) * shape().depth() * width;
  }

 private:
  convolution_plan plan_;
  ops::convolution_form form_ = ops::convolution_form::pixels;
  ops::line_array<float> values_;
};

/// Weights of 8-bit codes for a float product: RN((code - zero point) * scale), where scales are one, one an output
/// (`of_outputs`), or one an input channel of the whole convolution (`of_inputs`).
enum class weight_scales { of_outputs, of_inputs };
template <simd::usable_arch A = simd::best_arch>
packed_float_convolution<A> pack_convolution_floats(const convolution_plan& plan, const convolution_weights& w,
                                                    std::span<const float> scales, weight_scales along) {
  const convolution_shape& s = plan.shape;
  const index_t needed = along == weight_scales::of_outputs ? s.outputs : s.inputs;
  require(scales.size() == 1 || scales.size() == static_cast<std::size_t>(needed), "there are ", scales.size(),
          " scales for ", needed, along == weight_scales::of_outputs ? " outputs" : " input channels",
          "; there is 1, or one for each.");
  require(w.zero_points.size() <= 1 || w.zero_points.size() == static_cast<std::size_t>(s.outputs), "the weights have ",
          w.zero_points.size(), " zero points for ", s.outputs, " outputs; there are none, 1 or ", s.outputs, ".");
  const auto* codes = static_cast<const std::uint8_t*>(w.codes);
  return packed_float_convolution<A>(plan, [&](index_t o, index_t i, const convolution_shape::position& tap) {
    const std::size_t zero_at = w.zero_points.size() > 1 ? static_cast<std::size_t>(o) : 0;
    const std::int64_t zero =
        std::int64_t{w.zero_points.empty() ? 0 : w.zero_points[zero_at]} - ops::sign_offset(w.sign);
    const index_t entry = along == weight_scales::of_outputs ? o : s.first_input(o) + i;
    const float scale = scales[scales.size() == 1 ? 0 : static_cast<std::size_t>(entry)];
    return rounded(static_cast<float>(ops::signed_number(codes[plan.kernel.at(o, i, tap)], w.sign) - zero) * scale);
  });
}

namespace ops {

/// A convolution of floats in blocks of outputs, whose input stays in L2.
template <simd::usable_arch A, class X, class Sink>
class float_convolution_run {
  using tile = simd::float_tile<A>;
  static constexpr index_t width = tile::panel, at_once = usual_convolution_pixels;
  static_assert(width == simd::channel_panel<A>);

 public:
  float_convolution_run(const packed_float_convolution<A>& w, const X& x, const Sink& sink, index_t threads)
      : w_(w), x_(x), sink_(sink), s_(w.shape()) {
    constexpr index_t floats_wanted = 64 * 1024, fewest = 16;
    const convolution_axis &h = s_.axes[1], &row = s_.axes[2];
    const index_t share = divide_up(s_.result_batch() * s_.pixels(), threads);
    const index_t line = std::max(index_t{1}, place_floats<A>(s_, w.form()) * s_.axes[0].taps);
    const auto most = [&](const convolution_axis& a, index_t places) { return (places - a.reach()) / a.stride + 1; };
    cols_ = std::min(std::max(most(row, floats_wanted / line / std::max(index_t{1}, h.reach())), fewest), row.out());
    if (cols_ == row.out())
      rows_ = std::min(most(h, floats_wanted / line / ((cols_ - 1) * row.stride + row.reach() + 1)), share / cols_);
    rows_ = std::clamp(rows_, index_t{1}, h.out());
    if (rows_ == 1) cols_ = std::min(cols_, std::max(share, fewest));
  }

  template <executor By>
  void over(const By& by) const {
    const index_t high = divide_up(s_.axes[1].out(), rows_), wide = divide_up(s_.axes[2].out(), cols_);
    const index_t items = s_.result_batch() * s_.axes[0].out() * high * wide;
    const index_t work = rows_ * cols_ * s_.outputs * std::max(index_t{1}, s_.depth());
    const index_t parts = qtensor::detail::part_count(by, items, 1, work);
    std::vector<memory> of_parts;
    of_parts.reserve(static_cast<std::size_t>(parts));
    for (index_t i = 0; i < parts; ++i)
      of_parts.push_back({{s_, x_, w_.form(), rows_, cols_}, line_array<float>(at_once * s_.depth())});
    qtensor::detail::for_ranges(by, parts, items, 1, [&](index_t part, index_t begin, index_t count) {
      for (index_t item = begin; item < begin + count; ++item) {
        const index_t row = item / wide % high * rows_, col = item % wide * cols_, outer = item / wide / high;
        const output_block block{outer % s_.axes[0].out(), row, std::min(rows_, s_.axes[1].out() - row), col,
                                 std::min(cols_, s_.axes[2].out() - col)};
        for (index_t p = 0; p < w_.parts(); ++p)
          compute(of_parts[static_cast<std::size_t>(part)], outer / s_.axes[0].out(), p, block);
      }
    });
  }

 private:
  struct memory {
    float_rows_of<A, X> rows;
    line_array<float> terms;
  };

  void compute(memory& m, index_t n, index_t part, const output_block& block) const {
    const index_t begin = ((n * s_.axes[0].out() + block.depth) * s_.axes[1].out() + block.row) * s_.axes[2].out();
    m.rows.fill(n, part, block);
    alignas(64) float sums[at_once * width] = {};
    for (index_t pixel = 0; pixel < block.pixels(); pixel += at_once) {
      const index_t count = std::min(at_once, block.pixels() - pixel);
      if (w_.form() == convolution_form::pixels) m.rows.gather(pixel, count, m.terms.data());
      for (index_t p = 0; p < w_.panels(); ++p) {
        const index_t in_part = p * width, output = part * w_.part_outputs() + in_part;
        const index_t columns = std::min({width, w_.part_outputs() - in_part, s_.outputs - output});
        if (w_.form() == convolution_form::pixels)
          multiply_tiles(w_.panel(part, p), m.terms.data(), count, columns, sums);
        else
          multiply_lanes(w_.panel(part, p), m.rows, pixel, count, columns, sums);
        sink_(product_tile{begin + block.col + pixel, output, count, columns, sums, width});
      }
    }
  }
  void multiply_tiles(const float* panel, const float* terms, index_t count, index_t columns, float* sums) const {
    const index_t depth = s_.depth(), vectors = divide_up(columns, simd::lanes<A>);
    for (index_t r = 0, rows; r < count; r += rows) {
      rows = tile::rows(count - r);
      simd::fma_tile<A>(panel, width, vectors, {terms + r * depth, depth, 1}, rows, depth, sums + r * width, true);
    }
  }
  void multiply_lanes(const float* panel, const float_rows_of<A, X>& rows, index_t pixel, index_t count,
                      index_t columns, float* sums) const {
    for (index_t r = 0; r < count; r += simd::channel_rows)
      simd::fma_taps_tile<A, simd::fused_step>(panel, rows.pixels() + pixel + r,
                                               std::min(simd::channel_rows, count - r), rows.offsets(), s_.depth(),
                                               sums + r * width, columns);
  }

  const packed_float_convolution<A>& w_;
  const X& x_;
  const Sink& sink_;
  const convolution_shape& s_;
  index_t rows_ = 1, cols_ = 1;
};

}  // namespace ops

/// Float products, in tiles for a sink of product_tile (row: batch * pixels + pixel, column: output), which cover the
/// result once, in any order, from any thread of the executor. x is float_activations or code_activations of the plan's
/// input, or anything that reads channels as they do. Bits depend on no thread, tile or CPU. Throws where codes have
/// other scales than one, or one for each channel.
template <class X, class Sink, simd::usable_arch A, executor By = serial>
void convolve_floats(const packed_float_convolution<A>& w, const X& x, const Sink& sink, const By& by = {}) {
  const convolution_shape& s = w.shape();
  if constexpr (std::same_as<X, code_activations>)
    require(x.scales.size() == 1 || x.scales.size() == static_cast<std::size_t>(w.plan().input.channels),
            "the activations have ", x.scales.size(), " scales for ", w.plan().input.channels,
            " channels; there is 1, or one for each.");
  if (s.is_empty()) return;
  ops::float_convolution_run<A, X, Sink>(w, x, sink, by.concurrency()).over(by);
}

}  // namespace qtensor::inline QTENSOR_ABI
