// ONNX: QuantizeLinear, DequantizeLinear and DynamicQuantizeLinear over memory and tensors (NUMERICS 8.1).
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <qtensor/compat/axis_blocks.hpp>
#include <qtensor/compat/onnx_types.hpp>
#include <qtensor/ops/parallel.hpp>
#include <qtensor/scheme/schemes.hpp>
#include <vector>

namespace qtensor::compat::onnx {

/// Arrays in ONNX's layout: elements of a scheme's formats in row-major order, packed where they have less than 8 bits.
template <quantization_scheme S>
using codes_in = std::span<const unit<typename S::code_format>>;
template <quantization_scheme S>
using scales_in = std::span<const unit<typename S::scale_format>>;

/// Attributes of QuantizeLinear and DequantizeLinear that are numbers. The others are types: `saturate` = 0 is
/// with<S, to_special>, `precision` is with<S, divide_in<F>>, `output_dtype` the code format or the output format.
/// A negative axis counts from the end. `axis` is not looked at where one scale serves the tensor.
struct attributes {
  int axis = 1;
  index_t block_size = 0;  // 0: one scale for every index of the axis
};

namespace detail {

template <format Code, format Scale>
struct linear {
  using type = scheme<Code, axis_blocks, scale_as<Scale>, static_only>;
};
template <format Code, format Scale>
requires(Code::is_integer&& Code::bits <= 16) struct linear<Code, Scale> {
  using type = scheme<Code, axis_blocks, scale_as<Scale>, zero_point<Code>, static_only>;
};
template <format Scale>
struct linear<e2m1, Scale> {
  using type = scheme<e2m1, axis_blocks, scale_as<Scale>, nan_to_opposite_zero, static_only>;
};

}  // namespace detail

/// The scheme of QuantizeLinear and DequantizeLinear: Code is int8, uint8, int16, uint16, int4, uint4, int2, uint2,
/// e4m3, e4m3fnuz, e5m2, e5m2fnuz, e2m1, or int32 (dequantize only, no zero point); Scale is f32, f16, bf16 or e8m0.
/// Integers: clamp(rne(x / s) + zp), where infinities saturate and NaN is the zero point. Float codes: x / s rounded to
/// nearest even, saturating; e2m1 takes +NaN to -0 (8) and -NaN to +0. The division is in f32, as ONNX Runtime's.
template <format Code, format Scale = f32>
using linear = typename detail::linear<Code, Scale>::type;

/// As the ONNX reference: the quotient is rounded to the type of the scale (f16 or bf16) first.
/// f16 1000 over scale 0.3: 3332, by division in f32 3333.
template <quantization_scheme S>
using as_reference = with<S, divide_in<typename S::scale_format>>;

/// The rule of DynamicQuantizeLinear in the ONNX reference: a tensor of zeros has scale 1 / 255, not 1 as in ONNX
/// Runtime and our default.
struct reference_min_max : min_max {
  static constexpr fixed_string name = "onnx::reference_min_max";
  template <format Scale>
  static constexpr float scale(float low, float high, code_range codes) {
    return low == high ? 1.f / (codes.high - codes.low) : min_max::scale<Scale>(low, high, codes);
  }
};

/// DynamicQuantizeLinear: uint8 codes, one f32 scale and one zero point from the smallest and largest number.
using dynamic_linear = uint8_per_tensor;
using dynamic_linear_reference = with<uint8_per_tensor, reference_min_max>;

/// How x's elements share `scales` scales: one for the tensor where there is one scale and no block size, else one for
/// every index of the axis, or for every block of block_size elements along it (the last may be short), in row-major
/// order. Throws on an axis the rank does not have, a negative block size, and a number of scales that fits no form.
template <tensor_extents Extents>
constexpr axis_blocks granularity_of(const Extents& x, const attributes& how, index_t scales) {
  constexpr int rank = Extents::rank;
  require(how.block_size >= 0, "block_size is ", how.block_size, "; it is 0 (no blocks) or at least 1.");
  if (how.block_size == 0 && scales == 1) return {};
  require(how.axis >= -rank && how.axis < rank, "axis is ", how.axis, " but the tensor has rank ", rank,
          "; it goes from ", -rank, " to ", rank - 1, ".");
  const axis_blocks g =
      how.block_size == 0 ? axis_blocks::channels(how.axis) : axis_blocks::blocks(how.axis, how.block_size);
  index_t needed = x[how.axis < 0 ? rank + how.axis : how.axis];
  if (how.block_size > 0) {
    needed = 1;
    for (int axis = 0; axis < rank; ++axis)
      needed = qtensor::detail::checked_product(needed, divide_up(x[axis], g.block_extent(rank, axis, x[axis])));
  }
  require(scales == needed, scales, " scales are given; axis ", how.axis, " of extent ",
          x[how.axis < 0 ? rank + how.axis : how.axis], " with block_size ", how.block_size, " needs ", needed,
          how.block_size == 0 ? ", or one for the whole tensor." : ".");
  return g;
}

namespace detail {

/// Scales of QuantizeLinear: finite and positive. (DequantizeLinear takes any: its product is defined for all.)
template <format F>
constexpr void check_scales(std::span<const unit<F>> scales) {
  for (std::size_t i = 0; i < scales.size(); ++i) {
    const float s = qtensor::decode<F>(qtensor::detail::code_of<F>(scales[i]));
    require(is_finite(s) && s > 0.f, "scale ", i, " is ", s, "; a scale must be finite and positive.");
  }
}

/// Zero points beside `count` scales: none, or one a scale, packed as ONNX packs them. Those of float codes and of
/// int32 only name a type and must be 0.
template <quantization_scheme S>
constexpr void check_zero_points(codes_in<S> zero_points, index_t count) {
  using code = typename S::code_format;
  if (zero_points.empty()) return;
  check_units<code>("zero points", zero_points.size(), count);
  if constexpr (!S::has_zero_point)
    for (index_t i = 0; i < count; ++i) {
      const float zero = qtensor::decode<code>(load<code>(zero_points.data(), i));
      require(zero == 0.f, "zero point ", i, " is ", zero, "; that of ", std::string_view(code::name),
              " codes must be 0.");
    }
}

/// A zero point of ONNX's array as tensors store it: as a number, one a unit.
template <format F>
constexpr unit<F> zero_unit(const unit<F>* zero_points, index_t i) {
  return static_cast<unit<F>>(static_cast<std::int64_t>(F::decode(load<F>(zero_points, i))));
}

/// Parameters that passed the checks into a tensor.
template <quantization_scheme S, tensor_extents Extents>
constexpr void store_parameters(const tensor_span<S, Extents>& t, scales_in<S> scales, codes_in<S> zero_points) {
  if (t.size() == 0) return;  // no blocks
  std::copy(scales.begin(), scales.end(), t.memory().scales);
  if constexpr (S::has_zero_point)
    for (std::size_t i = 0; i < (zero_points.empty() ? 0 : scales.size()); ++i)
      t.memory().zero_points[i] = zero_unit<typename S::code_format>(zero_points.data(), static_cast<index_t>(i));
}

template <quantization_scheme S>
inline constexpr bool is_linear = std::is_same_v<typename S::granularity_type, axis_blocks> &&
                                  (!S::has_zero_point ||
                                   std::is_same_v<typename S::zero_point_format, typename S::code_format>);

/// Out, or the format of the scales where none is named.
template <class Out, class S>
struct output {
  using type = Out;
};
template <class S>
struct output<none, S> {
  using type = typename S::scale_format;
};

/// A source of 32-bit integers, each rounded to f32.
struct integer_source {
  const std::int32_t* data;
  index_t row_count, col_count;
  static constexpr bool reads_rows = true;
  static constexpr bool reads_twice = true;
  index_t rows() const { return row_count; }
  index_t cols() const { return col_count; }
  const float* direct(index_t, index_t) const { return nullptr; }
  void read(index_t row, index_t rows, index_t col, index_t cols, float* tile, index_t stride) const {
    for (index_t r = 0; r < rows; ++r)
      for (index_t c = 0; c < cols; ++c)
        tile[r * stride + c] = static_cast<float>(data[(row + r) * col_count + col + c]);
  }
};

}  // namespace detail

/// The type that DequantizeLinear gives: Out, or the type of the scale where Out is `none`.
template <class Out, quantization_scheme S>
using output_of = typename detail::output<Out, S>::type;

/// Existing codes, scales and zero points as a tensor: a copy, with every row on a byte of its own. Scales may be any
/// numbers. Throws on wrong sizes, an axis out of range, and zero points other than 0 of float codes.
template <quantization_scheme S, tensor_extents Extents>
tensor<S, Extents> from_arrays(codes_in<S> codes, scales_in<S> scales, codes_in<S> zero_points, const Extents& extents,
                               const attributes& how = {}) {
  static_assert(detail::is_linear<S>, "qtensor: onnx::from_arrays needs a scheme made from onnx::linear<Code, Scale>.");
  const axis_blocks g = granularity_of(extents, how, static_cast<index_t>(scales.size()));
  detail::check_zero_points<S>(zero_points, static_cast<index_t>(scales.size()));
  detail::check_units<typename S::code_format>("codes", codes.size(), extents.size());
  tensor<S, Extents> t(extents, g);
  detail::store_parameters(t.span(), scales, zero_points);
  from_packed(codes, t.span());
  return t;
}

inline namespace QTENSOR_ABI {

namespace pieces {}  // namespace pieces

/// QuantizeLinear of any source with the rows of a row-major tensor of these extents. One scale, or as `granularity_of`
/// says; zero_points is empty (all 0) or one a scale, packed as codes are. Throws before anything is written on wrong
/// sizes, an axis out of range, scales that are not finite and positive, and zero points other than 0 of float codes.
/// on(executor) may come last, here and below.
template <quantization_scheme S, tensor_extents Extents, tile_source X, qtensor::detail::execution_option... On>
tensor<S, Extents> quantize_linear(const X& x, const Extents& extents, scales_in<S> scales,
                                   codes_in<S> zero_points = {}, const attributes& how = {}, const On&... on) {
  static_assert(detail::is_linear<S>,
                "qtensor: onnx::quantize_linear needs a scheme made from onnx::linear<Code, Scale>.");
  static_assert(!std::is_same_v<typename S::code_format, int32>, "qtensor: QuantizeLinear has no int32 codes.");
  const axis_blocks g = granularity_of(extents, how, static_cast<index_t>(scales.size()));
  detail::check_scales<typename S::scale_format>(scales);
  detail::check_zero_points<S>(zero_points, static_cast<index_t>(scales.size()));
  tensor<S, Extents> t(extents, g);
  detail::store_parameters(t.span(), scales, zero_points);
  quantize_static_into(x, t.span(), qtensor::detail::execution_among(on...));
  return t;
}

/// QuantizeLinear of memory: `quantize_linear<linear<int4>>(source(x, extents(5, 7)), scales, zero_points, {.axis =
/// 0})`.
template <quantization_scheme S, format X, tensor_extents Extents, qtensor::detail::execution_option... On>
tensor<S, Extents> quantize_linear(const memory_source<X, Extents>& x, scales_in<S> scales,
                                   codes_in<S> zero_points = {}, const attributes& how = {}, const On&... on) {
  const typename memory_source<X, Extents>::template in_order<row_major> rows(x);
  return quantize_linear<S>(rows, x.extents, scales, zero_points, how, on...);
}

/// QuantizeLinear of dense int32 elements in row-major order, each rounded to f32 first. Throws where there are
/// elements and x is null.
template <quantization_scheme S, tensor_extents Extents, qtensor::detail::execution_option... On>
tensor<S, Extents> quantize_linear(const std::int32_t* x, const Extents& extents, scales_in<S> scales,
                                   codes_in<S> zero_points = {}, const attributes& how = {}, const On&... on) {
  ops::check_source_memory(x, extents.size());
  const index_t cols = extents[Extents::rank - 1];
  const detail::integer_source rows{x, cols > 0 ? extents.size() / cols : tensor_shape<S, Extents>{extents}.row_count(),
                                    cols};
  return quantize_linear<S>(rows, extents, scales, zero_points, how, on...);
}

/// DynamicQuantizeLinear: y is the tensor's codes(), y_scale its scales()[0], y_zero_point its zero_points()[0]. A NaN
/// or an infinity makes the scale NaN and the codes 0.
template <quantization_scheme S = dynamic_linear, format X, tensor_extents Extents,
          qtensor::detail::execution_option... On>
tensor<S, Extents> dynamic_quantize_linear(const memory_source<X, Extents>& x, const On&... on) {
  return quantize<S>(x, on...);
}

/// DequantizeLinear: (code - zero point) * scale in f32, then rounded to Out, which is the type of the scale where it
/// is not named. `y` has one unit an element, row-major; it must not overlap the view.
template <class Out = none, quantized T, qtensor::detail::execution_option... On>
void dequantize_linear(const T& x, std::span<unit<output_of<Out, typename T::scheme_type>>> y, const On&... on) {
  using out = output_of<Out, typename T::scheme_type>;
  static_assert(std::is_same_v<out, f32> || std::is_same_v<out, f16> || std::is_same_v<out, bf16>,
                "qtensor: DequantizeLinear gives f32, f16 or bf16; with e8m0 scales name one: dequantize_linear<f32>.");
  const auto view = as_view(x);
  static_assert(std::is_same_v<typename decltype(view)::order_type, row_major>, "qtensor: ONNX tensors are row-major.");
  detail::check_units<out>("elements of y", y.size(), view.size());
  if (view.size() == 0) return;
  dequantize_into<out>(view, y.data(), qtensor::detail::execution_among(on...));
}

/// DequantizeLinear of memory in ONNX's layout: flat codes, scales and zero points as in `quantize_linear`, except that
/// scales may be any numbers. Throws before anything is written on wrong sizes and on an axis out of range.
template <quantization_scheme S, class Out = none, tensor_extents Extents, qtensor::detail::execution_option... On>
void dequantize_linear(codes_in<S> x, scales_in<S> scales, codes_in<S> zero_points, const Extents& extents,
                       const attributes& how, std::span<unit<output_of<Out, S>>> y, const On&... on) {
  using code = typename S::code_format;
  using view = tensor_view<S, Extents>;
  detail::check_units<output_of<Out, S>>("elements of y", y.size(), extents.size());
  const auto count = static_cast<index_t>(scales.size());
  const axis_blocks g = granularity_of(extents, how, count);
  detail::check_zero_points<S>(zero_points, count);
  detail::check_units<code>("codes", x.size(), extents.size());
  if constexpr (is_packed<code>)
    if (!detail::rows_fill_bytes<code>(extents[Extents::rank - 1])) {
      using bytes = linear<pieces::byte_format<code>, typename S::scale_format>;
      const auto zeros = pieces::as_bytes<code>(zero_points.data(), zero_points.empty() ? 0 : count);
      return dequantize_linear<bytes, output_of<Out, S>>(pieces::as_bytes<code>(x.data(), extents.size()), scales,
                                                         zeros, extents, how, y, on...);
    }
  typename view::arrays memory{};
  memory.codes = x.data();
  memory.scales = scales.data();
  std::vector<unit<code>> zeros;
  if constexpr (S::has_zero_point) {
    if (is_packed<code> || zero_points.empty()) {
      zeros.resize(scales.size());
      for (std::size_t i = 0; i < zeros.size() && !zero_points.empty(); ++i)
        zeros[i] = detail::zero_unit<code>(zero_points.data(), static_cast<index_t>(i));
      memory.zero_points = zeros.data();
    } else {
      memory.zero_points = zero_points.data();
    }
  }
  dequantize_linear<Out>(view(typename view::shape_type{extents, g, g}, memory), y, on...);
}

}  // namespace QTENSOR_ABI

}  // namespace qtensor::compat::onnx
