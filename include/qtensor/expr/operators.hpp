// Operators between quantized tensors and Eigen: found by argument-dependent lookup, refused with a sentence.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <qtensor/expr/assign.hpp>
#include <qtensor/expr/assign_parts.hpp>
#include <qtensor/expr/dequantized.hpp>
#include <qtensor/expr/product.hpp>
#include <qtensor/expr/structured.hpp>
#include <utility>

namespace qtensor::inline QTENSOR_ABI {

namespace expr_detail {

/// A tensor that is about to die: nothing lazy may refer to it.
template <class T>
concept owning_temporary = !std::is_reference_v<T> && ::qtensor::detail::is_tensor<std::remove_cv_t<T>>;

/// What an operator takes beside a quantized matrix.
template <class T>
concept number_or_matrix =
    std::is_arithmetic_v<std::remove_cvref_t<T>> || quantized<T> || eigen_object<std::remove_cvref_t<T>>;
template <class A, class B>
concept dangling = (owning_temporary<A> && number_or_matrix<B>) || (owning_temporary<B> && number_or_matrix<A>);

/// Whether an object of Eigen has indices where others have numbers.
template <class Derived>
std::type_identity<Derived> derived_type(const Eigen::EigenBase<Derived>&);
template <class X, class Derived = typename decltype(derived_type(std::declval<const X&>()))::type>
inline constexpr bool is_permutation =
    std::is_same_v<typename Eigen::internal::evaluator_traits<Derived>::Shape, Eigen::PermutationShape>;

template <class X>
constexpr bool check_scalar() {
  static_assert(
      std::is_same_v<typename X::Scalar, float>,
      "qtensor: quantized matrices combine with Eigen expressions of float; add .cast<float>() to the other operand.");
  return std::is_same_v<typename X::Scalar, float>;
}
template <class X>
constexpr bool check_factor() {
  if constexpr (is_permutation<X>)
    return true;
  else
    return check_scalar<X>();
}

/// A tensor that is about to die as an expression that keeps it.
template <owning_temporary V>
auto owning_expression(V&& v) {
  using type = std::remove_cv_t<V>;
  using owner = std::shared_ptr<const type>;
  const owner kept = std::make_shared<const type>(std::move(v));
  return dequantized<typename type::view_type, owner>(kept->view(), kept);
}

template <class L, class R>
void check_product(const L& l, const R& r) {
  require(l.cols() == r.rows(), "the left operand of a product has ", l.cols(), " columns, the right one ", r.rows(),
          " rows; they must be equal.");
}
template <class L, class R>
void check_sum(const L& l, const R& r) {
  require(l.rows() == r.rows() && l.cols() == r.cols(), "a matrix of ", l.rows(), "x", l.cols(),
          " is added to (or subtracted from) one of ", r.rows(), "x", r.cols(), "; sizes must agree.");
}

}  // namespace expr_detail

// ---- W * X, X * W, W * V: Eigen products. X is whatever Eigen multiplies: matrices, diagonals, permutations, and
// triangular, self-adjoint and sparse matrices, for which W becomes floats first. ----

template <quantized W, expr_detail::eigen_object X>
auto operator*(const W& w, const X& x) {
  if constexpr (expr_detail::check_factor<X>()) {
    expr_detail::check_product(w, x);
    return dequantize(w) * x;
  }
}
template <expr_detail::eigen_object X, quantized W>
auto operator*(const X& x, const W& w) {
  if constexpr (expr_detail::check_factor<X>()) {
    expr_detail::check_product(x, w);
    return x * dequantize(w);
  }
}
template <quantized W, quantized V>
auto operator*(const W& w, const V& v) {
  expr_detail::check_product(w, v);
  return dequantize(w) * dequantize(v);
}
/// `W * quantize<S>(X)`: the one lazy expression that may take a temporary tensor. The product owns it.
template <quantized W, expr_detail::owning_temporary V>
auto operator*(const W& w, V&& v) {
  expr_detail::check_product(w, v);
  return dequantize(w) * expr_detail::owning_expression(std::move(v));
}

// ---- s * W, W * s, W / s, -W ----

template <class Number, quantized W>
requires std::is_arithmetic_v<Number>
auto operator*(Number s, const W& w) { return static_cast<float>(s) * dequantize(w); }
template <quantized W, class Number>
requires std::is_arithmetic_v<Number>
auto operator*(const W& w, Number s) { return dequantize(w) * static_cast<float>(s); }
template <quantized W, class Number>
requires std::is_arithmetic_v<Number>
auto operator/(const W& w, Number s) { return dequantize(w) / static_cast<float>(s); }
template <quantized W>
auto operator-(const W& w) {
  return -dequantize(w);
}

// ---- W + X, X + W, W + V, and the same with - ----

template <quantized W, expr_detail::eigen_object X>
auto operator+(const W& w, const X& x) {
  if constexpr (expr_detail::check_scalar<X>()) {
    expr_detail::check_sum(w, x);
    return dequantize(w) + x;
  }
}
template <expr_detail::eigen_object X, quantized W>
auto operator+(const X& x, const W& w) {
  if constexpr (expr_detail::check_scalar<X>()) {
    expr_detail::check_sum(x, w);
    return x + dequantize(w);
  }
}
template <quantized W, quantized V>
auto operator+(const W& w, const V& v) {
  expr_detail::check_sum(w, v);
  return dequantize(w) + dequantize(v);
}
template <quantized W, expr_detail::eigen_object X>
auto operator-(const W& w, const X& x) {
  if constexpr (expr_detail::check_scalar<X>()) {
    expr_detail::check_sum(w, x);
    return dequantize(w) - x;
  }
}
template <expr_detail::eigen_object X, quantized W>
auto operator-(const X& x, const W& w) {
  if constexpr (expr_detail::check_scalar<X>()) {
    expr_detail::check_sum(x, w);
    return x - dequantize(w);
  }
}
template <quantized W, quantized V>
auto operator-(const W& w, const V& v) {
  expr_detail::check_sum(w, v);
  return dequantize(w) - dequantize(v);
}

/// The transpose as a lazy expression: `transpose(W) * x`, as `dequantize(W).transpose() * x`.
template <quantized W>
auto transpose(const W& w) {
  return dequantize(w).transpose();
}
template <expr_detail::owning_temporary W>
void transpose(W&& w) = delete;

// ---- Y += W, Y -= W, also where Y is a block, a map, or noalias() ----

template <class Y, quantized W>
requires expr_detail::eigen_object<std::remove_cvref_t<Y>> &&
    (!std::is_const_v<std::remove_reference_t<Y>>)decltype(auto)
    operator+=(Y&& y, const W& w) {
  expr_detail::check_sum(y, w);
  return y += dequantize(w);
}
template <class Y, quantized W>
requires expr_detail::eigen_object<std::remove_cvref_t<Y>> &&
    (!std::is_const_v<std::remove_reference_t<Y>>)decltype(auto)
    operator-=(Y&& y, const W& w) {
  expr_detail::check_sum(y, w);
  return y -= dequantize(w);
}
template <class Y, template <class> class Base, quantized W>
Y& operator+=(Eigen::NoAlias<Y, Base>&& y, const W& w) {
  expr_detail::check_sum(y.expression(), w);
  return y.expression() += dequantize(w);
}
template <class Y, template <class> class Base, quantized W>
Y& operator-=(Eigen::NoAlias<Y, Base>&& y, const W& w) {
  expr_detail::check_sum(y.expression(), w);
  return y.expression() -= dequantize(w);
}

// ---- Deleted: what these would return refers to a tensor that is gone. Name the tensor first. ----

template <class A, class B>
requires(expr_detail::dangling<A, B> &&
         !(expr_detail::owning_temporary<B> && quantized<A> && !expr_detail::owning_temporary<A>)) void
operator*(A&&, B&&) = delete;
template <class A, class B>
requires expr_detail::dangling<A, B>
void operator+(A&&, B&&) = delete;
template <class A, class B>
requires expr_detail::dangling<A, B>
void operator-(A&&, B&&) = delete;
template <expr_detail::owning_temporary W, class Number>
requires std::is_arithmetic_v<Number>
void operator/(W&&, Number) = delete;
template <expr_detail::owning_temporary W>
void operator-(W&&) = delete;

}  // namespace qtensor::inline QTENSOR_ABI
