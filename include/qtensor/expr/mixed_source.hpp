// Expressions over matrices of both storage orders, or of codes that Eigen reads one by one: box by box in one order.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <qtensor/expr/boxes.hpp>
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
inline constexpr bool is_exact_function<opposite> = eigen_generation >= 5;
template <>
inline constexpr bool is_exact_function<flipped_sign> = true;
template <>
inline constexpr bool is_exact_function<Eigen::internal::scalar_abs_op<float>> = true;

/// Matrices whose elements are the same however they are read: in memory once there is an evaluator, or codes.
template <class Xpr>
inline constexpr bool is_matrix = has_memory<Xpr> || folded_elements<Xpr>;
template <class Left, class Right>
inline constexpr bool is_matrix<Eigen::Product<Left, Right, Eigen::DefaultProduct>> = true;
template <class Xpr, int RowCount, int ColCount>
inline constexpr bool is_matrix<Eigen::Replicate<Xpr, RowCount, ColCount>> = is_matrix<Xpr>;

/// Quantized matrices whose lines are rows of tiles, and that Eigen would read slowly: these are decoded in runs.
template <class Xpr, storage_order Order>
inline constexpr bool is_decoded = false;
template <folded_elements Xpr, storage_order Order>
inline constexpr bool is_decoded<Xpr, Order> =
    !element_reader<typename operand<Xpr>::view_type>::reads_fast &&
    decltype(operand_in_order<Order>(std::declval<const Xpr&>()))::reads_rows;

/// Quantized matrices that lie across tiles: these are decoded down their columns.
template <class Xpr, storage_order Order>
inline constexpr bool is_turned = false;
template <folded_elements Xpr, storage_order Order>
inline constexpr bool is_turned<Xpr, Order> =
    !decltype(operand_in_order<Order>(std::declval<const Xpr&>()))::reads_rows;

/// The source of a matrix, for a tensor of this order.
template <storage_order Order, class Xpr>
auto matrix_source(const Xpr& x) {
  if constexpr (is_decoded<Xpr, Order>)
    return operand_in_order<Order>(x);
  else
    return expression_source<Xpr, Order>(x);
}

/// Boxes that parts are asked for at once, at most: whole lines of columns where some lie across, two of them where
/// they come from memory and not many matrices are copied; tall ones of codes that are turned; else long rows, in which
/// codes are decoded fastest. `asks`: all comes from memory, and the next box is asked for while lines of one are
/// written.
struct part_shape {
  index_t rows, far_rows, cols;
  bool asks = false;

  template <class Part>
  static constexpr part_shape of() {
    if (!Part::has_across) return {4, 4, 1024};
    if (Part::turns) return Part::copies <= 4 ? part_shape{64, 64, 128} : part_shape{32, 32, 128};
    return {16, Part::copies <= 4 ? 32 : 16, 256};
  }
  /// Those of an assignment from memory to memory: longer rows, one by one, where few are copied.
  template <class Part>
  static constexpr part_shape of_far() {
    if (!Part::has_across && Part::copies <= 2) return {1, 1, 4096};
    part_shape shape = of<Part>();
    shape.asks = Part::turns;
    return shape;
  }
};

/// Memory for the copies of a box, whose rows are Stride floats apart, if that is known. `IsDense`: rows follow each
/// other in all that a box is made of, so that it is one long row.
template <index_t Stride, bool IsDense = false>
class part_room {
 public:
  explicit part_room(float* memory, index_t stride = Stride) : next_(memory), stride_(stride) {}

  index_t stride() const { return Stride != dynamic ? Stride : stride_; }
  float* take(index_t rows) { return std::exchange(next_, next_ + rows * stride()); }
  /// A box in memory, and ...
  template <class Box>
  Box map(typename Box::PointerArgType data, index_t rows, index_t cols, index_t step) const {
    return map_of_box<Box>(data, rows, cols, step, IsDense);
  }
  /// ... one of a constant.
  template <class Op>
  auto fill(index_t rows, index_t cols, const Op& constant) const {
    using box = Eigen::CwiseNullaryOp<Op, typename box_map::PlainObject>;
    return IsDense ? box(1, rows * cols, constant) : box(rows, cols, constant);
  }

 private:
  float* next_;
  index_t stride_;
};

