// Random products of quantized matrices inside Eigen, and matmul, against sums in the documented order.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/expr/matmul.hpp>
#include <string>

#include "operands.hpp"

using namespace fuzz;
using check::product;

namespace {

/// A random matrix in memory, of either order or with gaps.
class dense_operand {
 public:
  dense_operand(fuzz::dice& dice, index_t rows, index_t cols) : rows_(rows), cols_(cols), first_(dice.within(0, 17)) {
    const bool by_rows = dice.chance(2);
    const index_t inner = dice.chance(3) ? 2 : 1, outer = inner * (by_rows ? cols : rows) + dice.within(0, 2);
    strides_ = by_rows ? std::array{outer, inner} : std::array{inner, outer};
    memory_ = dice.numbers(first_ + strides_[0] * rows + strides_[1] * cols + 1);
  }
  Map<const MatrixXf, Unaligned, Stride<Dynamic, Dynamic>> x() const {
    return {memory_.data() + first_, rows_, cols_, Stride<Dynamic, Dynamic>(strides_[1], strides_[0])};
  }

 private:
  index_t rows_, cols_, first_;
  std::array<index_t, 2> strides_;  // down, along
  std::vector<float> memory_;
};

float factor_of(fuzz::dice& dice) { return dice.one_of(1.f, -1.f, 0.3f); }

/// Products with floats: chains of fma over ascending k, times the factors, then added.
template <class S, class Order>
void with_floats(fuzz::dice& dice) {
  const index_t rows = dice.extent(150), depth = dice.extent(300), cols = dice.chance(3) ? 1 : dice.extent(40);
  const auto t = fuzz::codes<S, Order>(dice, rows, depth);
  const index_t row = dice.within(0, t.rows() - rows), col = dice.within(0, t.cols() - depth);
  const row_matrix whole = check::values(t), d = whole.block(row, col, rows, depth);
  const auto w = qt::dequantize(t);
  const auto part = w.block(row, col, rows, depth);
  const dense_operand left(dice, cols, rows), right(dice, depth, cols), all(dice, t.cols(), cols),
      sum(dice, rows, cols);
  const auto x = right.x();
  const float f = depth > 0 ? factor_of(dice) : 1.f, g = depth > 0 ? factor_of(dice) : 1.f;  // 0 terms: +0 anyway
  const index_t form = dice.within(0, 8);
  INFO(fuzz::title<S, Order>(), t.rows(), " x ", t.cols(), ", of it ", rows, " x ", depth, " at ", row, ", ", col,
       " times ", depth, " x ", cols, ", form ", form);
  MatrixXf y;
  switch (form) {
    case 0:
      y = part * x;
      REQUIRE(check::same(y, product(d, x)));
      return;
    case 1:
      y = w * all.x();
      REQUIRE(check::same(y, product(whole, all.x())));
      return;
    case 2:
      y = left.x() * part;
      REQUIRE(check::same(y, product(left.x(), d)));
      return;
    case 3:
      y = part.transpose() * left.x().transpose();
      REQUIRE(check::same(y, product(d.transpose().eval(), left.x().transpose().eval())));
      return;
    case 4:
      y = sum.x() + g * ((f * part) * x);
      REQUIRE(check::same(y, (sum.x() + product(d, x) * (f * g)).eval()));
      return;
    case 5: {
      row_matrix big = row_matrix::Constant(rows + 3, cols + 2, 7.f), want = big;
      want.block(1, 2, rows, cols) -= product(d, x) * f;
      big.block(1, 2, rows, cols).noalias() -= f * (part * x);
      REQUIRE(check::same(big, want));
      return;
    }
    case 6: {  // the other operand is the destination, too
      const index_t size = std::min(t.rows(), t.cols());
      const MatrixXf before = all.x().topRows(size);
      y = before;
      y += w.topLeftCorner(size, size) * y;
      REQUIRE(check::same(y, (before + product(whole.topLeftCorner(size, size).eval(), before)).eval()));
      return;
    }
    case 7: {
      const auto got = qt::matmul<qt::int8_per_channel<1>>(t, all.x());
      const row_matrix want = product(whole, all.x());
      qt::tensor<qt::int8_per_channel<1>, qt::matrix_extents, qt::col_major> codes(qt::matrix_extents(t.rows(), cols));
      qt::reference::quantize([&](const auto& at) { return want(at[0], at[1]); }, codes.span());
      REQUIRE(check::same_tensor(got, codes));
      return;
    }
    default: {
      const dense_operand bias(dice, t.rows(), 1);
      const auto add = [&](auto acc, qt::tile at) { return acc.colwise() + bias.x().col(0).segment(at.row, at.rows); };
      y = qt::matmul(t, all.x(), on(qt::parallel_for(dice.within(1, 4), backwards)), add);
      REQUIRE(check::same(y, (product(whole, all.x()).colwise() + bias.x().col(0)).eval()));
    }
  }
}

/// Products of codes: exact sums of integers, of all terms or of each group of W's.
template <class S, class Order, class Codes, class CodesOrder>
void with_codes(fuzz::dice& dice, index_t group) {
  const index_t rows = dice.extent(150), depth = dice.extent(300), cols = dice.chance(3) ? 1 : dice.extent(40);
  const auto t = fuzz::codes<S, Order>(dice, rows, depth);
  const auto x = fuzz::codes<Codes, CodesOrder>(dice, t.cols(), cols);
  const auto v = x.view().top_rows(t.cols());
  const row_matrix want = check::integer_product(t, v, group == 0 ? t.cols() : group);
  const dense_operand sum(dice, t.rows(), x.cols());
  const float f = t.cols() > 0 ? factor_of(dice) : 1.f;
  const index_t form = dice.within(0, 2);
  INFO(fuzz::title<S, Order>(), t.rows(), " x ", t.cols(), " times ", std::string(qt::name<Codes>), " of ", x.cols(),
       " columns, form ", form);
  MatrixXf y;
  switch (form) {
    case 0:
      y = t * v;
      REQUIRE(check::same(y, want));
      return;
    case 1:
      y = sum.x();
      y.noalias() += f * (t * v);
      REQUIRE(check::same(y, t.cols() > 0 ? row_matrix(sum.x() + want * f) : row_matrix(sum.x())));
      return;
    default:
      y = qt::matmul(t, qt::as_view(v), on(qt::parallel_for(dice.within(1, 4), backwards)),
                     qt::stages(qt::stage::scale(f)));
      REQUIRE(check::same(y, (want * f).eval()));
  }
}

}  // namespace

TEST_CASE("matrix products: with floats") {
  fuzz::each_case(300, [](fuzz::dice& dice) {
    if (dice.chance(2))
      with_floats<qt::mxfp4, qt::row_major>(dice);
    else
      with_floats<qt::int8_per_channel<1>, qt::col_major>(dice);
  });
}

TEST_CASE("matrix products: of codes") {
  fuzz::each_case(300, [](fuzz::dice& dice) {
    if (dice.chance(2))
      with_codes<qt::int8_per_channel<0>, qt::row_major, qt::uint8_per_tensor, qt::row_major>(dice, 0);
    else
      with_codes<qt::uint4_group<32>, qt::row_major, qt::int8_per_channel<1>, qt::col_major>(dice, 32);
  });
}
