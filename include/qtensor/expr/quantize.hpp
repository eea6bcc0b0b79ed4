// Quantize an Eigen expression: eagerly, tile by tile, into a tensor that owns its memory.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <qtensor/expr/source_of.hpp>
#include <qtensor/ops/parallel.hpp>
#include <qtensor/ops/quantize_dual_axis.hpp>
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

/// Refuses an expression of another size than a span's.
template <class Span, class Xpr>
void check_destination(const Span& out, const Eigen::DenseBase<Xpr>& x) {
  static_assert(Span::rank == 2, "qtensor: an Eigen expression is a matrix; quantize it into a span of rank 2.");
  require(out.rows() == x.rows() && out.cols() == x.cols(), "an expression of ", x.rows(), "x", x.cols(),
          " is quantized into a tensor of ", out.rows(), "x", out.cols(), "; sizes must agree.");
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
  return expr_detail::with_source<Order>(x, [&](const auto& source) {
    return make_quantized<S, Order>(source, matrix_extents(x.rows(), x.cols()),
                                    expr_detail::in_storage_order<Order>(how)...);
  });
}

/// Dynamic quantization into memory that is there already. Sizes must agree; the expression must not read what is
/// written.
template <quantization_scheme S, tensor_extents Extents, storage_order Order, class Xpr, executor By = serial>
void quantize_into(const tensor_span<S, Extents, Order>& out, const Eigen::DenseBase<Xpr>& x,
                   const execution<By>& on = {}) {
  expr_detail::check_destination(out, x);
  expr_detail::with_source<Order>(x, [&](const auto& source) { quantize_into(source, out, on); });
}
template <quantization_scheme S, tensor_extents Extents, storage_order Order, class Xpr, executor By = serial>
void quantize_into(tensor<S, Extents, Order>& out, const Eigen::DenseBase<Xpr>& x, const execution<By>& on = {}) {
  quantize_into(out.span(), x, on);
}

/// Static quantization into memory that is there already, with the scales (and zero points) that it holds:
/// `quantize_static_into(K.span().middle_rows(t, 1), k.transpose())`. As quantize_into else.
template <quantization_scheme S, tensor_extents Extents, storage_order Order, class Xpr, executor By = serial>
void quantize_static_into(const tensor_span<S, Extents, Order>& out, const Eigen::DenseBase<Xpr>& x,
                          const execution<By>& on = {}) {
  expr_detail::check_destination(out, x);
  expr_detail::with_source<Order>(x, [&](const auto& source) { quantize_static_into(source, out, on); });
}
template <quantization_scheme S, tensor_extents Extents, storage_order Order, class Xpr, executor By = serial>
void quantize_static_into(tensor<S, Extents, Order>& out, const Eigen::DenseBase<Xpr>& x,
                          const execution<By>& on = {}) {
  quantize_static_into(out.span(), x, on);
}

/// Both axes from one read: `auto [rows, cols] = quantize_dual_axis<mxfp8_e4m3>(X)`. Both are quantized from X itself,
/// rows with groups along the last axis, cols along the first. `on` is an executor: on(openmp()).
template <quantization_scheme S, class Xpr, executor By = serial>
auto quantize_dual_axis(const Eigen::DenseBase<Xpr>& x, const execution<By>& on = {}) {
  return expr_detail::with_source<row_major>(
      x, [&](const auto& source) { return make_dual_axis<S>(source, matrix_extents(x.rows(), x.cols()), on); });
}

}  // namespace qtensor::inline QTENSOR_ABI
