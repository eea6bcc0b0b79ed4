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
    const auto* from = static_cast<const std::uint8_t*>(codes.codes) + map.at(batch, first, at);
    const std::int64_t zero = std::int64_t{codes.zero_point} - ops::sign_offset(codes.sign);
    for (index_t c = 0; c < n; ++c, from += map.channel_stride) {
      const float scale = scales[scales.size() == 1 ? 0 : static_cast<std::size_t>(first + c)];
      for (index_t p = 0; p < places; ++p) {
        const std::int64_t number = ops::signed_number(from[p * map.spatial[2]], codes.sign) - zero;
        to[p * step + c] = rounded(static_cast<float>(number) * scale);
      }
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
  static constexpr index_t width = tile::panel;
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
      of_parts.push_back({{s_, x_, w_.form(), rows_, cols_}, line_array<float>(convolution_pixels * s_.depth())});
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
    alignas(64) float sums[convolution_pixels * width] = {};
    for (index_t pixel = 0; pixel < block.pixels(); pixel += convolution_pixels) {
      const index_t count = std::min(convolution_pixels, block.pixels() - pixel);
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
/// input, or anything that reads channels as they do. Bits depend on no thread, tile or CPU.
template <class X, class Sink, simd::usable_arch A, executor By = serial>
void convolve_floats(const packed_float_convolution<A>& w, const X& x, const Sink& sink, const By& by = {}) {
  const convolution_shape& s = w.shape();
  if (s.is_empty()) return;
  ops::float_convolution_run<A, X, Sink>(w, x, sink, by.concurrency()).over(by);
}

}  // namespace qtensor::inline QTENSOR_ABI
