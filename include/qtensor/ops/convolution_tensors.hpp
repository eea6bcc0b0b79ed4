// Convolutions of quantized tensors: schemes decide whether sums are exact integers or fixed-order floats.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>
#include <qtensor/ops/convolution_float.hpp>
#include <qtensor/ops/dequantize.hpp>
#include <string>
#include <string_view>
#include <vector>

// Integers: 8-bit activations of one scale and zero point that meet integer weights of up to 8 bits whose scales and
// zero points vary along the outputs only; y = RN(RN(float(sum) * scale of x) * scale of w). Everything else is a chain
// of fused multiply-adds of dequantized numbers (reference::convolution_chain). No bit depends on the CPU, on tiles or
// on threads.
namespace qtensor::inline QTENSOR_ABI {

namespace ops {

/// Schemes of activations that integer tiles take.
template <class S>
inline constexpr bool whole_activations = S::code_format::is_integer&& S::code_format::bits == 8 &&
                                          std::same_as<typename S::granularity_type, per_tensor>&&
                                              std::same_as<typename S::zero_granularity_type, per_tensor> &&
                                          !S::is_interleaved && !S::has_offset && !S::has_tensor_scale;

/// Schemes of weights that may become 8-bit codes; whether they do depends on where their scales lie.
template <class S>
inline constexpr bool may_be_byte_weights = S::code_format::is_integer&& S::code_format::bits <= 8 &&
                                            !S::is_interleaved && !S::has_offset && !S::has_tensor_scale;

/// A tensor as a convolution sees it: its extents and, where codes are whole units, its strides under letters.
template <tensor_view_type View>
convolution_layout layout_of_tensor(const View& view, std::string_view order) {
  using S = typename View::scheme_type;
  using index_array = typename View::index_array;
  const auto extents = view.extents().to_array();
  convolution_layout l{order, {extents.begin(), extents.end()}};
  if constexpr (!is_packed<typename S::code_format> && !S::is_interleaved) {
    index_array steps = view.row_strides();
    steps[steps.size() - 1] = 1;
    const index_array strides = reordered<typename View::order_type>(steps);
    l.strides.assign(strides.begin(), strides.end());
  }
  return l;
}

/// The index of a tensor's element from what stands under each letter.
template <class Array, class ValueOf>
Array index_under(std::string_view order, const ValueOf& value_of) {
  Array index{};
  for (std::size_t i = 0; i < index.size(); ++i) index[i] = value_of(order[i]);
  return index;
}

/// Activations of any scheme, decoded where they are read: runs of channels or of places, whichever lie side by side.
template <tensor_view_type View>
class tensor_activations {
  using index_array = typename View::index_array;
  static constexpr std::size_t last = static_cast<std::size_t>(View::rank) - 1;

 public:
  tensor_activations(const View& view, std::string_view order)
      : view_(view), order_(order), channel_axis_(axis_under('C')), place_axis_(axis_under('W')), decode_(view_) {}

  void read(index_t batch, index_t first, index_t n, const convolution_shape::position& at, index_t places, float* to,
            index_t step) const {
    index_array index = reordered<typename View::order_type>(index_under<index_array>(order_, [&](char c) {
      return c == 'N' ? batch : c == 'C' ? first : at[ops::axis_of(c)];
    }));
    if (channel_axis_ == last) {
      for (index_t p = 0; p < places; ++p, ++index[place_axis_]) decode_(index, first, n, to + p * step);
      return;
    }
    // Some places of some channels, turned.
    constexpr index_t wide = 128, high = 16;
    alignas(64) float runs[high * wide];
    for (index_t c = 0; c < n; c += high)
      for (index_t p = 0; p < places; p += wide) {
        const index_t rows = std::min(high, n - c), cols = std::min(wide, places - p);
        for (index_t r = 0; r < rows; ++r) {
          index[channel_axis_] = first + c + r;
          index[place_axis_] = at[2] + p;
          read_places(index, cols, runs + r * wide);
        }
        simd::transpose(runs, wide, cols, rows, to + p * step + c, step);
      }
  }

