// A convolution's weights in the order in which its kernels read them, built once.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>
#include <qtensor/ops/convolution_shape.hpp>
#include <qtensor/ops/line_array.hpp>
#include <qtensor/simd/gemm_taps.hpp>
#include <span>

namespace qtensor::inline QTENSOR_ABI {

/// 8-bit codes of weights in memory: signed or unsigned bytes, and their zero points: none (0), one, or one an output.
struct convolution_weights {
  const void* codes;
  simd::code_sign sign = simd::code_sign::is_signed;
  std::span<const std::int32_t> zero_points = {};
};

namespace ops {

/// How a convolution runs. Its terms are units (simd/ops_dot.hpp) that begin at a pixel of the padded input, under each
/// tap (`pixels`); or the units of a whole row of taps, copied together for each output (`rows`: few input channels);
/// or floats, every output on a lane of its own (`channels`: depthwise, and groups of few outputs).
enum class convolution_form { pixels, rows, channels };

/// A code's number as the kernels take it, less 128 where it is unsigned.
constexpr std::int32_t signed_number(std::uint8_t code, simd::code_sign sign) {
  return static_cast<std::int8_t>(code ^ static_cast<std::uint8_t>(sign));
}
constexpr std::int32_t sign_offset(simd::code_sign sign) { return sign == simd::code_sign::is_unsigned ? 128 : 0; }

/// The code nearest to a zero point, which padding gets.
constexpr std::int32_t nearest_code(std::int32_t zero, simd::code_sign sign) {
  const std::int32_t low = sign_offset(sign) - 128;
  return std::clamp(zero, low, low + 255);
}

}  // namespace ops

/// Weights of one convolution, packed by pack_convolution for architecture A: used by `convolve` any number of times.
template <simd::usable_arch A = simd::best_arch>
class packed_convolution {
 public:
  using arch = A;
  using form_type = ops::convolution_form;
  static constexpr index_t dot_width = simd::int_tile<A>::panel;

  packed_convolution(const convolution_plan& plan, const convolution_weights& w) : plan_(plan) {
    const convolution_shape& s = shape();
    require(w.zero_points.size() <= 1 || w.zero_points.size() == static_cast<std::size_t>(s.outputs),
            "the weights have ", w.zero_points.size(), " zero points for ", s.outputs,
            " outputs; there are none, 1 or ", s.outputs, ".");
    choose_form(std::ranges::all_of(w.zero_points, [&](std::int32_t z) { return z == ops::nearest_code(z, w.sign); }));
    const index_t padded = panels() * group_count() * width();
    sums_ = ops::line_array<std::int32_t>(padded);
    zeros_ = ops::line_array<std::int32_t>(padded);
    if (form_ == form_type::channels)
      lane_weights_ = ops::line_array<float>(
          qtensor::detail::checked_product(panels() * width(), qtensor::detail::checked_product(s.depth(), 1)));
    else
      dot_weights_ = ops::line_array<std::int8_t>(
          qtensor::detail::checked_product(group_count() * panels(), segments() * segment_quads() * width() * 4));
    if (s.depth() > 0)
      for (index_t o = 0; o < s.outputs; ++o) pack_output(o, w);
    else
      for (index_t o = 0; o < s.outputs; ++o) zeros_[entry(o)] = static_cast<std::int32_t>(signed_zero_of(o, w));
  }

  const convolution_plan& plan() const { return plan_; }
  const convolution_shape& shape() const { return plan_.shape; }
  form_type form() const { return form_; }
  /// Outputs of a panel, panels of a group, and groups that are computed one after the other.
  index_t width() const { return form_ == form_type::channels ? simd::channel_panel<A> : dot_width; }
  index_t panels() const {
    return divide_up(form_ == form_type::channels ? shape().outputs : shape().group_outputs(), width());
  }
  index_t group_count() const { return form_ == form_type::channels ? 1 : shape().groups * shape().batch_groups; }
  /// Runs of terms, and quads of each (forms pixels and rows).
  index_t segments() const {
    const convolution_shape& s = shape();
    const bool joined = form_ == form_type::rows || s.axes[2].tap_dilation == 1;
    return s.axes[0].taps * s.axes[1].taps * (joined ? 1 : s.axes[2].taps);
  }
  index_t segment_quads() const {
    const convolution_shape& s = shape();
    if (form_ == form_type::rows) return divide_up(s.axes[2].taps * s.group_inputs(), 4);
    const index_t tap = divide_up(s.group_inputs(), 4);
    return s.axes[2].tap_dilation == 1 ? tap * s.axes[2].taps : tap;
  }
  /// Codes of a panel, and the factors of the form `channels`: [tap][input channel][width].
  const std::int8_t* panel(index_t group, index_t p) const {
    return dot_weights_.data() + (group * panels() + p) * segments() * segment_quads() * width() * 4;
  }
  const float* lanes(index_t p) const { return lane_weights_.data() + p * shape().depth() * width(); }
  /// Of the outputs of a panel: the sum of the weights as signed numbers, and their zero points as such, modulo 2^32.
  const std::int32_t* sums(index_t group, index_t p) const { return sums_.data() + (group * panels() + p) * width(); }
  const std::int32_t* zeros(index_t group, index_t p) const { return zeros_.data() + (group * panels() + p) * width(); }
  /// Whether any weight has a zero point: then the sums of the source's codes count.
  bool has_zeros() const { return has_zeros_; }
  /// The largest that an output's weights less their zero point come to, taken without their signs.
  std::int64_t reach() const { return reach_; }
  /// These weights summed under each tap, modulo 2^32: [tap][output].
  ops::line_array<std::int32_t> tap_sums() const {
    const convolution_shape& s = shape();
    ops::line_array<std::int32_t> sums(qtensor::detail::checked_product(s.taps(), s.outputs));
    for (index_t o = 0; o < s.outputs; ++o)
      for_each_term([&](const convolution_shape::position& tap, index_t, index_t k) {
        const index_t number = (tap[0] * s.axes[1].taps + tap[1]) * s.axes[2].taps + tap[2];
        std::int32_t& sum = sums[number * s.outputs + o];
        sum = static_cast<std::int32_t>(static_cast<std::uint32_t>(sum) + number_at(entry(o), k));
      });
    return sums;
  }
  index_t size_bytes() const {
    return dot_weights_.size() + static_cast<index_t>(sizeof(float)) * (lane_weights_.size() + 2 * sums_.size());
  }

