// Operands: transposes, blocks, scalar multiples and signs around a quantized matrix, folded into what a kernel takes.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <array>
#include <qtensor/expr/dequantized.hpp>
#include <qtensor/expr/negation.hpp>
#include <qtensor/ops/dequantize.hpp>
#include <utility>

/// Called with `products` or `assignments` whenever an expression reaches one of our kernels. Nothing, unless a test
/// defines it before the first include.
#ifndef QTENSOR_COUNT_KERNELS
#define QTENSOR_COUNT_KERNELS(kind) static_cast<void>(0)
#endif

namespace qtensor::inline QTENSOR_ABI {

namespace expr_detail {

/// What a quantized matrix is multiplied by, and whether all signs are flipped then.
struct multiple {
  float factor = 1.f;
  bool is_negated = false;

  bool is_plain() const { return factor == 1.f && !is_negated; }
  float number() const { return is_negated ? -factor : factor; }
};

/// A part of a view, in the view's own axes, times a number.
template <class View>
struct region {
  View view;
  index_t row, col, rows, cols;
  multiple by;

  region block(index_t first_row, index_t first_col, index_t row_count, index_t col_count) const {
    return {view, row + first_row, col + first_col, row_count, col_count, by};
  }
  region times(float number) const {
    return {view, row, col, rows, cols, {rounded(by.factor * number), by.is_negated}};
  }
  region negated() const { return {view, row, col, rows, cols, {by.factor, !by.is_negated}}; }
};

}  // namespace expr_detail

/// How an expression folds into a region of a view. `is_transposed`: the expression's rows are the region's columns.
/// `is_whole`: the region is all of the view. `factors`: how many numbers it is multiplied by, which a region has the
/// product of; signs are none. Only what costs nothing folds; blocks may start anywhere, also inside groups and bytes.
template <class Xpr>
struct operand {
  static constexpr bool folds = false;
};
template <class Xpr>
struct operand<const Xpr> : operand<Xpr> {};

/// An expression that is a quantized matrix to our products.
template <class Xpr>
concept folded = operand<Xpr>::folds;
/// The same to all that reads elements: times one factor at most, as a * (b * w) is not (a * b) * w.
template <class Xpr>
concept folded_elements = folded<Xpr> && operand<Xpr>::factors <= 1;

template <class View, class Owner>
struct operand<dequantized<View, Owner>> {
  static constexpr bool folds = true;
  static constexpr bool is_transposed = false, is_whole = true;
  static constexpr int factors = 0;
  using view_type = View;
  static auto fold(const dequantized<View, Owner>& x) {
    return expr_detail::region<View>{x.view(), 0, 0, x.view().rows(), x.view().cols(), {}};
  }
};

template <folded X>
struct operand<Eigen::Transpose<X>> {
  static constexpr bool folds = true;
  static constexpr bool is_transposed = !operand<X>::is_transposed, is_whole = operand<X>::is_whole;
  static constexpr int factors = operand<X>::factors;
  using view_type = typename operand<X>::view_type;
  static auto fold(const Eigen::Transpose<X>& x) { return operand<X>::fold(x.nestedExpression()); }
};

template <folded X, int Rows, int Cols, bool inner_panel>
struct operand<Eigen::Block<X, Rows, Cols, inner_panel>> {
  static constexpr bool folds = true;
  static constexpr bool is_transposed = operand<X>::is_transposed, is_whole = false;
  static constexpr int factors = operand<X>::factors;
  using view_type = typename operand<X>::view_type;
  static auto fold(const Eigen::Block<X, Rows, Cols, inner_panel>& x) {
    const auto whole_region = operand<X>::fold(x.nestedExpression());
    if constexpr (is_transposed)
      return whole_region.block(x.startCol(), x.startRow(), x.cols(), x.rows());
    else
      return whole_region.block(x.startRow(), x.startCol(), x.rows(), x.cols());
  }
};

template <class Op, folded X>
requires expr_detail::is_negation<Op>
struct operand<Eigen::CwiseUnaryOp<Op, X>> : operand<X> {
  static auto fold(const Eigen::CwiseUnaryOp<Op, X>& x) { return operand<X>::fold(x.nestedExpression()).negated(); }
};

namespace expr_detail {
using times_op = Eigen::internal::scalar_product_op<float, float>;
template <class Plain>
using constant = Eigen::CwiseNullaryOp<Eigen::internal::scalar_constant_op<float>, Plain>;
}  // namespace expr_detail

template <class Plain, folded X>
struct operand<Eigen::CwiseBinaryOp<expr_detail::times_op, const expr_detail::constant<Plain>, X>> : operand<X> {
  static constexpr int factors = operand<X>::factors + 1;
  static auto fold(const Eigen::CwiseBinaryOp<expr_detail::times_op, const expr_detail::constant<Plain>, X>& x) {
    return operand<X>::fold(x.rhs()).times(x.lhs().functor().m_other);
  }
};
template <class Plain, folded X>
struct operand<Eigen::CwiseBinaryOp<expr_detail::times_op, X, const expr_detail::constant<Plain>>> : operand<X> {
  static constexpr int factors = operand<X>::factors + 1;
  static auto fold(const Eigen::CwiseBinaryOp<expr_detail::times_op, X, const expr_detail::constant<Plain>>& x) {
    return operand<X>::fold(x.lhs()).times(x.rhs().functor().m_other);
  }
};

namespace expr_detail {

/// A region as a tile_source whose rows are the lines of the view's memory (Order = row_major) or run across them. The
/// elements come times the number; products take it out (`plain`) and scale their sums instead.
template <class View, storage_order Order>
struct region_source {
  View view;
  index_t first_line, first_element, line_count, line_length;
  multiple by;
  static constexpr bool reads_rows = std::is_same_v<Order, row_major>;
  static constexpr bool reads_twice = true;

