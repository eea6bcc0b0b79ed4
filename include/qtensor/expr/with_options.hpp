// Products of packed weights, and of weights with options, as Eigen expressions: P * x, W.with(int8_activations) * X.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <qtensor/expr/operators.hpp>

namespace qtensor::inline QTENSOR_ABI {

/// Eigen's word for weights that only multiply: no coefficient of theirs can be read.
struct WeightsShape {
  static std::string debugName() { return "WeightsShape"; }
};

namespace expr_detail {

/// Matrix is a view, or packed weights by reference.
template <class Matrix, class Options>
class weights_expression;

template <class T>
inline constexpr bool is_with_options = false;
template <class Matrix, class Options>
inline constexpr bool is_with_options<with_product_options<Matrix, Options>> = true;
template <class T>
concept matrix_with_options = is_with_options<std::remove_cvref_t<T>>;

template <class Matrix, std::size_t Axis>
constexpr int size_at_compile_time() {
  if constexpr (packed_matrix<Matrix>)
    return Eigen::Dynamic;
  else
    return eigen_size(Matrix::extents_type::static_extent(Axis));
}

}  // namespace expr_detail

}  // namespace qtensor::inline QTENSOR_ABI

namespace Eigen::internal {

template <class Matrix, class Options>
struct traits<qtensor::expr_detail::weights_expression<Matrix, Options>> {
  using Scalar = float;
  using StorageIndex = Eigen::Index;
  using StorageKind = Dense;
  using XprKind = MatrixXpr;
  enum {
    RowsAtCompileTime = qtensor::expr_detail::size_at_compile_time<Matrix, 0>(),
    ColsAtCompileTime = qtensor::expr_detail::size_at_compile_time<Matrix, 1>(),
    MaxRowsAtCompileTime = RowsAtCompileTime,
    MaxColsAtCompileTime = ColsAtCompileTime,
    Flags = 0
  };
};
template <class Matrix, class Options>
struct evaluator_traits<qtensor::expr_detail::weights_expression<Matrix, Options>>
    : evaluator_traits_base<qtensor::expr_detail::weights_expression<Matrix, Options>> {
  using Shape = qtensor::WeightsShape;
};

}  // namespace Eigen::internal

namespace qtensor::inline QTENSOR_ABI::expr_detail {

template <class Matrix, class Options>
class weights_expression : public Eigen::MatrixBase<weights_expression<Matrix, Options>> {
 public:
  using Base = Eigen::MatrixBase<weights_expression>;
  EIGEN_DENSE_PUBLIC_INTERFACE(weights_expression)

  weights_expression(const with_product_options<Matrix, Options>& weights) : weights_(weights) {}
  Eigen::Index rows() const { return weights_.matrix.rows(); }
  Eigen::Index cols() const { return weights_.matrix.cols(); }
  const auto& matrix() const { return weights_.matrix; }
  const Options& options() const { return weights_.options; }

