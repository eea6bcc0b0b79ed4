// Fake quantization of Eigen expressions: eagerly, into a matrix of the numbers that come back from a scheme.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <qtensor/expr/quantize.hpp>
#include <qtensor/ops/fake_quantize.hpp>

namespace qtensor::inline QTENSOR_ABI {

namespace expr_detail {

/// A matrix of floats with the compile-time sizes of an expression, in its order where the sizes allow both.
template <class Xpr>
struct float_matrix {
  static constexpr int rows = Xpr::RowsAtCompileTime, cols = Xpr::ColsAtCompileTime;
  static constexpr bool by_rows = (rows == 1 && cols != 1) || (Xpr::IsRowMajor && cols != 1);
  using type = Eigen::Matrix<float, rows, cols, by_rows ? Eigen::RowMajor : Eigen::ColMajor>;
};

}  // namespace expr_detail

/// dequantize(quantize<S, Order>(x, how...)) as a plain matrix of floats: `fake_quantize<int8_per_tensor>(A + B)`.
/// `how` and the elements of x as in quantize; groups run along the last axis unless the scheme says otherwise. The
/// expression is read as quantize reads it. Throws qtensor::error.
template <quantization_scheme S, storage_order Order = row_major, class Xpr, class... How>
typename expr_detail::float_matrix<Xpr>::type fake_quantize(const Eigen::DenseBase<Xpr>& x, const How&... how) {
  static_assert(((parameter_values<How> || granularity<How> || expr_detail::eigen_object<How> ||
                  qtensor::detail::is_execution<How> || std::is_same_v<How, tensor_level>)&&...),
                "qtensor: fake_quantize<S>(x, how...) takes scales, zero points (numbers or ranges of numbers), a "
                "tensor_level, a granularity and on(an executor).");
  typename expr_detail::float_matrix<Xpr>::type out(x.rows(), x.cols());
  expr_detail::with_source<Order>(x, [&](const auto& source) {
    fake_quantize_into<S, Order>(source, matrix_extents(x.rows(), x.cols()), out.data(),
                                 {out.rowStride(), out.colStride()}, expr_detail::in_storage_order<Order>(how)...);
  });
  return out;
}

}  // namespace qtensor::inline QTENSOR_ABI
