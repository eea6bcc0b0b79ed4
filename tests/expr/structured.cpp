// Eigen's structured matrices beside quantized ones: the same as beside the floats that these decode to.
// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <Eigen/Dense>
#include <Eigen/SparseCore>
#include <qtensor/qtensor.hpp>

namespace qt = qtensor;
using Eigen::MatrixXf;

namespace {

constexpr int n = 41;

struct operands {
  MatrixXf a = numbers(1), b = numbers(2);
  qt::tensor<qt::mxfp8_e4m3> w = qt::quantize<qt::mxfp8_e4m3>(a);
  qt::tensor<qt::int4_group<16>, qt::matrix_extents, qt::col_major> v =
      qt::quantize<qt::int4_group<16>, qt::col_major>(b);
  MatrixXf dense_w = qt::dequantize(w), dense_v = qt::dequantize(v);

  static MatrixXf numbers(int seed) {
    return MatrixXf::NullaryExpr(n, n, [=](Eigen::Index i, Eigen::Index j) {
      return static_cast<float>((i * 37 + j * 101 + seed * 59) % 211 - 105) / 7;
    });
  }
};

void check_same(const MatrixXf& got, const MatrixXf& want) {
  REQUIRE(got.rows() == want.rows());
  REQUIRE(got.cols() == want.cols());
  CHECK((got.array() == want.array()).all());
}

}  // namespace

TEST_CASE("structured: permutations and transpositions move the rows and columns of quantized matrices") {
  const operands x;
  Eigen::PermutationMatrix<Eigen::Dynamic> p(n);
  for (int i = 0; i < n; ++i) p.indices()[i] = (i * 7 + 3) % n;
  Eigen::Transpositions<Eigen::Dynamic> t(n);
  for (int i = 0; i < n; ++i) t.coeffRef(i) = i + (i * 5) % (n - i);

  check_same(p * x.w, p * x.dense_w);
  check_same(x.w * p, x.dense_w * p);
  check_same(p.transpose() * x.v, p.transpose() * x.dense_v);
  check_same(x.v * p.inverse(), x.dense_v * p.inverse());
  check_same(p * (2.f * qt::dequantize(x.v)), p * (2.f * x.dense_v));
  check_same(p * qt::dequantize(x.w).leftCols(5), p * x.dense_w.leftCols(5));
  check_same(t * qt::dequantize(x.w), t * x.dense_w);
  check_same(qt::dequantize(x.v) * t, x.dense_v * t);
}

TEST_CASE("structured: triangular views of quantized matrices, and quantized matrices assigned to such views") {
  const operands x;
  const auto w = qt::dequantize(x.w);
  check_same(w.triangularView<Eigen::Lower>(), MatrixXf(x.dense_w.triangularView<Eigen::Lower>()));
  check_same(qt::transpose(x.v).triangularView<Eigen::UnitUpper>(),
             MatrixXf(x.dense_v.transpose().triangularView<Eigen::UnitUpper>()));

  MatrixXf y = x.b, want = x.b;
  y.triangularView<Eigen::StrictlyUpper>() = w;
  want.triangularView<Eigen::StrictlyUpper>() = x.dense_w;
  check_same(y, want);
  y.triangularView<Eigen::Lower>() += qt::dequantize(x.v);
  want.triangularView<Eigen::Lower>() += x.dense_v;
  check_same(y, want);
  y.triangularView<Eigen::Upper>() -= 3.f * qt::dequantize(x.v);
  want.triangularView<Eigen::Upper>() -= 3.f * x.dense_v;
  check_same(y, want);
}

TEST_CASE("structured: triangular, self-adjoint and sparse matrices times quantized ones, as times their floats") {
  const operands x;
  const auto lower = x.a.triangularView<Eigen::Lower>();
  const auto upper = x.b.triangularView<Eigen::UnitUpper>();
  const auto symmetric = x.a.selfadjointView<Eigen::Upper>();
  Eigen::SparseMatrix<float> sparse(n, n);
  for (int i = 0; i < n; ++i) sparse.insert((i * 11 + 2) % n, i) = static_cast<float>(i) - 20.f;

  check_same(lower * x.w, lower * x.dense_w);
  check_same(x.v * lower, x.dense_v * lower);
  const Eigen::VectorXf column = upper * qt::dequantize(x.v).col(3), same = upper * x.dense_v.col(3);
  check_same(column, same);
  check_same(qt::dequantize(x.w).triangularView<Eigen::Upper>() * x.b, x.dense_w.triangularView<Eigen::Upper>() * x.b);
  check_same(symmetric * x.w, symmetric * x.dense_w);
  check_same(x.w * symmetric, x.dense_w * symmetric);
  check_same(sparse * x.w, sparse * x.dense_w);
  check_same(x.v * sparse, x.dense_v * sparse);
  check_same(sparse.transpose() * x.v, sparse.transpose() * x.dense_v);

  MatrixXf y = x.a, want = x.a;
  y += lower * x.w;
  want += lower * x.dense_w;
  y.noalias() -= x.v * sparse;
  want.noalias() -= x.dense_v * sparse;
  y.noalias() += 2.f * (symmetric * x.v);
  want.noalias() += 2.f * (symmetric * x.dense_v);
  check_same(y, want);
}