 private:
  with_product_options<Matrix, Options> weights_;
};

/// How an expression folds into weights: transposed or not, times a factor.
template <class Xpr>
struct weights_operand {
  static constexpr bool folds = false;
};
template <class Xpr>
struct weights_operand<const Xpr> : weights_operand<Xpr> {};
template <class Xpr>
concept folded_weights = weights_operand<Xpr>::folds;

template <class Matrix, class Options>
struct weights_operand<weights_expression<Matrix, Options>> {
  using expression = weights_expression<Matrix, Options>;
  using matrix_type = std::remove_cvref_t<Matrix>;
  using options_type = Options;
  static constexpr bool folds = true, is_transposed = false;
  static const expression& weights(const expression& x) { return x; }
  static float factor(const expression&) { return 1.f; }
};
template <folded_weights X>
struct weights_operand<Eigen::Transpose<X>> : weights_operand<std::remove_const_t<X>> {
  using inner = weights_operand<std::remove_const_t<X>>;
  static constexpr bool is_transposed = !inner::is_transposed;
  static const auto& weights(const Eigen::Transpose<X>& x) { return inner::weights(x.nestedExpression()); }
  static float factor(const Eigen::Transpose<X>& x) { return inner::factor(x.nestedExpression()); }
};
template <folded_weights X>
struct weights_operand<Eigen::CwiseUnaryOp<Eigen::internal::scalar_opposite_op<float>, X>>
    : weights_operand<std::remove_const_t<X>> {
  using inner = weights_operand<std::remove_const_t<X>>;
  static const auto& weights(const auto& x) { return inner::weights(x.nestedExpression()); }
  static float factor(const auto& x) { return -inner::factor(x.nestedExpression()); }
};
template <class Plain, folded_weights X>
struct weights_operand<Eigen::CwiseBinaryOp<times_op, const constant<Plain>, X>>
    : weights_operand<std::remove_const_t<X>> {
  using inner = weights_operand<std::remove_const_t<X>>;
  static const auto& weights(const auto& x) { return inner::weights(x.rhs()); }
  static float factor(const auto& x) { return rounded(inner::factor(x.rhs()) * x.lhs().functor().m_other); }
};
template <class Plain, folded_weights X>
struct weights_operand<Eigen::CwiseBinaryOp<times_op, X, const constant<Plain>>>
    : weights_operand<std::remove_const_t<X>> {
  using inner = weights_operand<std::remove_const_t<X>>;
  static const auto& weights(const auto& x) { return inner::weights(x.lhs()); }
  static float factor(const auto& x) { return rounded(inner::factor(x.lhs()) * x.rhs().functor().m_other); }
};

/// Weights as an engine takes them; `Depth` is the axis of the matrix that the product sums over.
template <depth_axis Depth, class Matrix>
decltype(auto) engine_weights(const Matrix& matrix) {
  if constexpr (packed_matrix<Matrix>) {
    static_assert(Depth == depth_axis::cols,
                  "qtensor: packed weights sum over the columns of what was packed: P * x, or x.transpose() * "
                  "transpose(P); for the other product pack<simd::best_arch, depth_axis::rows>(W), used like W's "
                  "transpose.");
    return (matrix);
  } else {
    return ops::weights_of<Matrix, Depth>(matrix);
  }
}

/// The other operand's rows (columns where Tokens is cols) as activations of a product with W, passed to use(x).
/// Quantized ones stay codes where the engine takes codes.
template <depth_axis Tokens, class W, class Options, class X, class Use>
void with_activations(const X& x, const Use& use) {
  constexpr depth_axis depth = Tokens == depth_axis::cols ? depth_axis::rows : depth_axis::cols;
  const auto turned = [](const auto& source) {
    if constexpr (Tokens == depth_axis::cols)
      return source.transposed();
    else
      return source;
  };
  if constexpr (folded<X>) {
    using codes = decltype(operand_of<depth>(x));
    ops::check_groups<W, codes>();
    if constexpr (Options::math == product_math::fixed_order &&
                  ops::engine_of<W, codes>() != ops::product_engine::floats)
      use(operand_of<depth>(x), operand<X>::fold(x).by.number());
    else
      use(turned(source_of_operand(x).plain()), operand<X>::fold(x).by.number());
  } else {
    const multiplicand<X> other(x);
    use(turned(other.source()), 1.f);
  }
}

/// y (=, +=, -=) factors * lhs * rhs, one of which is weights.
template <class Lhs, class Rhs>
struct weights_product : product_forms<weights_product<Lhs, Rhs>, Lhs, Rhs> {
  static void into_memory(const matrix_ref<float>& y, const Lhs& lhs, const Rhs& rhs, float alpha, accumulate mode) {
    QTENSOR_COUNT_KERNELS(products);
    if constexpr (folded_weights<Lhs>)
      run<weights_operand<Lhs>, weights_operand<Lhs>::is_transposed ? depth_axis::rows : depth_axis::cols,
          depth_axis::cols>(y.transposed(), lhs, rhs, alpha, mode);
    else
      run<weights_operand<Rhs>, weights_operand<Rhs>::is_transposed ? depth_axis::cols : depth_axis::rows,
          depth_axis::rows>(y, rhs, lhs, alpha, mode);
  }

 private:
  template <class Operand, depth_axis Depth, depth_axis Tokens, class Weights, class X>
  static void run(const matrix_ref<float>& y, const Weights& expression, const X& x, float alpha, accumulate mode) {
    using options_type = typename Operand::options_type;
    const auto& node = Operand::weights(expression);
    const auto& weights = engine_weights<Depth>(node.matrix());
    using weights_type = std::remove_cvref_t<decltype(weights)>;
    const bool empty = x.rows() == 0 || x.cols() == 0;
    if (empty && mode != accumulate::assign) return;  // sums of nothing, whatever the factor
    with_activations<Tokens, weights_type, options_type>(x, [&](const auto& activations, float factor) {
      using sink = ops::store_floats<simd::best_arch>;
      const float all = rounded(rounded(Operand::factor(expression) * factor) * alpha);
      ops::multiply_with(weights, activations, sink{y, empty ? 1.f : all, mode}, node.options());
    });
  }
};

/// Packed weights, or any weights with options.
template <class T>
concept multiplying_weights = packed_matrix<T> || matrix_with_options<T>;
template <class T>
concept packed_temporary = !std::is_reference_v<T> && packed_matrix<T>;

/// Weights as an expression.
template <multiplying_weights W>
auto as_expression(const W& w) {
  if constexpr (packed_matrix<W>)
    return weights_expression<const W&, product_options<product_math::fixed_order, serial>>(w.with());
  else
    return weights_expression<decltype(W::matrix), decltype(W::options)>(w);
}

}  // namespace qtensor::inline QTENSOR_ABI::expr_detail

