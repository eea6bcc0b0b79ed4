// Random assignments of quantized matrices, and of sums with them: into dense matrices, blocks and maps of any strides.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/expr/operators.hpp>
#include <string>

#include "operands.hpp"

using namespace fuzz;

namespace {

/// Memory of numbers with a matrix of `rows` x `cols` in it whose elements share no memory, in lines of its order.
template <class Matrix>
class destination {
 public:
  destination(fuzz::dice& dice, index_t rows, index_t cols, bool dense)
      : rows_(rows),
        cols_(cols),
        inner_(dense ? 1 : dice.within(1, 3)),
        outer_((Matrix::IsRowMajor ? cols : rows) * inner_ + dice.within(0, 3)),
        first_(dice.within(0, 17)),
        memory_(dice.numbers(first_ + outer_ * ((Matrix::IsRowMajor ? rows : cols) + 1) + 17)),
        before_(memory_) {}

  auto any() { return Map<Matrix, Unaligned, Stride<Dynamic, Dynamic>>(at(), rows_, cols_, strides()); }
  auto lines() { return Map<Matrix, Unaligned, OuterStride<>>(at(), rows_, cols_, OuterStride<>(outer_)); }
  row_matrix before() const {
    return Map<const Matrix, Unaligned, Stride<Dynamic, Dynamic>>(before_.data() + first_, rows_, cols_, strides());
  }
  /// Whether the matrix is `want` now, and all around it as before.
  bool is(const row_matrix& want) {
    const bool same = check::same(any(), want);
    any() = before();
    for (std::size_t i = 0; i < memory_.size(); ++i)
      if (qt::bits_of(memory_[i]) != qt::bits_of(before_[i])) return false;
    return same;
  }

 private:
  float* at() { return memory_.data() + first_; }
  Stride<Dynamic, Dynamic> strides() const { return {outer_, inner_}; }

  index_t rows_, cols_, inner_, outer_, first_;
  std::vector<float> memory_, before_;
};

/// y = x, y += x or y -= x.
template <class To, class Xpr>
void assign(index_t how, To&& y, const Xpr& x) {
  switch (how) {
    case 0:
      y = x;
      break;
    case 1:
      y += x;
      break;
    default:
      y -= x;
  }
}
row_matrix assigned(index_t how, const row_matrix& y, const row_matrix& x) {
  if (how == 0) return x;
  if (how == 1) return y + x;
  return y - x;
}

/// Assigns x to one kind of destination.
template <class Matrix, class Xpr>
void check_assign(fuzz::dice& dice, const Xpr& x, const row_matrix& want) {
  const index_t how = dice.within(0, 2), kind = dice.within(0, 2);
  INFO("how ", how, ", destination ", kind, std::string(Matrix::IsRowMajor ? " of rows" : " of columns"));
  destination<Matrix> y(dice, x.rows(), x.cols(), kind == 0);
  const row_matrix result = assigned(how, y.before(), want);
  switch (kind) {
    case 0:
      assign(how, y.lines(), x);
      REQUIRE(y.is(result));
      return;
    case 1:
      assign(how, y.any(), x);
      REQUIRE(y.is(result));
      return;
    default: {
      Matrix m = y.before();
      if (how == 0) m.resize(dice.within(0, 3), 2);
      assign(how, m, x);
      REQUIRE(check::same(m, result));
    }
  }
}

template <class S, class Order>
void assigns(fuzz::dice& dice) {
  const operands o(dice, dice.chance(10) ? 1200 : 200);
  const quantized_operand<S, Order> q(dice, o);
  const auto a = o.columns(dice);
  const auto r = o.lines(dice);
  const index_t function = dice.within(0, o.cols > 0 ? 7 : 6);
  INFO(fuzz::title<S, Order>(), o.rows, " x ", o.cols, " from ", q.row, ", ", q.col, ", function ", function);
  const row_matrix d = q.values();
  const auto to = [&](const auto& x, const auto& want) {
    if (dice.chance(2))
      check_assign<MatrixXf>(dice, x, want);
    else
      check_assign<row_matrix>(dice, x, want);
  };
  const float factor = dice.one_of(1.f, -1.f, 0.3f, 0.f);
  switch (function) {
    case 0:
      return to(q.part(), d);
    case 1:
      return to(q.part().transpose(), d.transpose());
    case 2:
      return to(factor * q.part(), factor * d);
    case 3:
      return to((q.part() * factor).transpose(), (d * factor).transpose());
    case 4:
      return to(q.part() + a, d + a);
    case 5:
      return to(r - q.part() * 3.f + a, r - d * 3.f + a);
    case 6:
      return to(r.transpose().cwiseProduct(q.part().transpose()), r.transpose().cwiseProduct(d.transpose()));
    default:
      return to(q.part().col(o.cols / 2), d.col(o.cols / 2));
  }
}

}  // namespace

TEST_CASE("assignments: quantized matrices and sums with them") {
  fuzz::each_case(1000, [](fuzz::dice& dice) {
    fuzz::one_case_of(dice, &assigns<qt::mxfp4, qt::row_major>, &assigns<qt::uint4_group<32>, qt::col_major>,
                      &assigns<qt::int8_per_channel<0>, qt::row_major>, &assigns<qt::fp8_block<16, 32>, qt::col_major>,
                      &assigns<qt::mxfp6_e2m3, qt::row_major>);
  });
}