 private:
  std::size_t axis_under(char letter) const {  // reordering is its own inverse
    return static_cast<std::size_t>(
        View::order_type::axis(static_cast<int>(View::rank), static_cast<int>(order_.find(letter))));
  }
  void read_places(index_array index, index_t n, float* to) const {
    if (place_axis_ == last) return decode_(index, index[last], n, to);
    for (index_t p = 0; p < n; ++p, ++index[place_axis_]) to[p] = reference::storage_value(view_, index);
  }

  const View& view_;
  std::string_view order_;
  std::size_t channel_axis_, place_axis_;
  row_decoder<f32, View> decode_;
};

}  // namespace ops

/// The convolution of activations of scheme X with one tensor of weights, which is packed here and used any number of
/// times. Made by prepare_convolution.
template <quantization_scheme X, simd::usable_arch A = simd::best_arch>
class tensor_convolution {
 public:
  template <tensor_view_type Activations, tensor_view_type Weights>
  tensor_convolution(const Activations& x, std::string_view x_order, const Weights& w, std::string_view w_order,
                     const convolution_options& how)
      : order_(x_order) {
    auto kernel = ops::layout_of_tensor(w, w_order);
    kernel.strides.clear();  // codes and numbers are collected in the order of the tensor's own axes
    plan_ = plan_convolution(ops::layout_of_tensor(x, x_order), kernel, how);
    if constexpr (ops::whole_activations<X> && ops::may_be_byte_weights<typename Weights::scheme_type>)
      pack_codes(w, w_order);
    if (!codes_) pack_floats(w, w_order);
  }

  const convolution_plan& plan() const { return plan_; }
  /// Whether sums are integers.
  bool is_exact() const { return codes_.has_value(); }
  /// Elements of the result.
  index_t size() const { return plan_.shape.result_batch() * plan_.shape.outputs * plan_.shape.pixels(); }

  /// Calls sink(product_tile) with every tile of the result as floats (row: batch * pixels + pixel, column: output),
  /// `bias` (none, or one an output) added with a rounding of its own.
  template <tensor_view_type Activations, class Sink, executor By>
  void run(const Activations& x, std::span<const float> bias, const Sink& sink, const By& by) const {
    check(x, bias);
    if constexpr (ops::whole_activations<X>)
      if (codes_) return convolve_with(*codes_, input_of(x), scales_of(x, bias), sink, by);
    const ops::tensor_activations<Activations> activations(x, order_);
    convolve_floats(
        *floats_, activations,
        [&](const product_tile& t) {
          if (!bias.empty())
            for (index_t r = 0; r < t.rows; ++r)
              for (index_t c = 0; c < t.cols; ++c)
                t.values[r * t.stride + c] += bias[static_cast<std::size_t>(t.col + c)];
          sink(t);
        },
        by);
  }
  /// The same quantized to 8-bit codes of S in memory, which integer sums reach without a tile of floats in between.
  template <quantization_scheme S, tensor_view_type Activations, executor By>
  void run_to_codes(const Activations& x, std::span<const float> bias, float scale, std::int32_t zero_point,
                    const convolution_result<simd::code_unit_t<S>>& y, const By& by) const {
    check(x, bias);
    ops::check_result(y, plan_.shape);
    require(is_finite(scale) && scale > 0.f, "the result's scale is ", scale, "; a scale must be finite and positive.");
    if constexpr (ops::whole_activations<X>)
      if (codes_) return convolve_into<S>(*codes_, input_of(x), scales_of(x, bias), scale, zero_point, y, by);
    run(x, bias, ops::store_codes<S>{y, scale, zero_point}, by);
  }

