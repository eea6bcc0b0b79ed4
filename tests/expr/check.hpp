// What the tests of the Eigen floor share: tensors of random numbers, their values by the reference, exact comparison.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <doctest/doctest.h>

#include <cstdint>
#include <qtensor/expr/eigen_version.hpp>
#include <qtensor/reference/matmul.hpp>
#include <qtensor/reference/product.hpp>
#include <qtensor/reference/quantize.hpp>
#include <qtensor/scheme/schemes.hpp>

namespace check {

using qtensor::index_t;
using row_matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// Numbers in [-2, 2), the same in every run.
inline float number(index_t row, index_t col) {
  std::uint32_t h =
      static_cast<std::uint32_t>(row) * 0x9e3779b1u ^ (static_cast<std::uint32_t>(col) + 17u) * 0x85ebca77u;
  h = (h ^ h >> 15) * 0x2c1b3c6du;
  h = (h ^ h >> 12) * 0x297a2d39u;
  return static_cast<float>(static_cast<std::int32_t>(h ^ h >> 15)) * 0x1p-30f;
}
inline Eigen::MatrixXf numbers(index_t rows, index_t cols, index_t seed = 0) {
  Eigen::MatrixXf m(rows, cols);
  for (index_t i = 0; i < rows; ++i)
    for (index_t j = 0; j < cols; ++j) m(i, j) = number(i + 1000 * seed, j);
  return m;
}

/// A matrix of random numbers, quantized by the reference.
template <class S, class Order = qtensor::row_major, class Extents = qtensor::matrix_extents>
auto tensor_of(const Extents& extents, const typename S::granularity_type& granularity = {}) {
  qtensor::tensor<S, Extents, Order> t(extents, granularity);
  qtensor::reference::quantize([](const auto& at) { return number(at[0], at[1]); }, t.span());
  return t;
}
template <class S, class Order = qtensor::row_major>
auto tensor_of(index_t rows, index_t cols) {
  return tensor_of<S, Order>(qtensor::matrix_extents(rows, cols));
}

/// The values of a tensor or view, one by one from the reference.
template <class T>
row_matrix values(const T& t) {
  const auto view = qtensor::as_view(t);
  row_matrix m(view.rows(), view.cols());
  for (index_t i = 0; i < m.rows(); ++i)
    for (index_t j = 0; j < m.cols(); ++j) m(i, j) = qtensor::reference::value(view, {i, j});
  return m;
}

/// The product as the reference defines it.
template <class A, class B>
row_matrix product(const A& a, const B& b) {
  row_matrix y(a.rows(), b.cols());
  qtensor::reference::matmul([&](index_t i, index_t k) { return a(i, k); },
                             [&](index_t k, index_t j) { return b(k, j); }, a.rows(), b.cols(), a.cols(),
                             [&](index_t i, index_t j, float v) { y(i, j) = v; });
  return y;
}

/// A row of W, or a column of X, as reference/product.hpp wants an operand.
template <class View>
struct product_operand {
  using code = typename View::scheme_type::code_format;
  View view;
  index_t at;
  int axis;
  static constexpr bool one_scale = true, has_offset = false, has_tensor_scale = false;
  static constexpr float unit = 1.f, tensor_scale = 1.f;
  auto index(index_t k) const { return axis == 0 ? std::array<index_t, 2>{at, k} : std::array<index_t, 2>{k, at}; }
  std::int64_t number(index_t k) const {
    return static_cast<std::int64_t>(code::decode(view.code(index(k)))) - view.zero_point(index(k));
  }
  float scale(index_t k) const { return view.scale(index(k)); }
  float offset(index_t) const { return 0.f; }
};
/// The product of integers W and X, whose columns have one scale each, as the reference defines it: W in groups of
/// `group`.
template <class W, class X>
row_matrix integer_product(const W& w, const X& x, index_t group) {
  const auto left = qtensor::as_view(w);
  const auto right = qtensor::as_view(x);
  row_matrix y(w.rows(), x.cols());
  for (index_t i = 0; i < y.rows(); ++i)
    for (index_t j = 0; j < y.cols(); ++j) {
      const product_operand<std::remove_const_t<decltype(left)>> a{left, i, 0};
      const product_operand<std::remove_const_t<decltype(right)>> b{right, j, 1};
      y(i, j) = group >= w.cols() ? qtensor::reference::integer_product(b, a, w.cols())
                                  : qtensor::reference::group_product(b, a, w.cols(), group);
    }
  return y;
}

/// The same bits everywhere; NaNs equal each other.
template <class A, class B>
bool same(const A& a, const B& b) {
  const Eigen::MatrixXf x = a, y = b;
  if (x.rows() != y.rows() || x.cols() != y.cols()) return false;
  for (index_t i = 0; i < x.rows(); ++i)
    for (index_t j = 0; j < x.cols(); ++j) {
      const bool both_nan = qtensor::is_nan(x(i, j)) && qtensor::is_nan(y(i, j));
      if (!both_nan && qtensor::bits_of(x(i, j)) != qtensor::bits_of(y(i, j))) {
        MESSAGE("element (", i, ", ", j, ") is ", x(i, j), " and ", y(i, j));
        return false;
      }
    }
  return true;
}

/// The same codes, scales and zero points.
template <class A, class B>
bool same_tensor(const A& a, const B& b) {
  const auto x = qtensor::as_view(a);
  const auto y = qtensor::as_view(b);
  if (x.rows() != y.rows() || x.cols() != y.cols()) return false;
  for (index_t i = 0; i < x.rows(); ++i)
    for (index_t j = 0; j < x.cols(); ++j)
      if (x.code(i, j) != y.code(i, j) || x.scale_code({i, j}) != y.scale_code({i, j}) ||
          x.zero_point(i, j) != y.zero_point(i, j)) {
        MESSAGE("element (", i, ", ", j, "): codes ", x.code(i, j), " and ", y.code(i, j), ", scales ", x.scale(i, j),
                " and ", y.scale(i, j));
        return false;
      }
  return true;
}

}  // namespace check
