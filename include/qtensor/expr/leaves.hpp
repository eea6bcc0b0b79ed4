// Leaves: the matrices in memory that an expression reads at the places of its own elements.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <qtensor/core/support.hpp>
#include <qtensor/expr/eigen_version.hpp>
#include <qtensor/simd/memory.hpp>
#include <type_traits>
#include <utility>

namespace qtensor::inline QTENSOR_ABI::expr_detail {

/// Where a matrix lies: its first element, and the bytes from one to that below it, to that beside it, and of each.
struct leaf {
  const char* data = nullptr;
  index_t down = 0, along = 0, size = 0;

  /// Fetches a box to the second level, where lines or columns of it are runs.
  QTENSOR_INLINE void prefetch(index_t row, index_t rows, index_t col, index_t cols) const {
    const char* first = data + row * down + col * along;
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
    *to = {reinterpret_cast<const char*>(x.data()), size * x.rowStride(), size * x.colStride(), size};
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

/// The same, but of those that are one matrix only the first has elements to be asked for: others are of size 0.
template <class Xpr>
auto distinct_leaves_of(const Xpr& x) {
  auto all = leaves_of(x);
  for (auto one = all.begin(); one != all.end(); ++one)
    for (auto before = all.begin(); before != one; ++before)
      if (before->data == one->data && before->down == one->down && before->along == one->along) one->size = 0;
  return all;
}

}  // namespace qtensor::inline QTENSOR_ABI::expr_detail
