// Mirrors include/qtensor/expr/product.hpp: every spelling reaches the kernel, with the reference's bits.
// SPDX-License-Identifier: BSD-3-Clause
// clang-format off: the counter comes before the headers that call it.
#include "counted.hpp"
// clang-format on

#include <qtensor/expr/assign.hpp>
#include <qtensor/expr/product.hpp>

#include "check.hpp"

using namespace Eigen;
namespace qt = qtensor;
using check::index_t;
using check::product;
using check::row_matrix;

#define REACHES(statement, result, want) REACHES_KERNEL(products, statement, result, want)

namespace {

template <class S>
using along_0 = qt::along<0, S>;

/// dst = a * b as Eigen asks for it, without Eigen's own checks of sizes.
template <class Dst, class A, class B>
void assign_product(Dst& dst, const A& a, const B& b) {
  qt::expr_detail::quantized_product<A, B>::evalTo(dst, a, b);
}

struct operands {
  qt::tensor<qt::int4_group<32>> W = check::tensor_of<qt::int4_group<32>>(24, 96);
  qt::tensor<qt::int8_per_channel<0>> V = check::tensor_of<qt::int8_per_channel<0>>(96, 10);
  row_matrix D = check::values(W), E = check::values(V);
  MatrixXf X = check::numbers(96, 7, 1), Q = check::numbers(24, 7, 2), Z = check::numbers(8, 96, 3), Y, R;
  VectorXf x = X.col(0), q = Q.col(0), b = check::numbers(24, 1, 4), y;
};

}  // namespace

TEST_CASE("product: quantized on the left, right and both sides, vectors and matrices") {
  operands o;
  const auto w = qt::dequantize(o.W);
  const auto v = qt::dequantize(o.V);
  REACHES(o.y = w * o.x, o.y, product(o.D, o.x));
  REACHES(o.y.noalias() = w * o.x, o.y, product(o.D, o.x));
  REACHES(o.Y = w * o.X, o.Y, product(o.D, o.X));
  row_matrix rows;
  REACHES(rows = w * o.X, rows, product(o.D, o.X));
  REACHES(o.R = o.X.transpose() * v, o.R, product(o.X.transpose().eval(), o.E));
  REACHES(o.R = o.Z * v, o.R, product(o.Z, o.E));
  REACHES(o.R = w * v, o.R, product(o.D, o.E));
  RowVectorXf r;
  REACHES(r = o.q.transpose() * w, r, product(o.q.transpose().eval(), o.D));
  REACHES(r.noalias() = o.q.transpose() * w, r, product(o.q.transpose().eval(), o.D));
}

TEST_CASE("product: transposes, panels, blocks and factors reach the kernel") {
  operands o;
  const auto w = qt::dequantize(o.W);
  const row_matrix Dt = o.D.transpose();
  REACHES(o.y = w.transpose() * o.q, o.y, product(Dt, o.q));
  REACHES(o.Y = w.transpose() * o.Q, o.Y, product(Dt, o.Q));
  REACHES(o.R = o.Z * w.transpose(), o.R, product(o.Z, Dt));
  REACHES(o.y = w.topRows(12) * o.x, o.y, product(o.D.topRows(12).eval(), o.x));
  REACHES(o.y = w.middleRows(3, 5) * o.x, o.y, product(o.D.middleRows(3, 5).eval(), o.x));
  REACHES(o.y = w.middleCols(32, 64) * o.x.head(64), o.y, product(o.D.middleCols(32, 64).eval(), o.x.head(64).eval()));
  REACHES(o.Y = w.block(1, 2, 5, 40) * o.X.topRows(40), o.Y,
          product(o.D.block(1, 2, 5, 40).eval(), o.X.topRows(40).eval()));
  REACHES(o.y = (2.f * w) * o.x, o.y, product(o.D, o.x) * 2.f);
  REACHES(o.y = (w * 2.f) * o.x, o.y, product(o.D, o.x) * 2.f);
  REACHES(o.y = 2.f * (w * o.x), o.y, product(o.D, o.x) * 2.f);
  REACHES(o.y.noalias() = 0.3f * (w * o.x), o.y, product(o.D, o.x) * 0.3f);
  REACHES(o.y = (3.f * w.topRows(8)) * o.x, o.y, product(o.D.topRows(8).eval(), o.x) * 3.f);
  REACHES(o.y = -w * o.x, o.y, product(o.D, o.x) * -1.f);
  REACHES(o.y = -(w * o.x), o.y, product(o.D, o.x) * -1.f);
  REACHES(o.y = (-2.f * w).transpose() * o.q, o.y, product(Dt, o.q) * -2.f);
}

