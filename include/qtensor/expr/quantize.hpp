// Quantize an Eigen expression: eagerly, tile by tile, into a tensor that owns its memory.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <qtensor/expr/source_of.hpp>
#include <qtensor/ops/parallel.hpp>
#include <qtensor/ops/quantize_dual_axis.hpp>
#include <tuple>
#include <vector>

namespace qtensor::inline QTENSOR_ABI {

namespace expr_detail {

/// Scales or zero points given as an Eigen expression: its elements in the order in which a tensor of this order stores
/// their blocks. Everything else is passed on as it is.
template <storage_order Order, class Values>
decltype(auto) in_storage_order(const Values& values) {
  if constexpr (eigen_object<Values>) {
    std::vector<typename Values::Scalar> numbers;
    numbers.reserve(static_cast<std::size_t>(values.size()));
    const auto plain = values.eval();
    const Eigen::Index lines = std::is_same_v<Order, row_major> ? plain.rows() : plain.cols(),
                       length = lines > 0 ? plain.size() / lines : 0;
    for (Eigen::Index line = 0; line < lines; ++line)
      for (Eigen::Index i = 0; i < length; ++i)
        numbers.push_back(std::is_same_v<Order, row_major> ? plain(line, i) : plain(i, line));
    return numbers;
  } else {
    return (values);
  }
}

template <class How>
inline constexpr bool is_granularity = granularity<How>;

/// The granularity among the arguments, or the scheme's own where its type says all.
template <quantization_scheme S, class... How>
typename S::granularity_type granularity_of(const How&... how) {
  constexpr int given = (0 + ... + (is_granularity<How> ? 1 : 0));
  static_assert(given <= 1, "qtensor: quantize takes one granularity.");
  static_assert(
      given == 1 || has_static_blocks<typename S::granularity_type>,
      "qtensor: this scheme's block sizes are known at run time only; pass them: quantize<S>(x, group<dynamic>{64}).");
  typename S::granularity_type found{};
  [[maybe_unused]] const auto take = [&]([[maybe_unused]] const auto& one) {
    if constexpr (is_granularity<std::remove_cvref_t<decltype(one)>>) {
      static_assert(std::is_convertible_v<decltype(one), typename S::granularity_type>,
                    "qtensor: the granularity given to quantize is not of the scheme's type.");
      found = one;
    }
  };
  (take(how), ...);
  return found;
}

/// The level of a tensor among the arguments, if there is one.
template <class... How>
std::optional<tensor_level> level_of(const How&... how) {
  static_assert((0 + ... + (std::is_same_v<How, tensor_level> ? 1 : 0)) <= 1,
                "qtensor: quantize takes one tensor_level.");
  std::optional<tensor_level> found;
  [[maybe_unused]] const auto take = [&]([[maybe_unused]] const auto& one) {
    if constexpr (std::is_same_v<std::remove_cvref_t<decltype(one)>, tensor_level>) found = one;
  };
  (take(how), ...);
  return found;
}

/// The arguments that are neither granularities nor executors nor levels, as a tuple of references.
template <class... How>
auto values_of(const How&... how) {
  [[maybe_unused]] const auto one = []([[maybe_unused]] const auto& value) {
    using type = std::remove_cvref_t<decltype(value)>;
    if constexpr (is_granularity<type> || qtensor::detail::is_execution<type> || std::is_same_v<type, tensor_level>)
      return std::tuple<>();
    else
      return std::tie(value);
  };
  return std::tuple_cat(one(how)...);
}

}  // namespace expr_detail

/// Quantizes an expression into a new tensor of its size: `quantize<mxfp4>(A * 2 + B)`, `quantize<S, col_major>(x)`.
///
/// `how` is empty (dynamic: scales by the scheme's rule); scales; scales, then zero points (both static); and at any
/// place the scheme's granularity where that holds run-time sizes. Schemes of two levels take a `tensor_level` where
/// the scale of the whole tensor is known already. Scales and zero points are a number, any contiguous range, or an
/// Eigen expression with one element a block; they are checked before anything is written. An executor may be among the
/// arguments, `quantize<mxfp4>(A, on(openmp()))`; it does not change a bit. Elements are float, or half and bfloat16
/// (widened exactly); other types do not compile. The expression is read in tiles, once or, where scales depend on more
/// than a tile, twice; products inside it are evaluated once. The result never aliases its source: `W =
/// quantize<S>(dequantize(W) + B)` is right. Throws qtensor::error.
template <quantization_scheme S, storage_order Order = row_major, class Xpr, class... How>
tensor<S, matrix_extents, Order> quantize(const Eigen::DenseBase<Xpr>& x, const How&... how) {
  static_assert(
      ((parameter_values<How> || granularity<How> || expr_detail::eigen_object<How> ||
        qtensor::detail::is_execution<How> || std::is_same_v<How, tensor_level>)&&...),
      "qtensor: quantize<S>(x, how...) takes scales, zero points (numbers or ranges of numbers), a tensor_level, a "
      "granularity and an executor.");
  auto out = ops::tensor_to_fill<S, matrix_extents, Order>(matrix_extents(x.rows(), x.cols()),
                                                           expr_detail::granularity_of<S>(how...));
  const auto store = [&](const auto&... values) {
    constexpr std::size_t given = sizeof...(values);
    static_assert(given <= 2, "qtensor: quantize takes scales, or scales and zero points.");
    static_assert(given == 0 || !(S::has_tensor_scale || S::has_offset),
                  "qtensor: this scheme stores more than scales and zero points; store them in a tensor and use "
                  "quantize_static_into.");
    static_assert(given == 0 || S::has_zero_point == (given == 2),
                  "qtensor: static quantization takes scales and zero points where the scheme has a zero point, scales "
                  "alone where it is symmetric.");
    [[maybe_unused]] const auto all = std::tie(values...);
    if constexpr (given >= 1) store_scales(out.span(), expr_detail::in_storage_order<Order>(std::get<0>(all)));
    if constexpr (given == 2) store_zero_points(out.span(), expr_detail::in_storage_order<Order>(std::get<1>(all)));
    return std::bool_constant<(given > 0)>{};
  };
  const auto is_static = std::apply(store, expr_detail::values_of(how...));
  const auto by = qtensor::detail::execution_among(how...);
  constexpr bool levelled = (std::is_same_v<How, tensor_level> || ...);
  static_assert(!levelled || S::has_tensor_scale,
                "qtensor: a tensor_level is for schemes of two levels, such as with<nvfp4, tensor_scale<f32>>.");
  expr_detail::with_source<Order>(x, [&](const auto& source) {
    if constexpr (decltype(is_static)::value)
      quantize_static_into(source, out.span(), by);
    else if constexpr (levelled)
      quantize_into(source, out.span(), *expr_detail::level_of(how...), by);
    else
      quantize_into(source, out.span(), by);
  });
  return out;
}

/// Dynamic quantization into memory that is there already. Sizes must agree; the expression must not read what is
/// written.
template <quantization_scheme S, tensor_extents Extents, storage_order Order, class Xpr, executor By = serial>
void quantize_into(const tensor_span<S, Extents, Order>& out, const Eigen::DenseBase<Xpr>& x,
                   const execution<By>& on = {}) {
  static_assert(Extents::rank == 2, "qtensor: an Eigen expression is a matrix; quantize it into a span of rank 2.");
  require(out.rows() == x.rows() && out.cols() == x.cols(), "an expression of ", x.rows(), "x", x.cols(),
          " is quantized into a tensor of ", out.rows(), "x", out.cols(), "; sizes must agree.");
  expr_detail::with_source<Order>(x, [&](const auto& source) { quantize_into(source, out, on); });
}
template <quantization_scheme S, tensor_extents Extents, storage_order Order, class Xpr, executor By = serial>
void quantize_into(tensor<S, Extents, Order>& out, const Eigen::DenseBase<Xpr>& x, const execution<By>& on = {}) {
  quantize_into(out.span(), x, on);
}

/// Both axes from one read: `auto [rows, cols] = quantize_dual_axis<mxfp8_e4m3>(X)`. Both are quantized from X itself,
/// rows with groups along the last axis, cols along the first. `on` is an executor: on(openmp()).
template <quantization_scheme S, class Xpr, executor By = serial>
auto quantize_dual_axis(const Eigen::DenseBase<Xpr>& x, const execution<By>& on = {}) {
  return expr_detail::with_source<row_major>(
      x, [&](const auto& source) { return make_dual_axis<S>(source, matrix_extents(x.rows(), x.cols()), on); });
}

}  // namespace qtensor::inline QTENSOR_ABI
