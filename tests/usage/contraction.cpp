// Roundings are pinned: lazy, stored and evaluated results agree at every level of optimization.
// SPDX-License-Identifier: BSD-3-Clause
//
// Compilers that may contract a * b + c to one rounding would change W + B: each element of W is a product. The
// expected sums are made of values that went through memory.
#include <qtensor/qtensor.hpp>

#include "../expr/check.hpp"
#include "../main/in_full.hpp"

namespace qt = qtensor;
using namespace Eigen;
using check::row_matrix;

namespace {

/// a + sign * b, element by element, in two roundings that no compiler can join.
row_matrix sum_of(const row_matrix& a, const MatrixXf& b, float sign = 1.f) {
  row_matrix y(a.rows(), a.cols());
  for (Index i = 0; i < a.rows(); ++i)
    for (Index j = 0; j < a.cols(); ++j) {
      volatile float left = a(i, j), right = sign * b(i, j);
      y(i, j) = left + right;
    }
  return y;
}

template <class S, class Order>
void check_scheme() {
  CAPTURE(std::string(qt::name<S>));
  const MatrixXf A = check::numbers(23, 101), B = check::numbers(23, 101, 1) * 1.7f;
  const row_matrix R = B;
  const auto W = qt::quantize<S, Order>(A);
  const row_matrix D = check::values(W), sum = sum_of(D, B), difference = sum_of(D, B, -1.f);
  CHECK(check::same(W + B, sum));
  CHECK(check::same(W + R, sum));
  CHECK(check::same(B + W, sum));
  CHECK(check::same(qt::dequantize(W) + B, sum));
  CHECK(check::same(W - R, difference));
  const MatrixXf evaluated = qt::dequantize(W);
  CHECK(check::same(evaluated + B, sum));
  MatrixXf Y = B;
  Y += W;
  CHECK(check::same(Y, sum));
  row_matrix Z = R;
  Z += W;
  CHECK(check::same(Z, sum));
  Z = R;
  Z += 0.3f * W;
  CHECK(check::same(Z, sum_of((0.3f * D).eval(), B)));
  const auto lazily = qt::quantize<S>(W + B);
  CHECK(check::same_tensor(lazily, qt::quantize<S>(sum)));
  const Matrix<float, 4, 4> b = B.topLeftCorner<4, 4>();
  const Matrix<float, 4, 4> small = qt::dequantize(W).template block<4, 4>(0, 0) + b;
  CHECK(check::same(small, sum.topLeftCorner(4, 4)));
}

}  // namespace

TEST_CASE("contraction: W + B in every order of storage, for scales that are not powers of two") {
  check_scheme<qt::int8_per_channel<0>, qt::row_major>();
  check_scheme<qt::uint4_group<16>, qt::row_major>();
  check_scheme<qt::fp8_block<8, 16>, qt::col_major>();
  check::in_full<qt::int8_per_channel<1>, qt::nvfp4>([]<class S>() { check_scheme<S, qt::row_major>(); });
}

TEST_CASE("contraction: W * x + b rounds the product, the factor and the sum separately") {
  const auto W = qt::quantize<qt::int8_per_channel<0>>(check::numbers(23, 101));
  const VectorXf x = check::numbers(101, 1, 1), b = check::numbers(23, 1, 2);
  const row_matrix dots = check::product(check::values(W), x);
  CHECK(check::same(W * x + b, sum_of(dots, b)));
  CHECK(check::same(b + W * x, sum_of(dots, b)));
  VectorXf y = b;
  y.noalias() += 0.3f * (W * x);
  CHECK(check::same(y, sum_of((0.3f * dots).eval(), b)));
}