/// A part of an expression; its box(row, rows, col, cols, room) is an Eigen expression of that box in the order of
/// tiles, whose copies are in `room`; prefetch() fetches what lies in memory of one, to the second level. This one is a
/// matrix, read by itself; other functions than the exact ones are left to Eigen. `decodes`, `turns`: codes that are
/// decoded along lines, down columns. `is_computed`: a product, or a row that is repeated. is_dense(cols): rows of so
/// many follow each other, where they are not copied.
template <class Xpr, storage_order Order>
class mixed_part {
  using source = decltype(matrix_source<Order>(std::declval<const Xpr&>()));

 public:
  static constexpr bool has_along = source::reads_rows, has_across = !source::reads_rows, is_exact = is_matrix<Xpr>;
  static constexpr bool turns = has_across && is_turned<Xpr, Order>;  // Eigen has vectors in the order that suits it
  static constexpr bool decodes = is_decoded<Xpr, Order>, is_computed = !has_memory<Xpr> && !folded_elements<Xpr>;
  static constexpr int copies = 1;

  explicit mixed_part(const Xpr& x) : source_(matrix_source<Order>(x)), turned_(turned_source(x)) {
    if constexpr (has_memory<Xpr>) leaf_ = leaves_in_order<Order>(x)[0];
  }
  QTENSOR_INLINE void prefetch(index_t row, index_t rows, index_t col, index_t cols) const {
    if constexpr (has_memory<Xpr>)
      leaf_.prefetch(row, rows, col, cols);
    else if constexpr (turns)
      turned_.prefetch(col, cols, row, rows);
  }
  bool is_dense(index_t cols) const {
    const auto step = row_step();
    return !step || *step == cols;
  }
  box_map box(index_t row, index_t rows, index_t col, index_t cols, auto& room) const {
    if (const auto step = row_step()) return room.template map<box_map>(source_.direct(row, col), rows, cols, *step);
    float* const copy = room.take(rows);
    read(row, rows, col, cols, copy, room.stride());
    return room.template map<box_map>(copy, rows, cols, room.stride());
  }

 private:
  std::optional<index_t> row_step() const {
    if constexpr (decodes)
      return std::nullopt;
    else
      return source_.row_step();
  }
  /// Columns of codes, less than which take as long to turn, or longer than Eigen takes to read them.
  static constexpr index_t fewest_turned = [] {
    if constexpr (turns) return element_reader<typename operand<Xpr>::view_type>::reads_fast ? 32 : 8;
    return 0;
  }();
  struct nothing {};
  static auto turned_source(const Xpr& x) {
    if constexpr (turns)
      return operand_in_order<Order>(x);
    else
      return nothing{};
  }
  /// To a tile: codes that lie across are turned, or else the numbers they decode to, where there are enough of them.
  void read(index_t row, index_t rows, index_t col, index_t cols, float* tile, index_t stride) const {
    if constexpr (turns)
      if (rows >= fewest_turned) {
        if (!turned_.read_turned(row, rows, col, cols, tile, stride)) turned_.read(row, rows, col, cols, tile, stride);
        return;
      }
    source_.read(row, rows, col, cols, tile, stride);
  }

  source source_;
  leaf leaf_;
  [[no_unique_address]] decltype(turned_source(std::declval<const Xpr&>())) turned_;
};

/// A constant is in every order.
template <class Plain, storage_order Order>
class mixed_part<Eigen::CwiseNullaryOp<Eigen::internal::scalar_constant_op<float>, Plain>, Order> {
  using constant = Eigen::internal::scalar_constant_op<float>;

 public:
  static constexpr bool has_along = false, has_across = false, is_exact = true;
  static constexpr bool decodes = false, turns = false, is_computed = false;
  static constexpr int copies = 0;

  explicit mixed_part(const Eigen::CwiseNullaryOp<constant, Plain>& x) : constant_(x.functor()) {}
  static void prefetch(index_t, index_t, index_t, index_t) {}
  static bool is_dense(index_t) { return true; }
  auto box(index_t, index_t rows, index_t, index_t cols, const auto& room) const {
    return room.fill(rows, cols, constant_);
  }

 private:
  constant constant_;
};

/// A function of a part, and of two; multiples of a quantized matrix are a matrix.
template <class Op, class Xpr>
inline constexpr bool is_function_of_parts = is_exact_function<Op> && !folded_elements<Xpr>;

template <class Op, class Xpr, storage_order Order>
requires is_function_of_parts<Op, Eigen::CwiseUnaryOp<Op, Xpr>>
class mixed_part<Eigen::CwiseUnaryOp<Op, Xpr>, Order> {
  using part = mixed_part<std::remove_cvref_t<Xpr>, Order>;