 private:
  template <class Activations>
  void check(const Activations& x, std::span<const float> bias) const {
    const activation_map now = activations(ops::layout_of_tensor(x, order_));
    const activation_map& then = plan_.input;
    require(now.batch == then.batch && now.channels == then.channels && now.sizes == then.sizes,
            "the activations have ", now.batch, " batches of ", now.channels, " channels and ", now.sizes[0], " x ",
            now.sizes[1], " x ", now.sizes[2], " places; the convolution was prepared for ", then.batch, " of ",
            then.channels, " and ", then.sizes[0], " x ", then.sizes[1], " x ", then.sizes[2], ".");
    require(!codes_ || (now.batch_stride == then.batch_stride && now.channel_stride == then.channel_stride &&
                        now.spatial == then.spatial),
            "the activations do not lie in memory as those with which the convolution was prepared.");
    require(bias.empty() || static_cast<index_t>(bias.size()) == plan_.shape.outputs, "there are ", bias.size(),
            " biases for ", plan_.shape.outputs, " outputs; there are none or ", plan_.shape.outputs, ".");
  }
  // Activations without elements have no scale and no zero point: 1 and 0 do.
  template <class Activations>
  static convolution_input input_of(const Activations& x) {
    constexpr auto sign = X::code_format::is_signed ? simd::code_sign::is_signed : simd::code_sign::is_unsigned;
    return {x.row({}), sign, x.size() == 0 ? 0 : static_cast<std::int32_t>(x.storage_zero_point({}))};
  }
  template <class Activations>
  convolution_scales scales_of(const Activations& x, std::span<const float> bias) const {
    return {x.size() == 0 ? 1.f : decode<typename X::scale_format>(x.storage_scale_code({})), scales_, bias};
  }

  /// The index of the weight (output, channel in the group, tap) in storage order.
  template <class Weights>
  typename Weights::index_array index_of(std::string_view order, index_t o, index_t i,
                                         const convolution_shape::position& tap) const {
    const index_t each = plan_.kernel.group_outputs;
    const bool grouped = order.find('G') != std::string_view::npos;
    return reordered<typename Weights::order_type>(ops::index_under<typename Weights::index_array>(order, [&](char c) {
      return c == 'G' ? o / each : c == 'O' ? (grouped ? o % each : o) : c == 'I' ? i : tap[ops::axis_of(c)];
    }));
  }
  /// Whether an entry of the grid holds all weights of an output.
  template <class Weights, class Grid>
  static bool varies_with_outputs_only(const Weights& w, std::string_view order, const Grid& grid) {
    const auto extents = w.storage_extents();
    for (std::size_t axis = 0; axis < extents.size(); ++axis) {
      const char c = order[static_cast<std::size_t>(
          Weights::order_type::axis(static_cast<int>(Weights::rank), static_cast<int>(axis)))];
      if (c != 'O' && c != 'G' && grid.block[axis] < extents[axis]) return false;
    }
    return true;
  }
  template <class Weights>
  void pack_codes(const Weights& w, std::string_view order) {
    using S = typename Weights::scheme_type;
    using code = typename S::code_format;
    const convolution_shape& s = plan_.shape;
    constexpr auto sign = code::is_signed ? simd::code_sign::is_signed : simd::code_sign::is_unsigned;
    if (!varies_with_outputs_only(w, order, w.scale_grid())) return;
    if constexpr (S::has_zero_point)
      if (!varies_with_outputs_only(w, order, w.zero_grid())) return;
    std::vector<float> scales(static_cast<std::size_t>(s.depth() > 0 ? s.outputs : 0));
    std::vector<std::int32_t> zeros(S::has_zero_point ? scales.size() : 0);
    for (std::size_t o = 0; o < scales.size(); ++o) {
      const auto at = index_of<Weights>(order, static_cast<index_t>(o), 0, {});
      scales[o] = decode<typename S::scale_format>(w.storage_scale_code(at));
      if constexpr (S::has_zero_point) zeros[o] = static_cast<std::int32_t>(w.storage_zero_point(at));
    }
    std::vector<std::uint8_t> bytes(static_cast<std::size_t>(w.size()));
    for_each_weight<Weights>(order, [&](index_t o, index_t i, const auto& tap, const auto& at) {
      bytes[static_cast<std::size_t>(plan_.kernel.at(o, i, tap))] =
          static_cast<std::uint8_t>(static_cast<std::int32_t>(code::decode(w.storage_code(at))));
    });
    codes_.emplace(plan_, convolution_weights{bytes.data(), sign, zeros});
    scales_ = std::move(scales);
  }
  template <class Weights>
  void pack_floats(const Weights& w, std::string_view order) {
    floats_.emplace(plan_, [&](index_t o, index_t i, const convolution_shape::position& tap) {
      return reference::storage_value(w, index_of<Weights>(order, o, i, tap));
    });
  }
  template <class Weights, class Visit>
  void for_each_weight(std::string_view order, const Visit& visit) const {
    const convolution_shape& s = plan_.shape;
    for (index_t o = 0; o < s.outputs && s.depth() > 0; ++o)
      reference::for_each_position(reference::taps_of(s), [&](const convolution_shape::position& tap) {
        for (index_t i = 0; i < s.group_inputs(); ++i) visit(o, i, tap, index_of<Weights>(order, o, i, tap));
      });
  }

