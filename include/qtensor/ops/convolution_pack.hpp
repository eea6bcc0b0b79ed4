// A convolution's weights in the order in which its kernels read them, built once.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>
#include <qtensor/ops/convolution_shape.hpp>
#include <qtensor/ops/line_array.hpp>
#include <qtensor/simd/gemm_squares.hpp>
#include <qtensor/simd/gemm_taps.hpp>
#include <qtensor/simd/memory.hpp>
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
/// or those of a row of taps, every output's on a lane of its own (`channels`: depthwise).
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
    const std::uint8_t* const codes = leave_out_taps(static_cast<const std::uint8_t*>(w.codes));
    ops::check_places(s);
    if (s.is_empty() && s.depth() == 0) return;  // of any number of outputs
    choose_form(std::ranges::all_of(w.zero_points, [&](std::int32_t z) { return z == ops::nearest_code(z, w.sign); }));
    const index_t padded = panels() * group_count() * width();
    sums_ = ops::line_array<std::int32_t>(padded);
    zeros_ = ops::line_array<std::int32_t>(padded);
    dot_weights_ = ops::line_array<std::int8_t>(qtensor::detail::checked_product(padded, terms()));
    tap_sums_ = ops::line_array<std::int32_t>(qtensor::detail::checked_product(s.taps(), s.outputs));
    if (s.depth() > 0) pack({codes, w.sign, w.zero_points});
  }

  /// The plan as it is computed: groups that are computed as one count as one in its shape, and it has no taps that
  /// read padding under all outputs.
  const convolution_plan& plan() const { return plan_; }
  const convolution_shape& shape() const { return plan_.shape; }
  form_type form() const { return form_; }
  /// Outputs of a panel, panels of a group, and groups that are computed one after the other.
  index_t width() const { return form_ == form_type::channels ? simd::channel_panel<A> : dot_width; }
  index_t panels() const { return divide_up(outputs(), width()); }
  index_t group_count() const { return form_ == form_type::channels ? 1 : shape().groups * shape().batch_groups; }
  /// Outputs of one of these groups.
  index_t outputs() const { return form_ == form_type::channels ? shape().outputs : shape().group_outputs(); }
  /// Whether quads hold the units of a row of taps, not those of one tap.
  bool joins_taps() const { return form_ != form_type::pixels; }
  /// Runs of terms, and quads of each.
  index_t segments() const {
    const convolution_shape& s = shape();
    const bool joined = joins_taps() || s.axes[2].tap_dilation == 1;
    return s.axes[0].taps * s.axes[1].taps * (joined ? 1 : s.axes[2].taps);
  }
  index_t segment_quads() const {
    const convolution_shape& s = shape();
    if (joins_taps()) return divide_up(s.axes[2].taps * s.group_inputs(), 4);
    const index_t tap = divide_up(s.group_inputs(), 4);
    return s.axes[2].tap_dilation == 1 ? tap * s.axes[2].taps : tap;
  }
  /// Terms of an output as they are packed, whole quads.
  index_t terms() const { return segments() * segment_quads() * 4; }
  /// Where the terms of tap n begin. A quad holds codes of one run.
  index_t place_of(index_t n) const {
    const index_t inputs = shape().group_inputs(), wide = shape().axes[2].taps;
    return joins_taps() ? n / wide * segment_quads() * 4 + n % wide * inputs : n * round_up(inputs, 4);
  }
  /// Codes of a panel.
  const std::int8_t* panel(index_t group, index_t p) const {
    return dot_weights_.data() + (group * panels() + p) * terms() * width();
  }
  /// Of the outputs of a panel: the sum of the weights as signed numbers, and their zero points as such, modulo 2^32.
  const std::int32_t* sums(index_t group, index_t p) const { return sums_.data() + (group * panels() + p) * width(); }
  const std::int32_t* zeros(index_t group, index_t p) const { return zeros_.data() + (group * panels() + p) * width(); }
  /// Whether any weight has a zero point: then the sums of the source's codes count.
  bool has_zeros() const { return has_zeros_; }
  /// The largest that an output's weights less their zero point come to, taken without their signs; where there are
  /// results, those of the plan's taps.
  std::int64_t reach() const { return reach_; }
  /// These weights summed under each tap, modulo 2^32: [tap][output].
  const ops::line_array<std::int32_t>& tap_sums() const { return tap_sums_; }
  index_t size_bytes() const {
    return dot_weights_.size() + static_cast<index_t>(sizeof(std::int32_t)) * (2 * sums_.size() + tap_sums_.size());
  }

 private:
  /// Leaves out taps that add nothing to any result, which would take rows of nothing but padding. Gives the code of
  /// the first tap that is left.
  const std::uint8_t* leave_out_taps(const std::uint8_t* codes) {
    convolution_shape& s = plan_.shape;
    kernel_map& m = plan_.kernel;
    if (s.is_empty()) return codes;
    const convolution_plan whole = plan_;
    index_t first = 0;
    for (std::size_t i = 0; i < s.axes.size(); ++i) {
      convolution_axis& a = s.axes[i];
      const auto [begin, end] = a.taps_inside();
      first += begin * m.spatial[i];
      a.pad_low -= begin * a.tap_dilation;
      a.pad_high -= (a.taps - end) * a.tap_dilation;
      a.taps = m.sizes[i] = end - begin;
      if (a.taps == 1) a.tap_dilation = 1;
    }
    if (s.depth() > 0) return codes + first;
    plan_ = ops::without_terms(whole);
    return codes;
  }
  void choose_form(bool zeros_are_codes) {
    constexpr index_t lanes = simd::lanes<A>;
    const convolution_shape& s = shape();
    form_ = dot_form();
    if (s.groups == 1 || s.outputs == 0) return;
    // Groups of few outputs leave most lanes of a dot product idle. With one input channel, outputs get lanes of their
    // own; of others several become one, with zero points for weights between them, which costs no more products while
    // they fit one vector, or two tiles of matrix registers.
    const index_t dots = segments() * segment_quads() * divide_up(s.group_outputs(), lanes);
    if (s.group_inputs() == 1 && 2 * dots * lanes > s.group_outputs() * s.depth()) {
      form_ = form_type::channels;
    } else if (zeros_are_codes) {
      join_groups(simd::uses_squares<A>() ? 2 * simd::square_edge : lanes);
      form_ = dot_form();
    }
  }
  form_type dot_form() const {
    const index_t inputs = shape().group_inputs(), taps = shape().axes[2].taps;
    return divide_up(taps * inputs, 4) * 4 <= taps * divide_up(inputs, 4) * 3 ? form_type::rows : form_type::pixels;
  }
  /// Makes one group of as many as divide all and have so many outputs at most.
  void join_groups(index_t most_outputs) {
    convolution_shape& s = plan_.shape;
    index_t n = std::max(index_t{1}, most_outputs / s.group_outputs());
    while (s.groups % n != 0) --n;
    s.groups /= n;
  }
  /// Groups of the weights that are one here.
  index_t joined_groups() const {
    return form_ == form_type::channels ? 1 : plan_.kernel.groups / (shape().groups * shape().batch_groups);
  }
  static std::int32_t zero_of(index_t o, const convolution_weights& w) {
    if (w.zero_points.empty()) return 0;
    return w.zero_points[w.zero_points.size() == 1 ? 0 : static_cast<std::size_t>(o)];
  }
  static std::int64_t signed_zero_of(index_t o, const convolution_weights& w) {
    return std::int64_t{zero_of(o, w)} - ops::sign_offset(w.sign);
  }
  void pack(const convolution_weights& w) {
    // A panel's codes, signed, as rows of an output's terms: an odd number of lines apart, as caches like it.
    constexpr index_t line = simd::cache_line;
    const index_t pitch = round_up(terms(), 2 * line) + line;
    const auto flip = static_cast<std::uint8_t>(w.sign);
    const quad_choice choice;
    ops::line_array<std::uint8_t> rows(qtensor::detail::checked_product(std::min(width(), outputs()), pitch));
    for (index_t g = 0; g < group_count(); ++g)
      for (index_t p = 0; p < panels(); ++p) {
        const index_t first = g * outputs() + p * width(), count = std::min(width(), outputs() - p * width());
        const index_t at = (g * panels() + p) * width();
        std::memset(rows.data(), flip, static_cast<std::size_t>(rows.size()));
        for (index_t c = 0; c < count && joined_groups() > 1; ++c)
          for (index_t n = 0; n < shape().taps() && signed_zero_of(first + c, w) != 0; ++n)
            std::memset(&rows[c * pitch + place_of(n)], static_cast<std::uint8_t>(zero_of(first + c, w)),
                        static_cast<std::size_t>(shape().group_inputs()));
        read(static_cast<const std::uint8_t*>(w.codes), first, count, rows.data(), pitch);
        if (flip != 0)
          for (index_t i = 0; i < count * pitch; ++i) rows[i] ^= flip;
        for (index_t c = 0; c < count; ++c)
          take_zero(first + c, at + c, signed_zero_of(first + c, w), &rows[c * pitch]);
        // Words move as floats do: nothing is computed with them.
        simd::transpose<A>(reinterpret_cast<const float*>(rows.data()), pitch / 4, count, terms() / 4,
                           reinterpret_cast<float*>(dot_weights_.data() + at * terms()), width());
        sum_taps(first, count, at, choice);
      }
  }

  /// The codes of outputs [first, first + count) to rows of `pitch` bytes, in the places of their terms.
  void read(const std::uint8_t* codes, index_t first, index_t count, std::uint8_t* to, index_t pitch) const {
    const kernel_map& m = plan_.kernel;
    const index_t high = m.sizes[1], wide = m.sizes[2], tap_stride = m.spatial[2], all = shape().taps();
    const index_t output_stride = m.group_outputs == 1 ? m.group_stride : m.output_stride;
    if ((joined_groups() > 1 || m.group_stride != m.group_outputs * output_stride) &&
        first % m.group_outputs + count > m.group_outputs) {
      const index_t some = m.group_outputs - first % m.group_outputs;
      read(codes, first, some, to, pitch);
      return read(codes, first + some, count - some, to + some * pitch, pitch);
    }
    // Taps at one distance, in memory and among the terms: all, or those of a row.
    const bool joined = !joins_taps() && (high == 1 || m.spatial[1] == wide * tap_stride) &&
                        (m.sizes[0] == 1 || m.spatial[0] == high * wide * tap_stride);
    const index_t run = joined ? all : wide, step = place_of(1);
    // Where channels go on from tap to tap, there is one of many channels.
    index_t taps = run, inputs = m.inputs, input_stride = m.input_stride;
    if (step == inputs && (inputs == 1 || tap_stride == inputs * input_stride)) {
      if (inputs == 1) input_stride = tap_stride;
      inputs *= taps, taps = 1;
    }
    for (index_t n = 0; n < all; n += run) {
      const std::uint8_t* from = codes + m.at(first, 0, {n / wide / high, n / wide % high, 0});
      std::uint8_t* place = to + place_of(n) + first / m.group_outputs % joined_groups() * m.inputs;
      if (output_stride == 1 && count > 1) {
        for (index_t t = 0; t < taps; ++t)
          simd::transpose(from + t * tap_stride, input_stride, count, inputs, place + t * step, pitch);
        continue;
      }
      for (index_t o = 0; o < count; ++o, from += output_stride, place += pitch)
        if (input_stride == 1 || inputs == 1)
          for (index_t t = 0; t < taps; ++t)
            std::memcpy(place + t * step, from + t * tap_stride, static_cast<std::size_t>(inputs));
        else if (tap_stride == 1)
          simd::transpose(from, input_stride, taps, inputs, place, step);
        else
          for (index_t t = 0; t < taps; ++t)
            for (index_t i = 0; i < inputs; ++i) place[t * step + i] = from[t * tap_stride + i * input_stride];
    }
  }

  /// The zero point of output o, of which `row` is the signed codes and then 0; throws where its sums might leave 32
  /// bits.
  void take_zero(index_t o, index_t at, std::int64_t zero, const std::uint8_t* row) {
    constexpr index_t step = simd::lanes<A>, most_at_once = index_t{1} << 20;
    const std::int32_t code = static_cast<std::int32_t>(std::clamp<std::int64_t>(zero, -128, 127));
    const simd::ints<A> center(code);
    const index_t end = round_up(terms(), step);
    std::int64_t most = shape().depth() * (zero < code ? code - zero : zero - code);
    for (index_t begin = 0; begin < end; begin += most_at_once) {
      simd::ints<A> sum(0);
      for (index_t k = begin; k < std::min(end, begin + most_at_once); k += step) {
        const simd::ints<A> v = simd::widen_i8<A>(row + k);
        sum = sum + simd::max(v - center, center - v);
      }
      most += simd::reduce_add(simd::bits_as<std::uint32_t>(sum));
    }
    most -= (end - shape().depth()) * (code < 0 ? -code : code);
    require(most * 255 < std::int64_t{1} << 31, "output ", o, " may sum up to ", most * 255,
            ", beyond 32 bits; a convolution's sums are exact in 32 bits.");
    zeros_[at] = static_cast<std::int32_t>(zero);
    has_zeros_ = has_zeros_ || (zero != 0 && terms() > 0);
    reach_ = std::max(reach_, most);
  }

  /// Rows of units that choose weights of a quad: all of them, or one.
  struct quad_choice {
    using dot = simd::quad_dot<A>;
    typename dot::row all, one[4];

    quad_choice() {
      typename dot::unit units[4] = {1, 1, 1, 1};
      all = dot::broadcast(units);
      for (index_t i = 0; i < 4; ++i) {
        std::uint8_t codes[4];
        for (index_t k = 0; k < 4; ++k) codes[k] = static_cast<std::uint8_t>((k == i) - dot::unit_offset);
        simd::pack_units<A>(codes, 4, simd::code_sign::is_signed, units);
        one[i] = dot::broadcast(units);
      }
    }
  };
  /// The sums of a panel's outputs, under each tap and in all.
  void sum_taps(index_t first, index_t count, index_t at, const quad_choice& choice) {
    constexpr index_t step = simd::lanes<A>;
    const index_t inputs = shape().group_inputs();
    const auto under_tap = [&](index_t k, index_t c, const simd::ints<A>& zero) {
      const index_t end = k + inputs;
      simd::ints<A> sum = zero * simd::ints<A>(static_cast<std::int32_t>(-inputs));
      while (k < end) {
        const auto w = simd::quad_dot<A>::load(&dot_weights_[at * terms() + (k / 4 * width() + c) * 4]);
        const bool is_whole = k % 4 == 0 && end - k >= 4;
        sum = simd::quad_dot<A>::dot(sum, w, is_whole ? choice.all : choice.one[k % 4]);
        k += is_whole ? 4 : 1;
      }
      return sum;
    };
    for (index_t c = 0; c < count; c += step) {
      const simd::ints<A> zero = simd::load<A>(&zeros_[at + c]);
      simd::ints<A> all = zero * simd::ints<A>(static_cast<std::int32_t>(shape().depth()));
      for (index_t n = 0; n < shape().taps(); ++n) {
        const simd::ints<A> sum = under_tap(place_of(n), c, zero);
        simd::store_n(&tap_sums_[n * shape().outputs + first + c], std::min(step, count - c), sum);
        all = all + sum;
      }
      simd::store(&sums_[at + c], all);
    }
  }

  convolution_plan plan_;
  form_type form_ = form_type::pixels;
  bool has_zeros_ = false;
  std::int64_t reach_ = 0;
  ops::line_array<std::int8_t> dot_weights_;
  ops::line_array<std::int32_t> sums_, zeros_, tap_sums_;
};

/// Packs the weights of a convolution. Throws where there are too many zero points or too few, where an output's sum
/// might leave 32 bits with a source whose zero point is one of its codes, and where the padded source has more places
/// than an index counts; std::bad_alloc.
template <simd::usable_arch A = simd::best_arch>
packed_convolution<A> pack_convolution(const convolution_plan& plan, const convolution_weights& w) {
  return packed_convolution<A>(plan, w);
}

}  // namespace qtensor::inline QTENSOR_ABI