 public:
  static constexpr bool has_along = part::has_along, has_across = part::has_across, is_exact = part::is_exact;
  static constexpr bool decodes = part::decodes, turns = part::turns, is_computed = part::is_computed;
  static constexpr int copies = part::copies;

  explicit mixed_part(const Eigen::CwiseUnaryOp<Op, Xpr>& x) : op_(x.functor()), part_(x.nestedExpression()) {}
  QTENSOR_INLINE void prefetch(index_t row, index_t rows, index_t col, index_t cols) const {
    part_.prefetch(row, rows, col, cols);
  }
  bool is_dense(index_t cols) const { return part_.is_dense(cols); }
  auto box(index_t row, index_t rows, index_t col, index_t cols, auto& room) const {
    const auto a = part_.box(row, rows, col, cols, room);
    return Eigen::CwiseUnaryOp<Op, decltype(a)>(a, op_);
  }

 private:
  Op op_;
  part part_;
};

template <class Op, class Left, class Right, storage_order Order>
requires is_function_of_parts<Op, Eigen::CwiseBinaryOp<Op, Left, Right>>
class mixed_part<Eigen::CwiseBinaryOp<Op, Left, Right>, Order> {
  using left_part = mixed_part<std::remove_cvref_t<Left>, Order>;
  using right_part = mixed_part<std::remove_cvref_t<Right>, Order>;

 public:
  static constexpr bool has_along = left_part::has_along || right_part::has_along;
  static constexpr bool has_across = left_part::has_across || right_part::has_across;
  static constexpr bool is_exact = left_part::is_exact && right_part::is_exact;
  static constexpr bool decodes = left_part::decodes || right_part::decodes;
  static constexpr bool turns = left_part::turns || right_part::turns;
  static constexpr bool is_computed = left_part::is_computed || right_part::is_computed;
  static constexpr int copies = left_part::copies + right_part::copies;

  explicit mixed_part(const Eigen::CwiseBinaryOp<Op, Left, Right>& x)
      : op_(x.functor()), left_(x.lhs()), right_(x.rhs()) {}
  QTENSOR_INLINE void prefetch(index_t row, index_t rows, index_t col, index_t cols) const {
    left_.prefetch(row, rows, col, cols);
    right_.prefetch(row, rows, col, cols);
  }
  bool is_dense(index_t cols) const { return left_.is_dense(cols) && right_.is_dense(cols); }
  auto box(index_t row, index_t rows, index_t col, index_t cols, auto& room) const {
    const auto a = left_.box(row, rows, col, cols, room);
    const auto b = right_.box(row, rows, col, cols, room);
    return Eigen::CwiseBinaryOp<Op, decltype(a), decltype(b)>(a, b, op_);
  }

 private:
  Op op_;
  left_part left_;
  right_part right_;
};

/// Sums and the like, of few enough matrices for their copies to stay in a cache.
template <class Part>
inline constexpr bool has_few_copies = Part::is_exact&& Part::copies <= 8;
/// Those of matrices of both orders, or of codes that Eigen's packets read slowly.
template <class Xpr, storage_order Order, class Part = mixed_part<Xpr, Order>>
inline constexpr bool goes_by_parts = has_few_copies<Part> && ((Part::has_along && Part::has_across) || Part::decodes);

/// Elements [row, row + rows) x [col, col + cols) of a part, in boxes of at most `high` rows, best a constant, whose
/// copies are in `room`: to[r * stride + c] (=, +=, ...) that of row + r and col + c. Boxes follow each other along
/// lines of codes, which are read in small pieces.
template <part_shape Shape, class Part, class Room, class High, class Functor>
void store_boxes(const Part& part, const Room& room, const High& high, index_t row, index_t rows, index_t col,
                 index_t cols, float* to, index_t stride, const Functor& functor) {
  const auto height = [&](index_t r) { return std::min<index_t>(high, rows - r); };
  const auto width = [&](index_t c) { return std::min(Shape.cols, cols - c); };
  const auto store = [&](index_t r, index_t c, index_t next_row, index_t next_col) {
    const index_t down = height(r), across = width(c);
    Room left = room;
    auto box = room.template map<writable_box>(to + r * stride + c, down, across, stride);
    const auto x = part.box(row + r, down, col + c, across, left);
    if constexpr (Shape.asks) {
      constexpr index_t at_once = 8;
      const bool asks = next_row < rows && next_col < cols;
      for (index_t i = 0; i < down; i += at_once) {
        const index_t lines = std::min(at_once, down - i);
        auto some = box.middleRows(i, lines);
        Eigen::internal::call_dense_assignment_loop(some, x.middleRows(i, lines), functor);
        if (asks && i < height(next_row))
          part.prefetch(row + next_row + i, std::min(at_once, height(next_row) - i), col + next_col, width(next_col));
      }
    } else {
      Eigen::internal::call_dense_assignment_loop(box, x, functor);
    }
  };
  if constexpr (Part::turns) {
    for (index_t c = 0; c < cols; c += Shape.cols)
      for (index_t r = 0; r < rows; r += high) {
        const bool ends = r + high >= rows;
        store(r, c, ends ? 0 : r + high, ends ? c + Shape.cols : c);
      }
  } else {
    for (index_t r = 0; r < rows; r += high)
      for (index_t c = 0; c < cols; c += Shape.cols) {
        const bool ends = c + Shape.cols >= cols;
        store(r, c, ends ? r + high : r, ends ? 0 : c + Shape.cols);
      }
  }
}

