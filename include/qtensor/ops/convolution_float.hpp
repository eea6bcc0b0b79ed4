// Convolutions by float products: for scales along the input channels, and for floats.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <qtensor/ops/convolution_sinks.hpp>
#include <qtensor/simd/gemm_float.hpp>

// Every output is reference::convolution_chain, bit for bit: one chain of fused multiply-adds over ascending taps and,
// under each tap, ascending input channels, from +0; padding and holes are factors of 0.
namespace qtensor::inline QTENSOR_ABI {

/// Activations that are floats in memory.
struct float_activations {
  const float* data;
  activation_map map;

  /// Channels [first, first + n) of a place to to[0, n).
  void read(index_t batch, index_t first, index_t n, const convolution_shape::position& at, float* to) const {
    const float* from = data + map.at(batch, first, at);
    for (index_t c = 0; c < n; ++c) to[c] = from[c * map.channel_stride];
  }
};

/// Activations that are codes, as RN((code - zero point) * scale): one scale, or one for each channel.
struct code_activations {
  convolution_input codes;
  activation_map map;
  std::span<const float> scales;

  void read(index_t batch, index_t first, index_t n, const convolution_shape::position& at, float* to) const {
    const auto* from = static_cast<const std::uint8_t*>(codes.codes) + map.at(batch, first, at);
    const std::int64_t zero = std::int64_t{codes.zero_point} - ops::sign_offset(codes.sign);
    for (index_t c = 0; c < n; ++c) {
      const std::int64_t number = ops::signed_number(from[c * map.channel_stride], codes.sign) - zero;
      to[c] =
          rounded(static_cast<float>(number) * scales[scales.size() == 1 ? 0 : static_cast<std::size_t>(first + c)]);
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
  packed_float_convolution(const convolution_plan& plan, const Element& element) : plan_(plan) {
    const convolution_shape& s = plan.shape;
    values_ = ops::line_array<float>(qtensor::detail::checked_product(groups() * panels() * width, s.depth()));
    for (index_t o = 0; o < s.outputs; ++o) {
      const index_t in_group = o % s.group_outputs();
      float* to =
          values_.data() + (o / s.group_outputs() * panels() + in_group / width) * s.depth() * width + in_group % width;
      reference::for_each_position(reference::taps_of(s), [&](const convolution_shape::position& tap) {
        for (index_t i = 0; i < s.group_inputs(); ++i, to += width) *to = element(o, i, tap);
      });
    }
  }
  const convolution_plan& plan() const { return plan_; }
  const convolution_shape& shape() const { return plan_.shape; }
  index_t groups() const { return shape().groups * shape().batch_groups; }
  index_t panels() const { return shape().outputs == 0 ? 0 : divide_up(shape().group_outputs(), width); }
  const float* panel(index_t group, index_t p) const {
    return values_.data() + (group * panels() + p) * shape().depth() * width;
  }

 private:
  convolution_plan plan_;
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

/// The terms of some pixels side by side: to[p * depth + k], k over taps and input channels.
template <class X>
void gather_terms(const convolution_shape& s, const X& x, index_t n, index_t group, index_t pixel, index_t pixels,
                  float* to) {
  const index_t inputs = s.group_inputs(), first = group % s.groups * inputs;
  const index_t batch = n + group / s.groups * s.result_batch();
  for (index_t p = pixel; p < pixel + pixels; ++p) {
    const convolution_shape::position at = s.pixel_at(p);
    reference::for_each_position(reference::taps_of(s), [&](const convolution_shape::position& tap) {
      const reference::tap_source source = reference::source_of(s, at, tap);
      if (source.inside)
        x.read(batch, first, inputs, source.from, to);
      else
        std::fill_n(to, inputs, 0.f);
      to += inputs;
    });
  }
}

}  // namespace ops

/// Float products, in tiles for a sink of product_tile (row: batch * pixels + pixel, column: output), which cover the
/// result once, in any order, from any thread of the executor. x is float_activations or code_activations of the plan's
/// input, or anything that reads channels as they do. Bits depend on no thread, tile or CPU.
template <class X, class Sink, simd::usable_arch A, executor By = serial>
void convolve_floats(const packed_float_convolution<A>& w, const X& x, const Sink& sink, const By& by = {}) {
  using tile = simd::float_tile<A>;
  const convolution_shape& s = w.shape();
  if (s.result_batch() == 0 || s.outputs == 0 || s.pixels() == 0) return;
  const index_t depth = s.depth(), pixels = s.pixels(), chunks = divide_up(pixels, tile::max_rows);
  const index_t items = s.result_batch() * chunks;
  const index_t parts =
      qtensor::detail::part_count(by, items, 1, tile::max_rows * s.outputs * std::max(index_t{1}, depth));
  std::vector<ops::line_array<float>> memory;
  memory.reserve(static_cast<std::size_t>(parts));
  for (index_t i = 0; i < parts; ++i) memory.emplace_back(std::max(index_t{1}, depth * tile::max_rows));
  qtensor::detail::for_ranges(by, parts, items, 1, [&](index_t part, index_t begin, index_t count) {
    float* terms = memory[static_cast<std::size_t>(part)].data();
    alignas(64) float sums[tile::max_rows * tile::panel];
    for (index_t item = begin; item < begin + count; ++item)
      for (index_t g = 0; g < w.groups(); ++g) {
        const index_t n = item / chunks, pixel = item % chunks * tile::max_rows;
        const index_t all = std::min(tile::max_rows, pixels - pixel);
        ops::gather_terms(s, x, n, g, pixel, all, terms);
        for (index_t p = 0; p < w.panels(); ++p) {
          const index_t channels = std::min(tile::panel, s.group_outputs() - p * tile::panel);
          const index_t vectors = divide_up(channels, simd::lanes<A>);
          for (index_t r = 0; r < all;) {
            const index_t rows = tile::rows(all - r);
            simd::fma_tile<A>(w.panel(g, p), tile::panel, vectors, {terms + r * depth, depth, 1}, rows, depth,
                              sums + r * tile::panel, true);
            r += rows;
          }
          sink(product_tile{n * pixels + pixel, g * s.group_outputs() + p * tile::panel, all, channels, sums,
                            tile::panel});
        }
      }
  });
}

}  // namespace qtensor::inline QTENSOR_ABI
