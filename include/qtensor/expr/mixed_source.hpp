// Expressions over matrices of both storage orders: Eigen reads them one by one, here what lies across is turned first.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <qtensor/expr/expression_source.hpp>
#include <utility>

namespace qtensor::inline QTENSOR_ABI {

namespace expr_detail {

/// Functions whose packets give the bits that their single numbers give.
template <class Op>
inline constexpr bool is_exact_function = false;
template <>
inline constexpr bool is_exact_function<Eigen::internal::scalar_sum_op<float, float>> = true;
template <>
inline constexpr bool is_exact_function<Eigen::internal::scalar_difference_op<float, float>> = true;
template <>
inline constexpr bool is_exact_function<Eigen::internal::scalar_product_op<float, float>> = true;
template <>
inline constexpr bool is_exact_function<Eigen::internal::scalar_quotient_op<float, float>> = true;
template <>
inline constexpr bool is_exact_function<Eigen::internal::scalar_opposite_op<float>> = true;
template <>
inline constexpr bool is_exact_function<Eigen::internal::scalar_abs_op<float>> = true;

/// Matrices whose elements are the same however they are read: in memory once there is an evaluator, or codes.
template <class Xpr>
inline constexpr bool is_matrix = has_memory<Xpr> || folded<Xpr>;
template <class Left, class Right>
inline constexpr bool is_matrix<Eigen::Product<Left, Right, Eigen::DefaultProduct>> = true;
template <class Xpr, int RowCount, int ColCount>
inline constexpr bool is_matrix<Eigen::Replicate<Xpr, RowCount, ColCount>> = is_matrix<Xpr>;

/// A box of floats in the order of tiles.
using box_map = Eigen::Map<const Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>,
                           Eigen::Unaligned, Eigen::OuterStride<>>;

/// Columns that parts are asked for at once, at most, and the distance of a copy's rows.
inline constexpr index_t part_cols = 256, part_stride = part_cols + 16;
/// Rows: whole lines of columns, two of them where they come from memory and not many matrices are copied.
inline constexpr index_t part_rows = 16;
template <class Part>
inline constexpr index_t most_part_rows = Part::copies <= 4 ? 2 * part_rows : part_rows;

/// A part of an expression; its box(row, rows, col, cols, room) is an Eigen expression of that box in the order of
/// tiles, for which it takes what it needs from `room` on: rows * part_stride floats for each of its copies. This one
/// is a matrix, read by itself; other functions than the exact ones are left to Eigen.
template <class Xpr, storage_order Order>
class mixed_part {
  using source = expression_source<Xpr, Order>;

 public:
  static constexpr bool has_along = source::reads_rows, has_across = !source::reads_rows, is_exact = is_matrix<Xpr>;
  static constexpr int copies = 1;

  explicit mixed_part(const Xpr& x) : source_(x) {}
  box_map box(index_t row, index_t rows, index_t col, index_t cols, float*& room) const {
    if (const auto step = source_.row_step())
      return {source_.direct(row, col), rows, cols, Eigen::OuterStride<>(*step)};
    float* const copy = std::exchange(room, room + rows * part_stride);
    source_.read(row, rows, col, cols, copy, part_stride);
    return {copy, rows, cols, Eigen::OuterStride<>(part_stride)};
  }

 private:
  source source_;
};

/// A constant is in every order.
template <class Plain, storage_order Order>
class mixed_part<Eigen::CwiseNullaryOp<Eigen::internal::scalar_constant_op<float>, Plain>, Order> {
  using constant = Eigen::internal::scalar_constant_op<float>;

 public:
  static constexpr bool has_along = false, has_across = false, is_exact = true;
  static constexpr int copies = 0;

  explicit mixed_part(const Eigen::CwiseNullaryOp<constant, Plain>& x) : constant_(x.functor()) {}
  auto box(index_t, index_t rows, index_t, index_t cols, float*&) const {
    return Eigen::CwiseNullaryOp<constant, typename box_map::PlainObject>(rows, cols, constant_);
  }

 private:
  constant constant_;
};

/// A function of a part, and of two.
template <class Op, class Xpr, storage_order Order>
requires is_exact_function<Op>
class mixed_part<Eigen::CwiseUnaryOp<Op, Xpr>, Order> {
  using part = mixed_part<std::remove_cvref_t<Xpr>, Order>;

