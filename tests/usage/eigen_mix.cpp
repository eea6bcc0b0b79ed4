// Quantized matrices among the rest of Eigen: arguments of functions, blocks, maps, fixed sizes, reductions, printing.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/qtensor.hpp>
#include <sstream>

#include "../expr/check.hpp"

namespace qt = qtensor;
using namespace Eigen;
using check::product;
using check::row_matrix;

namespace {

void multiply_into(Ref<MatrixXf> y, const qt::tensor<qt::int8_per_channel<0>>& W, const Ref<const MatrixXf>& X) {
  y.noalias() += W * X;
}
float mean_of(const Ref<const MatrixXf>& m) { return m.mean(); }
template <class D>
float trace_of(const MatrixBase<D>& m) {
  return m.trace();
}

}  // namespace

TEST_CASE("mix: references, blocks and maps as arguments and destinations") {
  const auto W = qt::quantize<qt::int8_per_channel<0>>(check::numbers(24, 40));
  const row_matrix D = check::values(W);
  const MatrixXf X = check::numbers(40, 7, 1);
  MatrixXf Y = MatrixXf::Zero(24, 7), big = MatrixXf::Zero(50, 20);
  multiply_into(Y, W, X);
  multiply_into(big.block(3, 2, 24, 7), W, X);
  CHECK(check::same(Y, product(D, X)));
  CHECK(check::same(big.block(3, 2, 24, 7), Y));
  CHECK(mean_of(qt::dequantize(W)) == doctest::Approx(D.mean()));
  CHECK(trace_of(qt::dequantize(W).leftCols(24)) == doctest::Approx(D.leftCols(24).trace()));
}

TEST_CASE("mix: row-wise and column-wise operations, maps of functions, norms") {
  const auto W = qt::quantize<qt::mxfp8_e4m3>(check::numbers(24, 40));
  const auto w = qt::dequantize(W);
  const row_matrix D = check::values(W);
  CHECK(check::same(w.rowwise().maxCoeff(), D.rowwise().maxCoeff()));
  CHECK(check::same(w.colwise().minCoeff(), D.colwise().minCoeff()));
  CHECK(check::same(w.cwiseAbs2(), D.cwiseAbs2()));
  CHECK(check::same(w.unaryExpr([](float v) { return v < 0.f ? 0.f : v; }), D.cwiseMax(0.f)));
  CHECK(check::same(w.array().max(0.25f).matrix(), D.array().max(0.25f).matrix()));
  CHECK(w.norm() == doctest::Approx(D.norm()));
  CHECK((w.array() == D.array()).all());
  CHECK(w.isApprox(D));
}

/// The codes and scales of the transpose: its columns have the scales.
qt::tensor<qt::int8_per_channel<1>> transposed(const qt::tensor<qt::int8_per_channel<0>>& w) {
  qt::tensor<qt::int8_per_channel<1>> t(qt::matrix_extents(w.cols(), w.rows()));
  for (Index i = 0; i < w.rows(); ++i) {
    for (Index j = 0; j < w.cols(); ++j) t.span().set_storage_code({j, i}, w.code(i, j));
    t.scales()[static_cast<std::size_t>(i)] = w.scale(i, 0);
  }
  return t;
}

TEST_CASE("mix: three factors, sums of products, solvers on the evaluated matrix") {
  const auto W = qt::quantize<qt::int8_per_channel<0>>(check::numbers(24, 40)),
             V = qt::quantize<qt::int8_per_channel<0>>(check::numbers(40, 24, 1));
  const row_matrix D = check::values(W), E = check::values(V);
  const MatrixXf X = check::numbers(24, 5, 2);
  CHECK(check::same(W * (V * X), product(D, product(E, X))));
  CHECK(check::same((W * V) * X, (product(D, E) * X)));
  CHECK(MatrixXf(W * V + 2.f * (W * V)).isApprox(3.f * product(D, E), 1e-5f));
  const MatrixXf gram = W * qt::transpose(W);
  CHECK(check::same(gram, check::integer_product(W, transposed(W), 40)));
  CHECK(gram.isApprox(D * D.transpose(), 1e-5f));
}

TEST_CASE("mix: fixed sizes and vectors") {
  const qt::tensor<qt::int4_group<16>> W = qt::quantize<qt::int4_group<16>>(check::numbers(3, 16));
  const row_matrix D = check::values(W);
  const Matrix<float, 16, 1> x = check::numbers(16, 1, 1);
  const Vector3f y = W * x;
  CHECK(check::same(y, product(D, x)));
  const Matrix<float, 3, 16> F = qt::dequantize(W);
  CHECK(check::same(F, D));
  const RowVectorXf r = y.transpose() * W;
  CHECK(check::same(r, product(y.transpose().eval(), D)));
  const float dot = x.dot(qt::dequantize(W).row(1).transpose());
  CHECK(dot == doctest::Approx(D.row(1).dot(x)));
}

TEST_CASE("mix: a tensor prints its scheme, its expression prints numbers") {
  const auto W = qt::quantize<qt::int8_per_tensor>(MatrixXf::Constant(1, 2, 0.5f), 0.5f);
  std::ostringstream tensor, numbers;
  tensor << W;
  numbers << qt::dequantize(W);
  CHECK(tensor.str() == "1x2 [int8 x per_tensor / f32]");
  CHECK(numbers.str() == "0.5 0.5");
}
