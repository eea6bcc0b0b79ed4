// Mirrors include/qtensor/expr/operand.hpp: what folds, into what, and that the source gives its numbers.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/expr/assign.hpp>
#include <qtensor/expr/operand.hpp>

#include "check.hpp"

using namespace Eigen;
namespace qt = qtensor;
using check::index_t;

namespace {

/// Every tile of a source, whole and at odd corners, equals the expression evaluated by the reference's values.
template <class Xpr>
void check_source(const Xpr& x, const MatrixXf& want) {
  static_assert(qt::folded<Xpr>);
  const auto source = qt::expr_detail::source_of_operand(x);
  static_assert(qt::tile_source<std::remove_const_t<decltype(source)>>);
  REQUIRE(source.rows() == want.rows());
  REQUIRE(source.cols() == want.cols());
  for (const auto& [row, col] : {std::pair<index_t, index_t>{0, 0}, {1, 3}, {2, 0}}) {
    const index_t rows = want.rows() - row, cols = want.cols() - col, stride = cols + 3;
    if (rows <= 0 || cols <= 0) continue;
    check::row_matrix tile = check::row_matrix::Constant(rows, stride, 77.f);
    source.read(row, rows, col, cols, tile.data(), stride);
    CHECK(check::same(tile.leftCols(cols), want.bottomRightCorner(rows, cols)));
    CHECK((tile.rightCols(3).array() == 77.f).all());
  }
  const auto crossed = source.transposed();
  check::row_matrix tile(want.cols(), want.rows());
  crossed.read(0, want.cols(), 0, want.rows(), tile.data(), want.rows());
  CHECK(check::same(tile, want.transpose()));
}

template <qt::folded Xpr>
float operand_number(const Xpr& x) {
  return qt::operand<Xpr>::fold(x).by.number();
}

template <class T>
void check_all(const T& t) {
  const auto w = qt::dequantize(t);
  const check::row_matrix d = check::values(t);
  check_source(w, d);
  check_source(w.transpose(), d.transpose());
  check_source(w.transpose().transpose(), d);
  check_source(w.topRows(7), d.topRows(7));
  check_source(w.middleRows(5, 13), d.middleRows(5, 13));
  check_source(w.leftCols(9), d.leftCols(9));
  check_source(w.middleCols(13, 30), d.middleCols(13, 30));
  check_source(w.block(3, 17, 20, 21), d.block(3, 17, 20, 21));
  check_source(w.transpose().block(17, 3, 21, 20), d.transpose().block(17, 3, 21, 20));
  check_source(w.block(3, 17, 20, 21).transpose().topRows(5), d.block(3, 17, 20, 21).transpose().topRows(5));
  check_source(w.row(4), d.row(4));
  check_source(w.col(4), d.col(4));
  check_source(-w, d * -1.f);
  check_source(3.f * w, 3.f * d);
  check_source(w * 0.1f, d * 0.1f);
  check_source((2.f * -w).transpose().leftCols(6), (-2.f * d).transpose().leftCols(6));
}

}  // namespace

TEST_CASE("operand: transposes, blocks on and off group and byte boundaries, factors, in row_major") {
  check_all(check::tensor_of<qt::int4_group<16>>(37, 51));
  check_all(check::tensor_of<qt::fp8_block<8, 8>>(37, 51));
}

TEST_CASE("operand: the same in col_major") {
  check_all(check::tensor_of<qt::along<0, qt::mxfp4>, qt::col_major>(37, 51));
  check_all(check::tensor_of<qt::uint8_per_channel<1>, qt::col_major>(37, 51));
}

TEST_CASE("operand: a folded expression knows its region and its factor") {
  const auto t = check::tensor_of<qt::int8_per_tensor>(20, 30);
  const auto w = qt::dequantize(t);
  const auto x = (-2.f * w.block(3, 5, 10, 12)).transpose();
  using folded = qt::operand<std::remove_const_t<decltype(x)>>;
  static_assert(folded::folds && folded::is_transposed);
  const auto region = folded::fold(x);
  CHECK(region.row == 3);
  CHECK(region.col == 5);
  CHECK(region.rows == 10);
  CHECK(region.cols == 12);
  CHECK(region.by.number() == -2.f);
  CHECK(operand_number(-w) == -1.f);
  CHECK(operand_number(-(3.f * -w)) == 3.f);
}

TEST_CASE("operand: several factors are one to products, and rounded one after the other elsewhere") {
  const auto t = check::tensor_of<qt::int4_group<32>>(40, 256);
  const auto w = qt::dequantize(t);
  const MatrixXf d = check::values(t), b = check::numbers(40, 256);
  static_assert(qt::folded<decltype(.1f * (.7f * w))> && !qt::folded_elements<decltype(.1f * (.7f * w))>);
  static_assert(qt::folded_elements<decltype(-(.7f * w).transpose())>);
  CHECK(operand_number(.1f * (.7f * w)) == .1f * .7f);

  const MatrixXf want = .1f * (.7f * d);
  MatrixXf y = .1f * (.7f * w);
  check::row_matrix z = .1f * (.7f * w);
  CHECK(check::same(y, want));
  CHECK(check::same(z, want));
  y += (.7f * w) * .1f, z = .1f * (.7f * w) + check::row_matrix(b);
  CHECK(check::same(y, want + want));
  CHECK(check::same(z, want + b));
  z = .1f * (.7f * w).leftCols(96) + b.leftCols(96);
  CHECK(check::same(z, (want + b).leftCols(96)));
  CHECK(check::same((.1f * (.7f * w)).transpose(), want.transpose()));

  qt::tensor<qt::int8_per_tensor> small(qt::matrix_extents(1, 2));
  small.scales()[0] = 1e-20f, small.codes()[0] = 1;
  const MatrixXf far = 1e20f * (1e20f * qt::dequantize(small));  // their product is infinite
  CHECK(far(0, 0) == doctest::Approx(1e20f));
  CHECK(far(0, 1) == 0.f);
}

TEST_CASE("operand: sums, quotients and other expressions do not fold") {
  const auto t = check::tensor_of<qt::int8_per_tensor>(20, 30);
  const auto w = qt::dequantize(t);
  const MatrixXf a = check::numbers(20, 30);
  static_assert(!qt::folded<MatrixXf> && !qt::folded<decltype(w + a)> && !qt::folded<decltype(w / 3.f)> &&
                !qt::folded<decltype(w.cwiseAbs())>);
  static_assert(!qt::folded<decltype(2.f * a)> && !qt::folded<decltype(a.transpose())> &&
                !qt::folded<decltype(w.reverse())>);
  CHECK(check::same(w / 3.f, check::values(t) / 3.f));
}