 public:
  static constexpr bool has_along = part::has_along, has_across = part::has_across, is_exact = part::is_exact;
  static constexpr int copies = part::copies;

  explicit mixed_part(const Eigen::CwiseUnaryOp<Op, Xpr>& x) : op_(x.functor()), part_(x.nestedExpression()) {}
  auto box(index_t row, index_t rows, index_t col, index_t cols, float*& room) const {
    const auto a = part_.box(row, rows, col, cols, room);
    return Eigen::CwiseUnaryOp<Op, decltype(a)>(a, op_);
  }

 private:
  Op op_;
  part part_;
};

template <class Op, class Left, class Right, storage_order Order>
requires is_exact_function<Op>
class mixed_part<Eigen::CwiseBinaryOp<Op, Left, Right>, Order> {
  using left_part = mixed_part<std::remove_cvref_t<Left>, Order>;
  using right_part = mixed_part<std::remove_cvref_t<Right>, Order>;

 public:
  static constexpr bool has_along = left_part::has_along || right_part::has_along;
  static constexpr bool has_across = left_part::has_across || right_part::has_across;
  static constexpr bool is_exact = left_part::is_exact && right_part::is_exact;
  static constexpr int copies = left_part::copies + right_part::copies;

  explicit mixed_part(const Eigen::CwiseBinaryOp<Op, Left, Right>& x)
      : op_(x.functor()), left_(x.lhs()), right_(x.rhs()) {}
  auto box(index_t row, index_t rows, index_t col, index_t cols, float*& room) const {
    const auto a = left_.box(row, rows, col, cols, room);
    const auto b = right_.box(row, rows, col, cols, room);
    return Eigen::CwiseBinaryOp<Op, decltype(a), decltype(b)>(a, b, op_);
  }

 private:
  Op op_;
  left_part left_;
  right_part right_;
};

/// Sums and the like of matrices of both orders, few enough for their copies to stay in a cache.
template <class Xpr, class Part = mixed_part<Xpr, row_major>>
inline constexpr bool mixes_orders = Part::has_along&& Part::has_across&& Part::is_exact&& Part::copies <= 8;

}  // namespace expr_detail

/// A tile_source over such an expression, for a tensor of storage order Order; else as expression_source is.
template <class Xpr, storage_order Order>
requires expr_detail::mixes_orders<Xpr>
class mixed_source {
  using elements = expression_source<Xpr, Order>;
  using part = expr_detail::mixed_part<Xpr, Order>;

 public:
  static constexpr bool reads_rows = false, mixes_orders = true, is_repeatable = elements::is_repeatable,
                        reads_twice = elements::reads_twice;

  explicit mixed_source(const Xpr& x)
      : part_(x), row_count_(by_rows ? x.rows() : x.cols()), col_count_(by_rows ? x.cols() : x.rows()) {}
  mixed_source(const mixed_source&) = delete;
  mixed_source& operator=(const mixed_source&) = delete;

  index_t rows() const { return row_count_; }
  index_t cols() const { return col_count_; }
  static const float* direct(index_t, index_t) { return nullptr; }

  void read(index_t row, index_t rows, index_t col, index_t cols, float* tile, index_t stride) const {
    constexpr index_t most = expr_detail::most_part_rows<part>, wide = expr_detail::part_cols;
    using box_type = Eigen::Map<typename expr_detail::box_map::PlainObject, Eigen::Unaligned, Eigen::OuterStride<>>;
    alignas(64) float copies[static_cast<std::size_t>(part::copies * most * expr_detail::part_stride)];
    const index_t high = row_count_ * col_count_ >= ops::streaming_floats ? most : expr_detail::part_rows;
    for (index_t c = 0; c < cols; c += wide)
      for (index_t r = 0; r < rows; r += high) {
        const index_t down = std::min(high, rows - r), across = std::min(wide, cols - c);
        float* room = copies;
        box_type(tile + r * stride + c, down, across, Eigen::OuterStride<>(stride)) =
            part_.box(row + r, down, col + c, across, room);
      }
  }

 private:
  static constexpr bool by_rows = std::is_same_v<Order, row_major>;

  part part_;
  index_t row_count_, col_count_;
};

}  // namespace qtensor::inline QTENSOR_ABI
