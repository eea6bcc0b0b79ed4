// Leaves: the matrices in memory that an expression reads at the places of its own elements.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <qtensor/core/support.hpp>
#include <qtensor/expr/eigen_version.hpp>
#include <qtensor/simd/memory.hpp>
#include <qtensor/tensor/extents.hpp>
#include <type_traits>
#include <utility>

namespace qtensor::inline QTENSOR_ABI::expr_detail {

/// Where a matrix lies: its first element, and the bytes from one to that below it, to that beside it, and of each.
struct leaf {
  const std::uint8_t* data = nullptr;
  index_t down = 0, along = 0, size = 0;

  const std::uint8_t* at(index_t row, index_t col) const { return data + row * down + col * along; }

  /// Fetches a box to the second level, where lines or columns of it are runs.
  QTENSOR_INLINE void prefetch(index_t row, index_t rows, index_t col, index_t cols) const {
    const std::uint8_t* first = at(row, col);
    along == size ? simd::fetch_runs(first, down, rows, cols * size)
                  : simd::fetch_runs(first, along, cols, rows * size);
  }
};

/// Of an expression: `find` puts `count` leaves behind `to`. Functions of elements have those of their operands;
/// whatever else an expression may be (a constant, a replicated row, a product) has none.
template <class Xpr>
struct leaves {
  static constexpr int count = 0;
  static void find(const Xpr&, leaf*) {}
};
template <class Xpr>
struct leaves<const Xpr> : leaves<Xpr> {};

template <class Xpr>
requires(!std::is_const_v<Xpr> && has_memory<Xpr>) struct leaves<Xpr> {
  static constexpr int count = 1;
  static void find(const Xpr& x, leaf* to) {
    constexpr index_t size = sizeof(typename Xpr::Scalar);
    *to = {reinterpret_cast<const std::uint8_t*>(x.data()), size * x.rowStride(), size * x.colStride(), size};
  }
};

template <class Op, class X>
struct leaves<Eigen::CwiseUnaryOp<Op, X>> {
  using nested = leaves<std::remove_cvref_t<X>>;
  static constexpr int count = nested::count;
  static void find(const Eigen::CwiseUnaryOp<Op, X>& x, leaf* to) { nested::find(x.nestedExpression(), to); }
};

template <class Op, class Left, class Right>
struct leaves<Eigen::CwiseBinaryOp<Op, Left, Right>> {
  using left = leaves<std::remove_cvref_t<Left>>;
  using right = leaves<std::remove_cvref_t<Right>>;
  static constexpr int count = left::count + right::count;
  static void find(const Eigen::CwiseBinaryOp<Op, Left, Right>& x, leaf* to) {
    left::find(x.lhs(), to);
    right::find(x.rhs(), to + left::count);
  }
};

template <class X>
requires(!has_memory<Eigen::Transpose<X>>) struct leaves<Eigen::Transpose<X>> {
  using nested = leaves<std::remove_cvref_t<X>>;
  static constexpr int count = nested::count;
  static void find(const Eigen::Transpose<X>& x, leaf* to) {
    nested::find(x.nestedExpression(), to);
    for (int i = 0; i < count; ++i) std::swap(to[i].down, to[i].along);
  }
};

template <class Xpr>
std::array<leaf, static_cast<std::size_t>(leaves<Xpr>::count)> leaves_of(const Xpr& x) {
  std::array<leaf, static_cast<std::size_t>(leaves<Xpr>::count)> all;
  leaves<Xpr>::find(x, all.data());
  return all;
}

/// The same as a tensor of this order sees them: `down` and `along` its rows. Of those that are one matrix only the
/// first has elements to be asked for; others are of size 0.
template <storage_order Order, class Xpr>
auto leaves_in_order(const Xpr& x) {
  auto all = leaves_of(x);
  for (auto one = all.begin(); one != all.end(); ++one) {
    if constexpr (!std::is_same_v<Order, row_major>) std::swap(one->down, one->along);
    for (auto before = all.begin(); before != one; ++before)
      if (before->data == one->data && before->down == one->down && before->along == one->along) one->size = 0;
  }
  return all;
}

/// What asks for a box of each of some leaves, in its own order, as much at a time as a row of the box has; nothing
/// unless `asks`.
template <std::size_t Count>
std::array<simd::run_requests, Count> requests_of_box(const std::array<leaf, Count>& leaves, index_t row, index_t rows,
                                                      index_t col, index_t cols, bool asks) {
  std::array<simd::run_requests, Count> all;
  auto* to = all.data();
  for (const leaf& x : leaves) {
    const bool is_row = x.along == x.size;
    *to++ = {x.at(row, col), is_row ? x.down : x.along, (is_row ? cols : rows) * x.size, asks ? cols * x.size : 0};
  }
  return all;
}

}  // namespace qtensor::inline QTENSOR_ABI::expr_detail
