// Products with a quantized matrix on either side or both: Eigen's products of every size, dispatched to our engines.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <qtensor/expr/operand.hpp>
#include <qtensor/ops/multiply.hpp>

namespace qtensor::inline QTENSOR_ABI::expr_detail {

/// An expression with memory as strides and a pointer.
template <class X>
matrix_ref<const float> memory_of(const X& x) {
  return {x.derived().data(), x.rows(), x.cols(), x.derived().rowStride(), x.derived().colStride()};
}
template <class X>
matrix_ref<float> writable_memory_of(X& x) {
  return {x.derived().data(), x.rows(), x.cols(), x.derived().rowStride(), x.derived().colStride()};
}

/// A side of a product as the kernel takes it: floats in memory (evaluated into a temporary where the expression has
/// none).
template <class X>
class multiplicand {
  using kept = std::conditional_t<has_memory<X>, const X&, typename Eigen::internal::plain_matrix_type<X>::type>;

 public:
  explicit multiplicand(const X& x) : x_(x) {}
  float factor() const { return 1.f; }
  matrix_ref<const float> source() const { return memory_of(x_); }

 private:
  kept x_;
};
/// A quantized side stays quantized.
template <folded X>
class multiplicand<X> {
 public:
  explicit multiplicand(const X& x) : source_(source_of_operand(x)) {}
  float factor() const { return source_.by.number(); }
  auto source() const { return source_.plain(); }

 private:
  decltype(source_of_operand(std::declval<const X&>())) source_;
};

/// A folded expression as an operand of tiled products. Depth is the expression's axis that the product sums over.
template <depth_axis Depth, folded X>
auto operand_of(const X& x) {
  const auto part = operand<X>::fold(x);
  constexpr bool by_rows = (Depth == depth_axis::cols) != operand<X>::is_transposed;
  constexpr depth_axis axis = by_rows ? depth_axis::cols : depth_axis::rows;
  const ops::weights_of<typename operand<X>::view_type, axis> all(part.view);
  if constexpr (operand<X>::is_whole)
    return all;
  else if constexpr (by_rows)
    return ops::weights_part(all, part.row, part.rows, part.col, part.cols);
  else
    return ops::weights_part(all, part.col, part.cols, part.row, part.rows);
}

/// Whether a product of these is of integers (see multiply_tiles).
template <class Lhs, class Rhs>
constexpr bool is_product_of_integers() {
  if constexpr (folded<Lhs> && folded<Rhs>) {
    using left = decltype(operand_of<depth_axis::cols>(std::declval<const Lhs&>()));
    using right = decltype(operand_of<depth_axis::rows>(std::declval<const Rhs&>()));
    ops::check_groups<left, right>();
    return ops::engine_of<left, right>() != ops::product_engine::floats;
  } else {
    return false;
  }
}

/// Throws where the sizes of a product do not fit.
template <class Dst, class Lhs, class Rhs>
void check_product_sizes(const Dst& dst, const Lhs& lhs, const Rhs& rhs) {
  static_assert(std::is_same_v<typename Lhs::Scalar, float> && std::is_same_v<typename Rhs::Scalar, float> &&
                    std::is_same_v<typename Dst::Scalar, float>,
                "qtensor: products with quantized matrices are of float; use .cast<float>() on the other operand.");
  require(lhs.cols() == rhs.rows(), "the left operand of a product has ", lhs.cols(), " columns, the right one ",
          rhs.rows(), " rows; they must be equal.");
  require(dst.rows() == lhs.rows() && dst.cols() == rhs.cols(), "a product of ", lhs.rows(), "x", rhs.cols(),
          " elements does not fit a destination of ", dst.rows(), "x", dst.cols(), ".");
}

/// The four ways in which Eigen asks for dst (=, +=, -=) alpha * lhs * rhs, by Kernel::into_memory(y, lhs, rhs, alpha,
/// mode) for memory y. Sizes that do not fit throw before anything is written.
template <class Kernel, class Lhs, class Rhs>
struct product_forms {
  template <class Dst>
  static void evalTo(Dst& dst, const Lhs& lhs, const Rhs& rhs) {
    multiply(dst, lhs, rhs, 1.f, accumulate::assign);
  }
  template <class Dst>
  static void addTo(Dst& dst, const Lhs& lhs, const Rhs& rhs) {
    multiply(dst, lhs, rhs, 1.f, accumulate::add);
  }
  template <class Dst>
  static void subTo(Dst& dst, const Lhs& lhs, const Rhs& rhs) {
    multiply(dst, lhs, rhs, 1.f, accumulate::subtract);
  }
  template <class Dst>
  static void scaleAndAddTo(Dst& dst, const Lhs& lhs, const Rhs& rhs, const float& alpha) {
    multiply(dst, lhs, rhs, alpha, accumulate::add);
  }