  index_t rows() const { return reads_rows ? line_count : line_length; }
  index_t cols() const { return reads_rows ? line_length : line_count; }
  const float* direct(index_t, index_t) const { return nullptr; }
  /// The same elements with rows and columns exchanged.
  auto transposed() const {
    using other = std::conditional_t<reads_rows, col_major, row_major>;
    return region_source<View, other>{view, first_line, first_element, line_count, line_length, by};
  }
  region_source plain() const { return {view, first_line, first_element, line_count, line_length, {}}; }

  void read(index_t row, index_t rows, index_t col, index_t cols, float* tile, index_t stride) const {
    if constexpr (reads_rows)
      lines(row, rows, col, cols, tile, stride);
    else
      columns(col, cols, row, rows, tile, stride);
  }
  /// What read() does across lines, by turning codes; false, with nothing read, where they cannot be turned or are few.
  bool read_turned(index_t row, index_t rows, index_t col, index_t cols, float* tile, index_t stride) const
      requires(!reads_rows) {
    if (!dequantize_turned(view, first_line + col, cols, first_element + row, rows, tile, stride)) return false;
    scale(tile, rows, cols, stride);
    return true;
  }
  /// Fetches the codes of elements [i, i + n) of lines [line, line + count) to the second level.
  QTENSOR_INLINE void prefetch(index_t line, index_t count, index_t i, index_t n) const {
    const auto first = ops::row_index(first_line + line, view.storage_extents());
    ops::down_decoder<f32, View>(view).prefetch(first, count, first_element + i, n);
  }
  /// Lines [line, line + count) of the region, elements [i, i + n) of each, to tile[l * stride + k].
  void lines(index_t line, index_t count, index_t i, index_t n, float* tile, index_t stride) const {
    dequantize_rows(view, first_line + line, count, first_element + i, n, tile, stride);
    scale(tile, count, n, stride);
  }
  /// The same to tile[k * stride + l].
  void columns(index_t line, index_t count, index_t i, index_t n, float* tile, index_t stride) const {
    dequantize_rows(view, first_line + line, count, first_element + i, n, tile, 1, stride);
    scale(tile, n, count, stride);
  }
  /// Runs of a tile times the number, each product rounded before whatever is done with it next.
  void scale(float* tile, index_t runs, index_t n, index_t stride) const {
    using A = simd::best_arch;
    constexpr index_t step = simd::lanes<A>;
    if (by.is_plain()) return;
    if (stride == n) n *= std::exchange(runs, 1);
    const simd::floats<A> factor(by.factor);
    const simd::words<A> flip(by.is_negated ? 0x80000000u : 0u);
    const auto times = [&](const simd::floats<A>& x) QTENSOR_INLINE_LAMBDA {
      return simd::bits_as<float>(simd::bits_as<std::uint32_t>(simd::mul(x, factor)) ^ flip);
    };
    for (index_t r = 0; r < runs; ++r, tile += stride) {
      index_t i = 0;
      for (; i + step <= n; i += step) simd::store(tile + i, times(simd::load<A>(tile + i)));
      if (i < n) simd::store_n(tile + i, n - i, times(simd::load_n<A>(tile + i, n - i)));
    }
  }
};

/// A folded expression as a source of its own rows.
template <folded X>
auto source_of_operand(const X& x) {
  const auto part = operand<X>::fold(x);
  using view_type = typename operand<X>::view_type;
  constexpr bool lines_are_rows = std::is_same_v<typename view_type::order_type, row_major>;
  using order = std::conditional_t<lines_are_rows != operand<X>::is_transposed, row_major, col_major>;
  if constexpr (lines_are_rows)
    return region_source<view_type, order>{part.view, part.row, part.col, part.rows, part.cols, part.by};
  else
    return region_source<view_type, order>{part.view, part.col, part.row, part.cols, part.rows, part.by};
}
/// The same for a tensor of storage order Order.
template <storage_order Order, folded X>
auto operand_in_order(const X& x) {
  if constexpr (std::is_same_v<Order, row_major>)
    return source_of_operand(x);
  else
    return source_of_operand(x).transposed();
}

}  // namespace expr_detail

}  // namespace qtensor::inline QTENSOR_ABI

namespace Eigen::internal {

// Whatever folds keeps the shape, so that products and assignments of it are still ours.
template <class X>
requires qtensor::folded<Transpose<X>>
struct evaluator_traits<Transpose<X>> : evaluator_traits_base<Transpose<X>> {
  using Shape = qtensor::QuantizedShape;
};
template <class X, int Rows, int Cols, bool inner_panel>
requires qtensor::folded<Block<X, Rows, Cols, inner_panel>>
struct evaluator_traits<Block<X, Rows, Cols, inner_panel>> : evaluator_traits_base<Block<X, Rows, Cols, inner_panel>> {
  using Shape = qtensor::QuantizedShape;
};
template <class Op, class X>
requires qtensor::folded<CwiseUnaryOp<Op, X>>
struct evaluator_traits<CwiseUnaryOp<Op, X>> : evaluator_traits_base<CwiseUnaryOp<Op, X>> {
  using Shape = qtensor::QuantizedShape;
};
template <class Op, class L, class R>
requires qtensor::folded<CwiseBinaryOp<Op, L, R>>
struct evaluator_traits<CwiseBinaryOp<Op, L, R>> : evaluator_traits_base<CwiseBinaryOp<Op, L, R>> {
  using Shape = qtensor::QuantizedShape;
};

}  // namespace Eigen::internal
