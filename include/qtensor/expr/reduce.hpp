// Reductions of Eigen expressions: taken as they are; what is not quantized comes back as Eigen objects.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <qtensor/expr/dequantized.hpp>
#include <qtensor/ops/select_and_scatter.hpp>

namespace qtensor::inline QTENSOR_ABI {

namespace expr_detail {

template <class X>
concept dense_expression = eigen_object<X> && requires(const X& x) {
  typename X::Scalar;
  { x.rows() } -> std::convertible_to<index_t>;
  typename Eigen::internal::evaluator<X>;
};

/// Elements of an Eigen expression, rank 2, each computed when it is read. Products inside the expression are evaluated
/// once, nothing else before it is read. Holds what evaluators hold: the expression must outlive it.
template <class Xpr>
struct expression_elements {
  using value_type = std::remove_cv_t<typename Xpr::Scalar>;
  static constexpr int rank = 2;
  using evaluator = Eigen::internal::evaluator<Xpr>;
  using index_array = std::array<index_t, 2>;

  index_array sizes;
  std::shared_ptr<const evaluator> values;

  explicit expression_elements(const Xpr& x)
      : sizes{x.rows(), x.cols()}, values(std::make_shared<const evaluator>(x)) {}

  struct line_type {
    const evaluator* values;
    index_array at, step;
    value_type operator()(index_t i) const { return values->coeff(at[0] + i * step[0], at[1] + i * step[1]); }
  };
  const index_array& extents() const { return sizes; }
  static constexpr int contiguous_axis() { return Xpr::IsRowMajor ? 1 : 0; }
  line_type line(const index_array& at, int axis) const {
    return {values.get(), at, {axis == 0 ? 1 : 0, axis == 1 ? 1 : 0}};
  }
};

/// Dense results as Eigen objects: a vector for rank 1, a matrix of the expression's order for rank 2. Quantized
/// tensors, single elements and results of other ranks stay what they are.
template <class Xpr, class Result>
Result to_eigen(Result result) {
  return result;
}
template <class Xpr, class T>
Eigen::Matrix<T, Eigen::Dynamic, 1> to_eigen(const dense<T, 1>& result) {
  return Eigen::Map<const Eigen::Matrix<T, Eigen::Dynamic, 1>>(result.data(), result.size());
}
template <class Xpr, class T>
auto to_eigen(const dense<T, 2>& result) {
  using rows = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  using matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Xpr::IsRowMajor ? Eigen::RowMajor : Eigen::ColMajor>;
  return matrix(Eigen::Map<const rows>(result.data(), result.extent(0), result.extent(1)));
}

}  // namespace expr_detail

template <expr_detail::dense_expression Xpr>
struct elements_of<Xpr> {
  static expr_detail::expression_elements<Xpr> of(const Xpr& x) { return expr_detail::expression_elements<Xpr>(x); }
};

/// `reduce` of an Eigen expression: results that are not quantized come as Eigen vectors (or a number, where both
/// dimensions are folded).
///   Eigen::VectorXf y = reduce(A * 2 + B, 0.f, dimensions(1), add);
///   tensor<S, dynamic_extents<1>> q = reduce(dequantize(W), 0.f, dimensions(0), add, requantize_to<S>(scale));
template <expr_detail::dense_expression Xpr, class Init, std::size_t N, class... Region>
auto reduce(const Xpr& x, const Init& init, const dimension_list<N>& dims, const Region&... regions) {
  return expr_detail::to_eigen<Xpr>(reduce(elements(x), init, dims, regions...));
}

/// `reduce_window` of an Eigen expression, likewise: results that are not quantized come as an Eigen matrix.
template <expr_detail::dense_expression Xpr, class Init, class... Region>
auto reduce_window(const Xpr& x, const Init& init, const window<2>& w, const Region&... regions) {
  return expr_detail::to_eigen<Xpr>(reduce_window(elements(x), init, w, regions...));
}

}  // namespace qtensor::inline QTENSOR_ABI