  std::string order_;
  convolution_plan plan_;
  std::optional<packed_convolution<A>> codes_;
  std::vector<float> scales_;  // of integer weights, one an output
  std::optional<packed_float_convolution<A>> floats_;
};

/// A convolution of activations like x (their extents, strides and scheme; other numbers later) with the weights w,
/// packed. Letters name the axes of each tensor, see convolution_layout: "NHWC", "NCHW", "NCW", "NDHWC"; "OIHW",
/// "HWIO", "OHWI", "GOIHW". Throws where extents, letters and options do not fit each other, and where exact sums might
/// leave 32 bits.
///   const auto conv = prepare_convolution(X, "NHWC", W, "OIHW",
///                                         {.strides = {2, 2}, .pad_low = {1, 1}, .pad_high = {1, 1}});
/// examples/convolution.cpp is a whole program.
template <quantized X, quantized W>
auto prepare_convolution(const X& x, std::string_view x_order, const W& w, std::string_view w_order,
                         const convolution_options& how = {}) {
  const auto activations = as_view(x);
  return tensor_convolution<typename decltype(activations)::scheme_type>(activations, x_order, as_view(w), w_order,
                                                                         how);
}

/// The result as floats: `convolve_into(conv, X, bias, result_in(y, conv.plan().result("NHWC")))`. bias: none, or one
/// an output. Throws, with nothing written, where x is not as it was prepared for, its zero point so far from its codes
/// that exact sums might leave 32 bits, or y has other pixels than the plan.
template <quantized X, class S, simd::usable_arch A, executor By = serial>
void convolve_into(const tensor_convolution<S, A>& conv, const X& x, std::span<const float> bias,
                   const convolution_result<float>& y, const By& by = {}) {
  ops::check_result(y, conv.plan().shape);
  conv.run(as_view(x), bias, ops::store_numbers{y}, by);
}
/// The result as codes of R (8 bits, static) under one scale and zero point.
template <quantization_scheme R, quantized X, class S, simd::usable_arch A, executor By = serial>
void convolve_into(const tensor_convolution<S, A>& conv, const X& x, std::span<const float> bias, float scale,
                   std::int32_t zero_point, const convolution_result<simd::code_unit_t<R>>& y, const By& by = {}) {
  conv.template run_to_codes<R>(as_view(x), bias, scale, zero_point, y, by);
}
/// Anything: `epilogue` is called with every product_tile of these floats and may change them and store them where it
/// likes.
template <quantized X, class S, simd::usable_arch A, class Epilogue, executor By = serial>
requires std::invocable<const Epilogue&, const product_tile&>
void convolve_with(const tensor_convolution<S, A>& conv, const X& x, std::span<const float> bias,
                   const Epilogue& epilogue, const By& by = {}) {
  conv.run(as_view(x), bias, epilogue, by);
}

}  // namespace qtensor::inline QTENSOR_ABI
