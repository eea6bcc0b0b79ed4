// Random Eigen expressions: tiles of their sources are what Eigen evaluates.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/expr/source_of.hpp>

#include "operands.hpp"

using namespace fuzz;

namespace {

/// Calls use(expression, what it is worth) with a function of quantized matrices.
template <class S, class Order, class Use>
void with_codes(fuzz::dice& dice, const operands& o, const Use& use) {
  const quantized_operand<S, Order> q(dice, o);
  const auto a = o.columns(dice);
  const auto r = o.lines(dice);
  const auto d = q.values();
  const index_t function = dice.within(0, 6);
  INFO("function ", function);
  switch (function) {
    case 0:
      return use(q.part(), d);
    case 1:
      return use((-0.3f * q.part()).transpose(), (-0.3f * q.turned_values()).eval());
    case 2:
      return use(q.part() + a, d + a);
    case 3:
      return use(r - q.part() * 3.f, r - d * 3.f);
    case 4:
      return use((q.part().transpose() - r.transpose()).cwiseAbs(), (q.turned_values() - r.transpose()).cwiseAbs());
    case 5:
      return use(q.part().array() * a.array() / r.array(), d.array() * a.array() / r.array());
    default:
      return use(q.part().reverse(), d.reverse());
  }
}

/// The same with functions of floats.
template <class Use>
void with_floats(fuzz::dice& dice, const operands& o, const Use& use) {
  const auto a = o.columns(dice), b = o.columns(dice);
  const auto r = o.lines(dice), s = o.lines(dice);
  const auto twice = [&](const auto& x) { use(x, x); };
  const index_t function = dice.within(0, 15);
  INFO("function ", function);
  switch (function) {
    case 0:
      return twice(a - 2 * b);
    case 1:
      return twice(r.cwiseProduct(s).cwiseAbs());
    case 2:
      return twice(a + r);
    case 3:
      return twice(o.scattered<MatrixXf>(dice).cwiseProduct(r) - (s / 3.f - o.scattered<row_matrix>(dice)).cwiseAbs());
    case 4:
      return twice((a + r).cwiseAbs2());
    case 5:
      return twice(a + b + a + r + b + a + s + b + r);
    case 6:
      return twice(r.rowwise() + a.row(0));
    case 7:
      return twice(a.col(0).replicate(1, o.cols) - b);
    case 8:
      return twice(a.reverse() + b);
    case 9:
      return twice(r.array() * 2.f + 1.f);
    case 10:
      return twice((a.array() < b.array()).select(r, s));
    case 11:
      return twice(a.block(0, 0, o.rows, o.cols).transpose() + r.transpose());
    case 12:
      return twice(a.col(0) + b.col(o.cols / 2));
    case 13:
      return twice(r.row(o.rows / 2) - a.row(0));
    case 14:
      return twice(a.unaryExpr([](float x) { return x * 2.f; }) + r);
    default:
      return twice(-(a.transpose() + r.transpose() / 4.f));
  }
}

/// A tile of an expression's source, and nothing beside it.
template <class Order, class Xpr, class Want>
void check_tile(fuzz::dice& dice, const Xpr& x, const Want& want) {
  constexpr bool by_rows = std::is_same_v<Order, qt::row_major>;
  qt::expr_detail::with_source<Order>(x, [&](const auto& source) {
    REQUIRE(source.rows() == (by_rows ? x.rows() : x.cols()));
    REQUIRE(source.cols() == (by_rows ? x.cols() : x.rows()));
    if (x.size() == 0) return;
    const index_t row = dice.within(0, source.rows() - 1), col = dice.within(0, source.cols() - 1),
                  rows = dice.within(1, std::min<index_t>(source.rows() - row, 70)),
                  cols = dice.within(1, std::min<index_t>(source.cols() - col, 700)),
                  stride = cols + dice.within(0, 17);
    INFO("tile of ", rows, " x ", cols, " at ", row, ", ", col);
    row_matrix tile = row_matrix::Constant(rows, stride, 77.f), right = tile;
    source.read(row, rows, col, cols, tile.data(), stride);
    if constexpr (by_rows)
      right.leftCols(cols) = want.matrix().block(row, col, rows, cols);
    else
      right.leftCols(cols) = want.matrix().block(col, row, cols, rows).transpose();
    REQUIRE(check::same(tile, right));
  });
}

}  // namespace

TEST_CASE("expressions: tiles of a source are those of the evaluated expression") {
  fuzz::each_case(1500, [](fuzz::dice& dice) {
    const operands o(dice, 500);
    const index_t kind = dice.within(0, 7);
    INFO(o.rows, " x ", o.cols, ", of kind ", kind);
    const auto check = [&](const auto& x, const auto& want) {
      if (dice.chance(2))
        check_tile<qt::row_major>(dice, x, want);
      else
        check_tile<qt::col_major>(dice, x, want);
    };
    switch (kind) {
      case 0:
        return with_codes<qt::mxfp4, qt::row_major>(dice, o, check);
      case 1:
        return with_codes<qt::uint4_group<32>, qt::col_major>(dice, o, check);
      case 2:
        return with_codes<qt::int8_per_channel<0>, qt::row_major>(dice, o, check);
      case 3:
        return with_codes<qt::fp8_block<16, 32>, qt::col_major>(dice, o, check);
      case 4:
        return with_codes<qt::mxfp6_e2m3, qt::row_major>(dice, o, check);
      default:
        if (o.rows > 0 && o.cols > 0) with_floats(dice, o, check);
    }
  });
}
