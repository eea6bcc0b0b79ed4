// Eigen's structured matrices beside quantized ones: permutations, triangular and self-adjoint views, sparse matrices.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <concepts>
#include <qtensor/expr/dequantized.hpp>

namespace qtensor::inline QTENSOR_ABI::expr_detail {

/// Shapes of matrices that Eigen multiplies with dense ones only.
template <class Shape>
concept structured_shape = std::same_as<Shape, Eigen::TriangularShape> ||
    std::same_as<Shape, Eigen::SelfAdjointShape> || std::same_as<Shape, Eigen::SparseShape>;

template <class X>
using floats_of = typename Eigen::internal::plain_matrix_type<X>::type;

/// A side of a product: a quantized one as floats in memory, another as it is.
template <class X>
decltype(auto) without_codes(const X& x) {
  if constexpr (std::same_as<typename Eigen::internal::evaluator_traits<X>::Shape, QuantizedShape>)
    return floats_of<X>(x);
  else
    return (x);
}

/// Eigen's own product of what both sides are then.
template <class Product>
struct product_without_codes {
  template <class Dst, class L, class R>
  static void evalTo(Dst& dst, const L& l, const R& r) {
    Product::evalTo(dst, without_codes(l), without_codes(r));
  }
  template <class Dst, class L, class R>
  static void addTo(Dst& dst, const L& l, const R& r) {
    Product::addTo(dst, without_codes(l), without_codes(r));
  }
  template <class Dst, class L, class R>
  static void subTo(Dst& dst, const L& l, const R& r) {
    Product::subTo(dst, without_codes(l), without_codes(r));
  }
  template <class Dst, class L, class R>
  static void scaleAndAddTo(Dst& dst, const L& l, const R& r, const float& alpha) {
    Product::scaleAndAddTo(dst, without_codes(l), without_codes(r), alpha);
  }
};

}  // namespace qtensor::inline QTENSOR_ABI::expr_detail

namespace Eigen::internal {

// Permutations move rows or columns, which are blocks of a quantized matrix as of any.
template <class X, int Side, bool Transposed>
struct permutation_matrix_product<X, Side, Transposed, qtensor::QuantizedShape>
    : permutation_matrix_product<X, Side, Transposed, DenseShape> {};

template <class L, class R, qtensor::expr_detail::structured_shape Shape, int Tag>
struct generic_product_impl<L, R, Shape, qtensor::QuantizedShape, Tag>
    : qtensor::expr_detail::product_without_codes<
          generic_product_impl<L, qtensor::expr_detail::floats_of<R>, Shape, DenseShape, Tag>> {};
template <class L, class R, qtensor::expr_detail::structured_shape Shape, int Tag>
struct generic_product_impl<L, R, qtensor::QuantizedShape, Shape, Tag>
    : qtensor::expr_detail::product_without_codes<
          generic_product_impl<qtensor::expr_detail::floats_of<L>, R, DenseShape, Shape, Tag>> {};

// A triangular view of a quantized matrix, and a quantized matrix assigned to a triangular view.
template <>
struct glue_shapes<qtensor::QuantizedShape, TriangularShape> {
  using type = TriangularShape;
};
template <>
struct AssignmentKind<TriangularShape, qtensor::QuantizedShape> {
  using Kind = Dense2Triangular;
};

}  // namespace Eigen::internal