 private:
  void choose_form(bool zeros_are_codes) {
    const convolution_shape& s = shape();
    const index_t inputs = s.group_inputs(), taps = s.axes[2].taps, quads = divide_up(inputs, 4);
    if (divide_up(taps * inputs, 4) * 4 <= taps * quads * 3) form_ = form_type::rows;
    if (s.groups == 1 || s.outputs == 0) return;
    // Groups of few outputs leave most lanes of a dot product idle: what a pixel of a group costs so, and on lanes of
    // their own, where moving the input to the lanes counts as much as the products.
    constexpr index_t exact_terms = (index_t{1} << 24) / (255 * 255);
    constexpr index_t dot_cost = sizeof(typename simd::quad_dot<A>::unit) == 1 ? 1 : 4;
    const index_t vectors = divide_up(s.group_outputs(), simd::lanes<A>);
    const index_t dots = segments() * segment_quads() * vectors * dot_cost;
    if (zeros_are_codes && s.depth() <= exact_terms && dots * simd::lanes < A >> 2 * s.group_outputs() * s.depth())
      form_ = form_type::channels;
  }
  index_t entry(index_t o) const {
    const index_t per_group = form_ == form_type::channels ? shape().outputs : shape().group_outputs();
    return o / per_group * panels() * width() + o % per_group;
  }
  static std::int32_t zero_of(index_t o, const convolution_weights& w) {
    if (w.zero_points.empty()) return 0;
    return w.zero_points[w.zero_points.size() == 1 ? 0 : static_cast<std::size_t>(o)];
  }
  static std::int64_t signed_zero_of(index_t o, const convolution_weights& w) {
    return std::int64_t{zero_of(o, w)} - ops::sign_offset(w.sign);
  }
  /// Calls f(tap, input channel in the group, place in the depth) for the weights of an output as they are packed.
  template <class F>
  void for_each_term(const F& f) const {
    index_t k = 0;
    reference::for_each_position(reference::taps_of(shape()), [&](const convolution_shape::position& tap) {
      for (index_t i = 0; i < shape().group_inputs(); ++i, ++k) f(tap, i, k);
      if (form_ == form_type::pixels || (form_ == form_type::rows && tap[2] == shape().axes[2].taps - 1))
        k = round_up(k, 4);  // a quad holds codes of one run
    });
  }
  /// Where the weight of an output with this entry is at place k: among the lanes, among the quads.
  index_t lane_at(index_t at, index_t k) const { return (at / width() * shape().depth() + k) * width() + at % width(); }
  index_t quad_at(index_t at, index_t k) const {
    return (at / width() * segments() * segment_quads() + k / 4) * width() * 4 + at % width() * 4 + k % 4;
  }
  /// This weight less its zero point, modulo 2^32.
  std::uint32_t number_at(index_t at, index_t k) const {
    if (form_ == form_type::channels)
      return static_cast<std::uint32_t>(static_cast<std::int32_t>(lane_weights_[lane_at(at, k)]));
    return static_cast<std::uint32_t>(dot_weights_[quad_at(at, k)]) - static_cast<std::uint32_t>(zeros_[at]);
  }

  void pack_output(index_t o, const convolution_weights& w) {
    const auto* codes = static_cast<const std::uint8_t*>(w.codes);
    const std::int64_t zero = signed_zero_of(o, w);
    const index_t at = entry(o);
    std::int32_t sum = 0;
    std::int64_t most = 0;
    for_each_term([&](const convolution_shape::position& tap, index_t i, index_t k) {
      const std::int32_t v = ops::signed_number(codes[plan_.kernel.at(o, i, tap)], w.sign);
      sum += v;
      most += v < zero ? zero - v : v - zero;
      if (form_ == form_type::channels)
        lane_weights_[lane_at(at, k)] = static_cast<float>(v - zero);
      else
        dot_weights_[quad_at(at, k)] = static_cast<std::int8_t>(v);
    });
    require(most * 255 < std::int64_t{1} << 31, "output ", o, " may sum up to ", most * 255,
            ", beyond 32 bits; a convolution's sums are exact in 32 bits.");
    sums_[at] = sum;
    zeros_[at] = static_cast<std::int32_t>(zero);
    has_zeros_ = has_zeros_ || zero != 0;
    reach_ = std::max(reach_, most);
  }

  convolution_plan plan_;
  form_type form_ = form_type::pixels;
  bool has_zeros_ = false;
  std::int64_t reach_ = 0;
  ops::line_array<std::int8_t> dot_weights_;
  ops::line_array<float> lane_weights_;
  ops::line_array<std::int32_t> sums_, zeros_;
};

/// Packs the weights of a convolution. Throws where there are too many zero points or too few, and where an output's
/// sum might leave 32 bits with a source whose zero point is one of its codes; std::bad_alloc.
template <simd::usable_arch A = simd::best_arch>
packed_convolution<A> pack_convolution(const convolution_plan& plan, const convolution_weights& w) {
  return packed_convolution<A>(plan, w);
}

}  // namespace qtensor::inline QTENSOR_ABI