 private:
  template <class Dst>
  static void multiply(Dst& dst, const Lhs& lhs, const Rhs& rhs, float alpha, accumulate mode) {
    check_product_sizes(dst, lhs, rhs);
    if constexpr (has_memory<Dst>) {
      Kernel::into_memory(writable_memory_of(dst), lhs, rhs, alpha, mode);
    } else {
      Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic> result(dst.rows(), dst.cols());
      Kernel::into_memory(writable_memory_of(result), lhs, rhs, alpha, accumulate::assign);
      if (mode == accumulate::assign)
        dst = result;
      else if (mode == accumulate::add)
        dst += result;
      else
        dst -= result;
    }
  }
};

/// Each element is one chain of fma over ascending k, or where both sides are quantized what multiply_tiles makes of
/// them, times all scalar factors at once, then added. Left rows are outputs, right columns activations.
template <class Lhs, class Rhs>
struct quantized_product : product_forms<quantized_product<Lhs, Rhs>, Lhs, Rhs> {
  static void into_memory(const matrix_ref<float>& y, const Lhs& lhs, const Rhs& rhs, float alpha, accumulate mode) {
    QTENSOR_COUNT_KERNELS(products);
    const multiplicand<Lhs> left(lhs);
    const multiplicand<Rhs> right(rhs);
    const float factor = rounded(rounded(left.factor() * right.factor()) * alpha);
    if constexpr (is_product_of_integers<Lhs, Rhs>()) {
      using sink = ops::store_floats<simd::best_arch>;
      if (lhs.cols() == 0 && mode != accumulate::assign) return;  // the sum of nothing, whatever the factor
      multiply_tiles(operand_of<depth_axis::cols>(lhs), operand_of<depth_axis::rows>(rhs),
                     sink{y.transposed(), lhs.cols() == 0 ? 1.f : factor, mode});
    } else {
      if (packs<depth_axis::cols>(lhs, right, y.transposed(), factor, mode) ||
          packs<depth_axis::rows>(rhs, left, y, factor, mode))
        return;
      if constexpr (lies_across<Lhs> && !folded<Rhs>)
        if (rhs.cols() <= ops::product_blocks::wide_rows)
          return matmul_into(right.source().transposed(), left.source().transposed(), y.transposed(), factor, mode);
      matmul_into(left.source(), right.source(), y, factor, mode);
    }
  }

 private:
  /// Quantized matrices whose columns are lines of memory: a few columns times them take less time as rows of
  /// activations times columns of weights, which are read in wide parts.
  template <class W>
  static constexpr bool lies_across = [] {
    if constexpr (folded<W>)
      return !decltype(source_of_operand(std::declval<const W&>()))::reads_rows;
    else
      return false;
  }();
  /// The same by panels of a whole quantized side, where that is faster than reading it as floats; `other` is in
  /// memory.
  template <depth_axis Depth, class W, class Other>
  static bool packs(const W& w, const Other& other, const matrix_ref<float>& y, float factor, accumulate mode) {
    if constexpr (folded<W> && std::is_same_v<decltype(other.source()), matrix_ref<const float>>) {
      const auto weights = operand_of<Depth>(w);
      const auto x = Depth == depth_axis::cols ? other.source().transposed() : other.source();
      if constexpr (ops::fast_to_pack<std::remove_const_t<decltype(weights)>>)
        return weights.depth() > 0 && ops::multiply_in_panels<simd::best_arch>(
                                          weights, x, ops::store_floats<simd::best_arch>{y, factor, mode});
    }
    return false;
  }
};

}  // namespace qtensor::inline QTENSOR_ABI::expr_detail

namespace Eigen::internal {

// Every kind of product Eigen tells apart by size (inner, outer, gemv, gemm, small) is one to us.
template <class L, class R, int Tag>
struct generic_product_impl<L, R, qtensor::QuantizedShape, DenseShape, Tag>
    : qtensor::expr_detail::quantized_product<L, R> {};
template <class L, class R, int Tag>
struct generic_product_impl<L, R, DenseShape, qtensor::QuantizedShape, Tag>
    : qtensor::expr_detail::quantized_product<L, R> {};
template <class L, class R, int Tag>
struct generic_product_impl<L, R, qtensor::QuantizedShape, qtensor::QuantizedShape, Tag>
    : qtensor::expr_detail::quantized_product<L, R> {};

// Coefficient by coefficient where the user asks for it (lazyProduct) and for diagonal factors: ordinary Eigen.
template <class L, class R, int Tag>
struct product_evaluator<Product<L, R, LazyProduct>, Tag, qtensor::QuantizedShape, DenseShape>
    : product_evaluator<Product<L, R, LazyProduct>, Tag, DenseShape, DenseShape> {
  using product_evaluator<Product<L, R, LazyProduct>, Tag, DenseShape, DenseShape>::product_evaluator;
};
template <class L, class R, int Tag>
struct product_evaluator<Product<L, R, LazyProduct>, Tag, DenseShape, qtensor::QuantizedShape>
    : product_evaluator<Product<L, R, LazyProduct>, Tag, DenseShape, DenseShape> {
  using product_evaluator<Product<L, R, LazyProduct>, Tag, DenseShape, DenseShape>::product_evaluator;
};
template <class L, class R, int Tag>
struct product_evaluator<Product<L, R, LazyProduct>, Tag, qtensor::QuantizedShape, qtensor::QuantizedShape>
    : product_evaluator<Product<L, R, LazyProduct>, Tag, DenseShape, DenseShape> {
  using product_evaluator<Product<L, R, LazyProduct>, Tag, DenseShape, DenseShape>::product_evaluator;
};
template <class L, class R, int Kind, int Tag>
struct product_evaluator<Product<L, R, Kind>, Tag, qtensor::QuantizedShape, DiagonalShape>
    : product_evaluator<Product<L, R, Kind>, Tag, DenseShape, DiagonalShape> {
  using product_evaluator<Product<L, R, Kind>, Tag, DenseShape, DiagonalShape>::product_evaluator;
};
template <class L, class R, int Kind, int Tag>
struct product_evaluator<Product<L, R, Kind>, Tag, DiagonalShape, qtensor::QuantizedShape>
    : product_evaluator<Product<L, R, Kind>, Tag, DiagonalShape, DenseShape> {
  using product_evaluator<Product<L, R, Kind>, Tag, DiagonalShape, DenseShape>::product_evaluator;
};

}  // namespace Eigen::internal