TEST_CASE_TEMPLATE("product: so many outputs that plain weights are packed for one product, along either axis", S,
                   qt::int8_per_tensor, qt::int4_group<32>, along_0<qt::int4_group<16>>, qt::mxfp4,
                   along_0<qt::mxfp8_e4m3>, qt::uint8_per_channel<1>, qt::int8_per_channel<0>, qt::mxfp6_e2m3) {
  constexpr index_t n = 2 * qt::simd::float_tile<qt::simd::best_arch>::panel, k = 102;
  const auto W = check::tensor_of<S>(n, k), V = check::tensor_of<S>(k, n);
  const auto w = qt::dequantize(W), v = qt::dequantize(V);
  const row_matrix D = check::values(W), E = check::values(V), Et = E.transpose(), Dt = D.transpose();
  for (const index_t m : {1, 5, 40}) {
    const MatrixXf x = check::numbers(k, m, 5), xt = x.transpose();
    MatrixXf y, was = check::numbers(n, m, 6), turned;
    REACHES(y.noalias() = w * x, y, product(D, x));
    REACHES(y.noalias() = v.transpose() * x, y, product(Et, x));
    REACHES(turned.noalias() = xt * v, turned, product(xt, E));
    REACHES(turned.noalias() = xt * w.transpose(), turned, product(xt, Dt));
    REACHES((y = was, y.noalias() += w * x), y, was + product(D, x));
    REACHES((y = was, y.noalias() -= 2.f * (v.transpose() * x)), y, was - product(Et, x) * 2.f);
    row_matrix rows;
    REACHES(rows = (3.f * w) * x.reverse(), rows, product(D, x.reverse().eval()) * 3.f);
  }
  MatrixXf none = MatrixXf::Ones(n, 3);
  const auto nothing = check::tensor_of<S>(n, 0);
  none.noalias() += qt::dequantize(nothing) * MatrixXf(0, 3);
  CHECK(check::same(none, MatrixXf::Ones(n, 3)));
}

TEST_CASE("product: inside larger expressions, added and subtracted") {
  operands o;
  const auto w = qt::dequantize(o.W);
  const row_matrix want = product(o.D, o.x);
  REACHES(o.y = w * o.x + o.b, o.y, want + o.b);
  REACHES(o.y.noalias() = o.b + w * o.x, o.y, o.b + want);
  REACHES(o.y = o.b - w * o.x, o.y, o.b - want);
  REACHES(o.y = (w * o.x + o.b).cwiseMax(0.f), o.y, (want + o.b).cwiseMax(0.f));
  REACHES((o.y = o.b, o.y += w * o.x), o.y, o.b + want);
  REACHES((o.y = o.b, o.y.noalias() += w * o.x), o.y, o.b + want);
  REACHES((o.y = o.b, o.y.noalias() -= w * o.x), o.y, o.b - want);
  REACHES((o.y = o.b, o.y.noalias() += 2.f * (w * o.x)), o.y, o.b + want * 2.f);
  REACHES(o.Y = (w * o.X).colwise() + o.b, o.Y, product(o.D, o.X).colwise() + o.b);
  REACHES(o.Y = (w * o.X).transpose(), o.Y, product(o.D, o.X).transpose());
  REACHES(o.Y = (w * o.X).array().square().matrix(), o.Y, product(o.D, o.X).array().square().matrix());
  ArrayXXf a;
  REACHES(a = (w * o.X).array() + 1.f, a.matrix(), (product(o.D, o.X).array() + 1.f).matrix());
}

TEST_CASE("product: the other operand may be any expression") {
  operands o;
  const auto w = qt::dequantize(o.W);
  REACHES(o.Y = w * o.X.replicate(1, 2), o.Y, product(o.D, o.X.replicate(1, 2).eval()));
  REACHES(o.Y = w * o.X.reverse(), o.Y, product(o.D, o.X.reverse().eval()));
  REACHES(o.Y = w * (2.f * o.X + o.X.reverse()), o.Y, product(o.D, (2.f * o.X + o.X.reverse()).eval()));
  const Map<const MatrixXf, 0, OuterStride<>> strided(o.X.data(), 20, 7, OuterStride<>(96));
  REACHES(o.Y = w.leftCols(20) * strided, o.Y, product(o.D.leftCols(20).eval(), o.X.topRows(20).eval()));
  const Map<const VectorXf, 0, InnerStride<>> every_other(o.X.data(), 96, InnerStride<>(2));
  REACHES(o.y = w * every_other, o.y, product(o.D, VectorXf(every_other)));
  REACHES(o.Y = w * o.X(seqN(0, 96), seqN(1, 3, 2)), o.Y, product(o.D, MatrixXf(o.X(seqN(0, 96), seqN(1, 3, 2)))));
  REACHES(o.Y = w * (o.X * o.Z.topLeftCorner(7, 3)), o.Y, product(o.D, (o.X * o.Z.topLeftCorner(7, 3)).eval()));
}

