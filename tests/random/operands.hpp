// Operands of random Eigen expressions: matrices in memory of both orders, and quantized ones of random codes.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <Eigen/Core>
#include <array>
#include <qtensor/expr/dequantized.hpp>
#include <string>

#include "../expr/check.hpp"
#include "dice.hpp"

namespace fuzz {

using namespace Eigen;
namespace qt = qtensor;
using check::row_matrix;

/// The parts of a parallel operation, last to first.
inline constexpr auto backwards = [](index_t count, const auto& part) {
  for (index_t i = count; i-- > 0;) part(i);
};

template <class Matrix>
using any_map = Map<const Matrix, Unaligned, Stride<Dynamic, Dynamic>>;
template <class Matrix>
using line_map = Map<const Matrix, Unaligned, OuterStride<>>;

/// What tells a scheme and an order apart in a message.
template <class S, class Order>
std::string title() {
  return std::string(qt::name<S>) + (std::is_same_v<Order, qt::row_major> ? " by rows, " : " by columns, ");
}

/// Random codes under random parameters, of a tensor larger than `rows` x `cols`.
template <class S, class Order>
auto codes(fuzz::dice& dice, index_t rows, index_t cols) {
  qt::tensor<S, qt::matrix_extents, Order> t(qt::matrix_extents(rows + dice.within(0, 3), cols + dice.within(0, 5)));
  std::array<std::uint32_t, 1000> some;
  for (std::uint32_t& x : some) x = dice.bits();
  const std::vector<float> scales = dice.numbers(1000);
  std::size_t at = 0;
  for (auto& unit : t.codes()) unit = static_cast<std::remove_reference_t<decltype(unit)>>(some[at++ % 1000]);
  for (auto& scale : t.scales())
    if constexpr (std::is_same_v<typename S::scale_format, qt::f32>)
      scale = scales[at++ % 1000];
    else
      scale = static_cast<std::remove_reference_t<decltype(scale)>>(some[at++ % 1000]);
  if constexpr (S::has_zero_point)
    for (auto& zero : t.zero_points())
      zero =
          static_cast<std::remove_reference_t<decltype(zero)>>(some[at++ % 1000] % (1u << S::zero_point_format::bits));
  return t;
}

/// Memory of one case, and matrices of its size in it: of both orders, from any element on.
class operands {
 public:
  operands(fuzz::dice& dice, index_t most)
      : rows(dice.extent(most)), cols(dice.extent(most)), memory_(dice.numbers(4 * (rows + 3) * (cols + 3) + 64)) {}

  const index_t rows, cols;

  line_map<MatrixXf> columns(fuzz::dice& dice) const { return part(dice, MatrixXf(), rows); }
  line_map<row_matrix> lines(fuzz::dice& dice) const { return part(dice, row_matrix(), cols); }
  /// Any strides, 0 and those by which elements overlap among them.
  template <class Matrix>
  any_map<Matrix> scattered(fuzz::dice& dice) const {
    const index_t inner = dice.within(0, 2), length = Matrix::IsRowMajor ? cols : rows;
    const index_t outer = dice.chance(2) ? inner * length + dice.within(0, 2) : dice.within(0, 2);
    return {memory_.data() + dice.within(0, 40), rows, cols, Stride<Dynamic, Dynamic>(outer, inner)};
  }
  const float* memory() const { return memory_.data(); }

 private:
  template <class Matrix>
  line_map<Matrix> part(fuzz::dice& dice, const Matrix&, index_t length) const {
    return {memory_.data() + dice.within(0, 40), rows, cols, OuterStride<>(length + dice.within(0, 3))};
  }

  std::vector<float> memory_;
};

/// A quantized matrix in an expression, and its values by the reference.
template <class S, class Order>
struct quantized_operand {
  qt::tensor<S, qt::matrix_extents, Order> t;
  index_t row, col, rows, cols;

  quantized_operand(fuzz::dice& dice, const operands& o)
      : t(codes<S, Order>(dice, o.rows, o.cols)),
        row(dice.within(0, t.rows() - o.rows)),
        col(dice.within(0, t.cols() - o.cols)),
        rows(o.rows),
        cols(o.cols) {}
  auto part() const { return qt::dequantize(t).block(row, col, rows, cols); }
  auto values() const {
    return MatrixXf::NullaryExpr(rows, cols, [&t = t, row = row, col = col](Index i, Index j) {
      return qt::reference::value(t.view(), {row + i, col + j});
    });
  }
  auto turned_values() const {
    return MatrixXf::NullaryExpr(cols, rows, [&t = t, row = row, col = col](Index i, Index j) {
      return qt::reference::value(t.view(), {row + j, col + i});
    });
  }
};

}  // namespace fuzz
