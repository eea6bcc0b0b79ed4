// ONNX: ConvInteger and QLinearConv over memory (NUMERICS 8.1).
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <concepts>
#include <qtensor/compat/onnx_requantize.hpp>
#include <qtensor/compat/onnx_types.hpp>
#include <qtensor/ops/batches.hpp>
#include <qtensor/ops/convolution_sinks.hpp>
#include <qtensor/scheme/schemes.hpp>

// Tensors are dense and in ONNX's order: x is N x C x spatial, w is M x C / group x taps, y is N x M x spatial, with
// one to three spatial axes.
namespace qtensor::compat::onnx {

/// auto_pad: `pads` as given; so much that y has ceil(x / stride) elements along each axis, an odd one at the end
/// (same_upper) or at the beginning (same_lower); none.
enum class auto_padding { notset, same_upper, same_lower, valid };

/// Attributes of both operators. Empty lists are their defaults: strides and dilations 1, pads 0 (all beginnings, then
/// all ends), kernel_shape that of w.
struct convolution_attributes {
  auto_padding auto_pad = auto_padding::notset;
  std::vector<index_t> dilations = {}, kernel_shape = {}, pads = {}, strides = {};
  index_t group = 1;
};

/// How QLinearConv goes from a sum to a code. ONNX Runtime: clamp(rint(float(sum) * s) + zero point), with s =
/// RN(RN(x_scale * w_scale) / y_scale) in f32. The ONNX reference: rint(clamp(double(sum) * s + zero point)).
enum class convolution_rule { runtime, reference };

namespace detail {

/// The letters of a tensor with so many spatial axes.
inline std::string_view letters(std::string_view one, std::string_view two, std::string_view three, std::size_t rank) {
  return rank == 3 ? one : rank == 4 ? two : three;
}

/// The geometry of a node. Throws naming the attribute or extent that does not fit.
inline convolution_plan plan_of(std::span<const index_t> x, std::span<const index_t> w,
                                const convolution_attributes& how) {
  require(x.size() >= 3 && x.size() <= 5 && x.size() == w.size(), "x has ", x.size(), " dimensions and w ", w.size(),
          "; both have as many, from 3 to 5: one to three are spatial.");
  const std::size_t spatial = x.size() - 2;
  const auto list = [&](const char* name, const std::vector<index_t>& v, std::size_t n) {
    require(v.empty() || v.size() == n, name, " has ", v.size(), " entries for ", spatial, " spatial axes; it has ", n,
            ".");
  };
  list("dilations", how.dilations, spatial);
  list("kernel_shape", how.kernel_shape, spatial);
  list("strides", how.strides, spatial);
  list("pads", how.pads, 2 * spatial);
  for (std::size_t i = 0; i < how.kernel_shape.size(); ++i)
    require(how.kernel_shape[i] == w[i + 2], "kernel_shape has ", how.kernel_shape[i], " along spatial axis ", i,
            ", where w has ", w[i + 2], ".");
  qtensor::detail::check_choice("auto_pad", how.auto_pad, auto_padding::valid);
  require(how.auto_pad == auto_padding::notset || how.pads.empty(),
          "pads are given beside auto_pad; they go together with auto_pad NOTSET only.");
  convolution_options options{how.strides, how.dilations, {}, {}, {}, how.group};
  for (std::size_t i = 0; i < spatial; ++i) {
    convolution_axis a{.in = x[i + 2], .taps = w[i + 2]};
    if (!how.strides.empty()) a.stride = std::max(how.strides[i], index_t{1});
    if (!how.dilations.empty()) a.tap_dilation = how.dilations[i];
    index_t low = how.pads.empty() ? 0 : how.pads[i], high = how.pads.empty() ? 0 : how.pads[spatial + i];
    require(low >= 0 && high >= 0, "pads has ", std::min(low, high), "; pads are at least 0.");
    const bool same = how.auto_pad == auto_padding::same_upper || how.auto_pad == auto_padding::same_lower;
    if (same && a.in > 0 && a.taps > 0 && a.tap_dilation > 0 && a.fits()) {  // else there is no y, or an error below
      const index_t all = std::max(index_t{0}, (a.in - 1) / a.stride * a.stride + a.reach() - a.in);
      low = how.auto_pad == auto_padding::same_lower ? all - all / 2 : all / 2;
      high = all - low;
    }
    options.pad_low.push_back(low);
    options.pad_high.push_back(high);
  }
  return plan_convolution({letters("NCW", "NCHW", "NCDHW", x.size()), {x.begin(), x.end()}},
                          {letters("OIW", "OIHW", "OIDHW", x.size()), {w.begin(), w.end()}}, options);
}

inline std::vector<index_t> dims_of(const convolution_plan& plan, std::size_t rank) {
  const convolution_shape& s = plan.shape;
  std::vector<index_t> dims = {s.batch, s.outputs};
  for (std::size_t i = 0; i + 2 < rank; ++i) dims.push_back(s.axes[5 - rank + i].out());
  return dims;
}

template <byte_code T>
inline constexpr auto sign_of =
    std::same_as<T, std::int8_t> ? simd::code_sign::is_signed : simd::code_sign::is_unsigned;

}  // namespace detail

/// The dimensions of y. Throws as the operators do.
///   x {1, 3, 224, 224}, w {64, 3, 7, 7}, strides {2, 2}, pads {3, 3, 3, 3}: {1, 64, 112, 112}
inline std::vector<index_t> convolution_dims(std::span<const index_t> x, std::span<const index_t> w,
                                             const convolution_attributes& how = {}) {
  return detail::dims_of(detail::plan_of(x, w, how), x.size());
}

inline namespace QTENSOR_ABI {

namespace pieces {

/// An operand as it is given: bytes, their sign, dimensions, zero points.
template <byte_code T>
struct operand {
  std::span<const T> codes;
  std::span<const index_t> dims;
  std::span<const T> zero_points;
};

/// One node with its weights packed.
struct integer_convolution {
  convolution_plan plan;
  packed_convolution<> weights;
  convolution_input input;

  template <byte_code X, byte_code W>
  integer_convolution(const operand<X>& x, const operand<W>& w, const convolution_attributes& how)
      : integer_convolution(checked(x, w, how), {w.codes.data(), detail::sign_of<W>},
                            {w.zero_points.begin(), w.zero_points.end()},
                            {x.codes.data(), detail::sign_of<X>, x.zero_points.empty() ? 0 : x.zero_points[0]}) {}
  template <class Y>
  convolution_result<Y> result(std::span<Y> y) const {
    return result_in(y.data(), plan.result(detail::letters("NCW", "NCHW", "NCDHW", rank())));
  }
  std::size_t rank() const { return rank_; }
  /// The largest magnitude that a sum may have.
  std::int64_t reach() const { return weights.reach() * ops::farthest_from_zero(input.zero_point, input.sign); }

 private:
  struct ranked_plan {
    convolution_plan plan;
    std::size_t rank;
  };
  integer_convolution(const ranked_plan& p, convolution_weights w, const std::vector<std::int32_t>& w_zeros,
                      const convolution_input& x)
      : plan(p.plan), weights(plan, {w.codes, w.sign, w_zeros}), input(x), rank_(p.rank) {}
  template <byte_code X, byte_code W>
  static ranked_plan checked(const operand<X>& x, const operand<W>& w, const convolution_attributes& how) {
    require(x.zero_points.size() <= 1, "x_zero_point has ", x.zero_points.size(), " elements; it is a scalar.");
    detail::check_count("x", x.codes.size(), element_count(x.dims));
    detail::check_count("w", w.codes.size(), element_count(w.dims));
    return {detail::plan_of(x.dims, w.dims, how), x.dims.size()};
  }
  std::size_t rank_;
};

/// The sink of the reference's rule.
template <byte_code Y>
struct reference_sink {
  const reference_requantization<Y, false>& how;
  std::span<const std::int32_t> bias;
  convolution_result<Y> to;

  void operator()(const convolution_tile& t) const {
    using simd::best_arch;
    constexpr index_t step = simd::lanes<best_arch>;
    alignas(64) std::int32_t codes[static_cast<std::size_t>(step)];
    for (index_t r = 0; r < t.pixels; ++r)
      for (index_t c = 0; c < t.channels; c += step) {
        const index_t n = std::min(step, t.channels - c);
        auto sums = simd::load_n<best_arch>(t.sums + r * t.stride + c, n);
        if (!bias.empty()) sums = sums + simd::load_n<best_arch>(bias.data() + t.channel + c, n);
        simd::store(codes, sums);
        simd::store(codes, how.template codes<false>(codes, 0, t.channel + c));
        for (index_t i = 0; i < n; ++i)
          *to.at(t.batch, t.pixel + r, t.channel + c + i) = static_cast<Y>(
              std::clamp<std::int32_t>(codes[i], std::numeric_limits<Y>::min(), std::numeric_limits<Y>::max()));
      }
  }
};

/// QLinearConv of a node, whatever its operands.
template <byte_code Y, executor By>
void qlinear(const integer_convolution& node, float x_scale, std::span<const float> w_scale, float y_scale,
             Y y_zero_point, std::span<const std::int32_t> bias, std::span<Y> y, convolution_rule rule, const By& by) {
  detail::check_count("y", y.size(), element_count(detail::dims_of(node.plan, node.rank())));
  detail::check_scale("x_scale", x_scale);
  detail::check_scale("y_scale", y_scale);
  require(!w_scale.empty(), "w_scale is empty; it has one element, or one for each output channel.");
  std::vector<float> scales;
  for (const float s : w_scale) {
    detail::check_scale("w_scale", s);
    scales.push_back(rounded(rounded(x_scale * s) / y_scale));
  }
  for (const std::int32_t b : bias)
    require(node.reach() + std::abs(std::int64_t{b}) < std::int64_t{1} << 31, "sums of up to ", node.reach(),
            " and a bias of ", b, " may leave 32 bits; a convolution's sums are exact in 32 bits.");
  const convolution_scales floats{1.f, scales, {}, bias};
  const auto to = node.result(y);
  if (rule == convolution_rule::runtime) {
    using code = detail::format_of_code<Y>;
    using scheme_type = scheme<code, per_tensor, zero_point<code>, static_only>;
    return convolve_into<scheme_type>(node.weights, node.input, floats, 1.f, y_zero_point, to, by);
  }
  if (!ops::has_results(node.weights, node.input, floats)) return;
  const reference_requantization<Y, false> how({&x_scale, 1}, w_scale, y_scale, {}, y_zero_point,
                                               node.plan.shape.outputs);
  convolve(node.weights, node.input, reference_sink<Y>{how, bias, to}, by);
}

}  // namespace pieces

/// ConvInteger: y = the sums of (x - x_zero_point) (w - w_zero_point), exactly; padding is 0. x_zero_point: none or one
/// element; w_zero_point: none, one, or one for each output channel. Throws before y is written where dimensions,
/// attributes or numbers of elements do not fit, and where a sum might leave 32 bits.
template <byte_code X, byte_code W, executor By = serial>
void conv_integer(std::span<const X> x, std::span<const index_t> x_dims, std::span<const W> w,
                  std::span<const index_t> w_dims, std::span<const std::type_identity_t<X>> x_zero_point,
                  std::span<const std::type_identity_t<W>> w_zero_point, const convolution_attributes& how,
                  std::span<std::int32_t> y, const By& by = {}) {
  const pieces::integer_convolution node(pieces::operand<X>{x, x_dims, x_zero_point},
                                         pieces::operand<W>{w, w_dims, w_zero_point}, how);
  detail::check_count("y", y.size(), element_count(detail::dims_of(node.plan, x_dims.size())));
  convolve_into(node.weights, node.input, node.result(y), by);
}

/// Scales and zero points of QLinearConv: w_scale and w_zero_point have one element or one for each output channel,
/// bias, at the scale x_scale * w_scale, none or one for each.
template <byte_code X, byte_code W, byte_code Y>
struct qlinear_parameters {
  float x_scale;
  X x_zero_point;
  std::span<const float> w_scale;
  std::span<const W> w_zero_point;
  float y_scale;
  Y y_zero_point;
  std::span<const std::int32_t> bias = {};
};

/// QLinearConv: y = the sums of (x - x_zero_point) (w - w_zero_point) plus bias, as codes of y_scale and y_zero_point
/// (convolution_rule). Throws before y is written as conv_integer does, of sums with their bias, and on scales that are
/// not finite and positive.
template <byte_code X, byte_code W, byte_code Y, executor By = serial>
void qlinear_conv(std::span<const X> x, std::span<const index_t> x_dims, std::span<const W> w,
                  std::span<const index_t> w_dims, const qlinear_parameters<X, W, Y>& p,
                  const convolution_attributes& how, std::span<Y> y, convolution_rule rule = convolution_rule::runtime,
                  const By& by = {}) {
  const pieces::integer_convolution node(pieces::operand<X>{x, x_dims, {&p.x_zero_point, 1}},
                                         pieces::operand<W>{w, w_dims, p.w_zero_point}, how);
  pieces::qlinear<Y>(node, p.x_scale, p.w_scale, p.y_scale, p.y_zero_point, p.bias, y, rule, by);
}

}  // namespace QTENSOR_ABI

}  // namespace qtensor::compat::onnx