TEST_CASE("product: every kind of destination") {
  operands o;
  const auto w = qt::dequantize(o.W);
  const row_matrix want = product(o.D, o.X);
  MatrixXf big = MatrixXf::Zero(50, 20);
  REACHES(big.block(3, 2, 24, 7).noalias() = w * o.X, big.block(3, 2, 24, 7), want);
  CHECK(big.array().abs().sum() == doctest::Approx(want.array().abs().sum()));
  VectorXf buffer = VectorXf::Zero(100);
  Map<VectorXf, 0, InnerStride<2>> strided(buffer.data(), 24);
  REACHES(strided.noalias() = w * o.x, strided, want.col(0));
  Ref<MatrixXf> ref = big.topLeftCorner(24, 7);
  ref.setZero();
  REACHES(ref.noalias() += w * o.X, ref, want);
  o.Y = MatrixXf::Zero(24, 7);
  REACHES(o.Y.col(2).noalias() = w * o.x, o.Y.col(2), want.col(0));
  REACHES(o.Y.row(0).noalias() = (w.topRows(7) * o.x).transpose(), o.Y.row(0), want.col(0).head(7).transpose());
  Matrix<float, 24, 3> fixed;
  const Matrix<float, 96, 3> three = o.X.leftCols(3);
  REACHES(fixed.noalias() = w * three, fixed, want.leftCols(3));
  Matrix<float, 24, 3, RowMajor> fixed_rows;
  REACHES(fixed_rows.noalias() = w * three, fixed_rows, want.leftCols(3));
  MatrixXf turned = MatrixXf::Zero(24, 7);
  REACHES(turned.reverse() = w * o.X, turned.reverse(), want);
  REACHES(big(seqN(1, 24, 2), seqN(0, 7)) = w * o.X, big(seqN(1, 24, 2), seqN(0, 7)), want);
}

TEST_CASE("product: inner, outer and small fixed products take the same kernel") {
  const auto t = check::tensor_of<qt::int8_per_channel<0>>(qt::extents<4, 4>());
  const auto w = qt::dequantize(t);
  const row_matrix d = check::values(t);
  const Matrix4f a = check::numbers(4, 4, 5);
  Matrix4f y;
  REACHES(y = w * a, y, product(d, a));
  REACHES(y.noalias() = a * w, y, product(a, d));
  REACHES(y.noalias() = w * w, y, product(d, d));
  Matrix<float, 1, 1> inner;
  REACHES(inner = w.row(1) * a.col(2), inner, product(d.row(1).eval(), a.col(2).eval()));
  REACHES(y = w.col(1) * a.row(2), y, product(d.col(1).eval(), a.row(2).eval()));
}

TEST_CASE("product: col_major tensors, and groups along either axis") {
  const auto t = check::tensor_of<qt::along<0, qt::mxfp8_e4m3>, qt::col_major>(96, 7);
  const auto u = check::tensor_of<qt::mxfp4>(24, 96);
  const row_matrix d = check::values(t), e = check::values(u);
  const MatrixXf a = check::numbers(24, 96, 6), x = check::numbers(7, 5, 7);
  MatrixXf y;
  REACHES(y = a * qt::dequantize(t), y, product(a, d));
  REACHES(y = qt::dequantize(u) * qt::dequantize(t), y, product(e, d));
  REACHES(y = qt::dequantize(t) * x, y, product(d, x));
  REACHES(y = qt::dequantize(t).transpose() * a.transpose(), y, product(d.transpose().eval(), a.transpose().eval()));
}

TEST_CASE("product: diagonal and lazy products are Eigen's own, of the same numbers") {
  operands o;
  const auto w = qt::dequantize(o.W);
  CHECK(check::same(w * o.x.asDiagonal(), o.D * o.x.asDiagonal()));
  CHECK(check::same(o.q.asDiagonal() * w, o.q.asDiagonal() * o.D));
  CHECK(MatrixXf(w.lazyProduct(o.X)).isApprox(o.D * o.X, 1e-4f));
  CHECK(MatrixXf(o.Z.lazyProduct(qt::dequantize(o.V))).isApprox(o.Z * o.E, 1e-4f));
}

TEST_CASE("product: no depth gives zeros, no rows or columns nothing") {
  const qt::tensor<qt::int8_per_tensor> flat(qt::matrix_extents(5, 0)), empty(qt::matrix_extents(0, 4));
  MatrixXf y = MatrixXf::Constant(5, 3, 9.f);
  y.noalias() = qt::dequantize(flat) * MatrixXf(0, 3);
  CHECK((y.array() == 0.f).all());
  y = qt::dequantize(empty) * MatrixXf::Ones(4, 2);
  CHECK(y.rows() == 0);
  CHECK(y.cols() == 2);
}

TEST_CASE("product: sizes that do not fit throw and write nothing") {
  operands o;
  const auto w = qt::dequantize(o.W);
  MatrixXf y = MatrixXf::Constant(24, 7, 9.f), narrow(24, 6), x(95, 7);
  CHECK_THROWS_WITH_AS(
      assign_product(y, w, x),
      "qtensor: the left operand of a product has 96 columns, the right one 95 rows; they must be equal.", qt::error);
  CHECK_THROWS_WITH_AS(assign_product(narrow, w, o.X),
                       "qtensor: a product of 24x7 elements does not fit a destination of 24x6.", qt::error);
  CHECK((y.array() == 9.f).all());
}