/// The same in boxes of a shape: taller ones where lines of codes are few, which follow each other if they can.
template <part_shape Shape, class Part, class High, class Functor>
void store_boxes(const Part& part, const High& high, index_t row, index_t rows, index_t col, index_t cols, float* to,
                 index_t stride, const Functor& functor) {
  constexpr index_t apart = Shape.cols + 16;
  alignas(64) float copies[static_cast<std::size_t>(Part::copies * Shape.far_rows * apart)];
  if constexpr (Part::has_across && !Shape.asks)
    if (cols <= Shape.cols / 2) {
      const auto store = [&]<bool IsDense>(index_t step) {
        store_boxes<Shape>(part, part_room<dynamic, IsDense>(copies, step), high * apart / step / 16 * 16, row, rows,
                           col, cols, to, stride, functor);
      };
      return stride == cols && part.is_dense(cols) ? store.template operator()<true>(cols)
                                                   : store.template operator()<false>(cols + 16);
    }
  store_boxes<Shape>(part, part_room<apart>(copies), high, row, rows, col, cols, to, stride, functor);
}

}  // namespace expr_detail

/// A tile_source over such an expression, for a tensor of storage order Order; else as expression_source is.
template <class Xpr, storage_order Order>
requires expr_detail::goes_by_parts<Xpr, Order>
class mixed_source {
  using elements = expression_source<Xpr, Order>;
  using part = expr_detail::mixed_part<Xpr, Order>;

 public:
  static constexpr bool reads_rows = !part::has_across, mixes_orders = part::has_along && part::has_across;
  static constexpr bool is_repeatable = elements::is_repeatable, reads_twice = elements::reads_twice;

  explicit mixed_source(const Xpr& x)
      : part_(x),
        leaves_(expr_detail::leaves_in_order<Order>(x)),
        row_count_(by_rows ? x.rows() : x.cols()),
        col_count_(by_rows ? x.cols() : x.rows()) {}
  mixed_source(const mixed_source&) = delete;
  mixed_source& operator=(const mixed_source&) = delete;

  index_t rows() const { return row_count_; }
  index_t cols() const { return col_count_; }
  static const float* direct(index_t, index_t) { return nullptr; }

  /// What asks for a box of the matrices that lie in memory, a row's worth of each at a time.
  auto box_requests(index_t row, index_t rows, index_t col, index_t cols) const {
    const bool asks = row < row_count_ && row_count_ * col_count_ >= ops::streaming_floats;
    return expr_detail::requests_of_box(leaves_, row, rows, col, cols, asks);
  }
  void read(index_t row, index_t rows, index_t col, index_t cols, float* tile, index_t stride) const {
    constexpr auto shape = expr_detail::part_shape::of<part>();
    const index_t high = row_count_ * col_count_ >= ops::streaming_floats ? shape.far_rows : shape.rows;
    expr_detail::store_boxes<shape>(part_, high, row, rows, col, cols, tile, stride, expr_detail::plain_assignment());
  }

 private:
  static constexpr bool by_rows = std::is_same_v<Order, row_major>;
  static constexpr std::size_t leaf_count = static_cast<std::size_t>(expr_detail::leaves<Xpr>::count);

  part part_;
  std::array<expr_detail::leaf, leaf_count> leaves_;
  index_t row_count_, col_count_;
};

}  // namespace qtensor::inline QTENSOR_ABI