namespace Eigen::internal {

template <class L, class R, int Tag>
struct generic_product_impl<L, R, qtensor::WeightsShape, DenseShape, Tag>
    : qtensor::expr_detail::weights_product<L, R> {};
template <class L, class R, int Tag>
struct generic_product_impl<L, R, DenseShape, qtensor::WeightsShape, Tag>
    : qtensor::expr_detail::weights_product<L, R> {};
template <class L, class R, int Tag>
struct generic_product_impl<L, R, qtensor::WeightsShape, qtensor::QuantizedShape, Tag>
    : qtensor::expr_detail::weights_product<L, R> {};
template <class L, class R, int Tag>
struct generic_product_impl<L, R, qtensor::QuantizedShape, qtensor::WeightsShape, Tag>
    : qtensor::expr_detail::weights_product<L, R> {};

// Whatever folds keeps the shape.
template <class X>
requires qtensor::expr_detail::folded_weights<Transpose<X>>
struct evaluator_traits<Transpose<X>> : evaluator_traits_base<Transpose<X>> {
  using Shape = qtensor::WeightsShape;
};
template <class Op, class X>
requires qtensor::expr_detail::folded_weights<CwiseUnaryOp<Op, X>>
struct evaluator_traits<CwiseUnaryOp<Op, X>> : evaluator_traits_base<CwiseUnaryOp<Op, X>> {
  using Shape = qtensor::WeightsShape;
};
template <class Op, class L, class R>
requires qtensor::expr_detail::folded_weights<CwiseBinaryOp<Op, L, R>>
struct evaluator_traits<CwiseBinaryOp<Op, L, R>> : evaluator_traits_base<CwiseBinaryOp<Op, L, R>> {
  using Shape = qtensor::WeightsShape;
};

// Sums and copies of weights that only multiply.
template <class Matrix, class Options>
struct evaluator<qtensor::expr_detail::weights_expression<Matrix, Options>> {
  static_assert(sizeof(Matrix) == 0,
                "qtensor: packed weights and weights with options only multiply: P * x, W.with(...) * X; for "
                "everything else use the tensor itself.");
};

}  // namespace Eigen::internal

namespace qtensor::inline QTENSOR_ABI {

// ---- P * X, W.with(...) * X, and from the right: x.transpose() * transpose(P) ----

template <expr_detail::multiplying_weights W, expr_detail::eigen_object X>
auto operator*(const W& w, const X& x) {
  const auto weights = expr_detail::as_expression(w);
  if constexpr (expr_detail::check_scalar<X>()) {
    expr_detail::check_product(weights, x);
    return weights * x;
  }
}
template <expr_detail::eigen_object X, expr_detail::multiplying_weights W>
auto operator*(const X& x, const W& w) {
  const auto weights = expr_detail::as_expression(w);
  if constexpr (expr_detail::check_scalar<X>()) {
    expr_detail::check_product(x, weights);
    return x * weights;
  }
}
template <expr_detail::multiplying_weights W, quantized V>
auto operator*(const W& w, const V& v) {
  const auto weights = expr_detail::as_expression(w);
  expr_detail::check_product(weights, v);
  return weights * dequantize(v);
}
/// `P * quantize<S>(X)`: the product owns the temporary.
template <expr_detail::multiplying_weights W, expr_detail::owning_temporary V>
auto operator*(const W& w, V&& v) {
  const auto weights = expr_detail::as_expression(w);
  expr_detail::check_product(weights, v);
  return weights * expr_detail::owning_expression(std::move(v));
}
template <class Number, expr_detail::multiplying_weights W>
requires std::is_arithmetic_v<Number>
auto operator*(Number s, const W& w) { return static_cast<float>(s) * expr_detail::as_expression(w); }
template <expr_detail::multiplying_weights W, class Number>
requires std::is_arithmetic_v<Number>
auto operator*(const W& w, Number s) { return expr_detail::as_expression(w) * static_cast<float>(s); }
template <expr_detail::multiplying_weights W>
auto operator-(const W& w) {
  return -expr_detail::as_expression(w);
}
/// The transpose as a factor: `x.transpose() * transpose(P)`.
template <expr_detail::multiplying_weights W>
auto transpose(const W& w) {
  return expr_detail::as_expression(w).transpose();
}

// Deleted: what these would return refers to weights that are gone. Name them first.
template <expr_detail::packed_temporary W, class X>
void operator*(W&&, X&&) = delete;
template <class X, expr_detail::packed_temporary W>
void operator*(X&&, W&&) = delete;
template <expr_detail::packed_temporary W>
void operator-(W&&) = delete;
template <expr_detail::packed_temporary W>
void transpose(W&&) = delete;

}  // namespace qtensor::inline QTENSOR_ABI
