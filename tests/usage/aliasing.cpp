// A tensor or matrix on both sides of an assignment.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/qtensor.hpp>

#include "../expr/check.hpp"

namespace qt = qtensor;
using namespace Eigen;
using check::product;
using check::row_matrix;

TEST_CASE("aliasing: a tensor quantized from an expression of itself") {
  const MatrixXf A = check::numbers(40, 70), B = check::numbers(40, 70, 1);
  auto W = qt::quantize<qt::mxfp4>(A);
  const MatrixXf sum = check::values(W) + B;
  W = qt::quantize<qt::mxfp4>(qt::dequantize(W) + B);
  CHECK(check::same_tensor(W, qt::quantize<qt::mxfp4>(sum)));
  auto V = qt::quantize<qt::int8_per_tensor>(A);
  const MatrixXf twice = check::values(V) * 2.f;
  V = qt::quantize<qt::int8_per_tensor>(V * 2);
  CHECK(check::same_tensor(V, qt::quantize<qt::int8_per_tensor>(twice)));
}

TEST_CASE("aliasing: a matrix multiplied into itself") {
  const auto W = qt::quantize<qt::int8_per_channel<0>>(check::numbers(24, 24));
  const row_matrix D = check::values(W);
  VectorXf y = check::numbers(24, 1, 1);
  const VectorXf before = y;
  y = W * y;
  CHECK(check::same(y, product(D, before)));
  y = before;
  y += W * y;
  CHECK(check::same(y, before + product(D, before)));
  MatrixXf Y = check::numbers(24, 24, 2);
  const MatrixXf old = Y;
  Y = Y * W;
  CHECK(check::same(Y, product(old, D)));
  Y = old;
  Y = (W * Y).transpose() + Y;
  CHECK(check::same(Y, product(D, old).transpose() + old));
}

TEST_CASE("aliasing: elementwise expressions of the destination") {
  const auto W = qt::quantize<qt::mxfp8_e4m3>(check::numbers(24, 40));
  const row_matrix D = check::values(W);
  MatrixXf Y = check::numbers(24, 40, 1);
  const MatrixXf old = Y;
  Y = W - Y;
  CHECK(check::same(Y, D - old));
  Y = old;
  Y += W + Y;
  CHECK(check::same(Y, old + (D + old)));
}
