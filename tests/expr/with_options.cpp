// Mirrors include/qtensor/expr/with_options.hpp: packed weights and weights with options in Eigen's products.
// SPDX-License-Identifier: BSD-3-Clause
// clang-format off: the counter comes before the headers that call it.
#include "counted.hpp"
// clang-format on

#include <qtensor/expr/quantize.hpp>
#include <qtensor/expr/with_options.hpp>

#include "check.hpp"

using namespace Eigen;
namespace qt = qtensor;
using check::product;
using check::row_matrix;

#define REACHES(statement, result, want) REACHES_KERNEL(products, statement, result, want)

namespace {

struct operands {
  qt::tensor<qt::int4_group<32>> W = check::tensor_of<qt::int4_group<32>>(24, 96);
  decltype(qt::pack(W)) P = qt::pack(W);
  row_matrix D = check::values(W);
  MatrixXf X = check::numbers(96, 7, 1), Y;
  VectorXf x = X.col(0), b = check::numbers(24, 1, 4), y;
};

}  // namespace

TEST_CASE("packed: products have the bits of the tensor's") {
  operands o;
  const row_matrix one = product(o.D, o.x), all = product(o.D, o.X);
  REACHES(o.y = o.P * o.x, o.y, one);
  REACHES(o.Y.noalias() = o.P * o.X, o.Y, all);
  row_matrix rows;
  REACHES(rows = o.P * o.X, rows, all);
  REACHES(o.y = o.P * o.x + o.b, o.y, one + o.b);
  REACHES(o.y.noalias() = o.b - o.P * o.x, o.y, o.b - one);
  REACHES((o.y = o.b, o.y += o.P * o.x), o.y, o.b + one);
  REACHES((o.y = o.b, o.y.noalias() -= o.P * o.x), o.y, o.b - one);
  REACHES((o.y = o.b, o.y.noalias() += 0.3f * (o.P * o.x)), o.y, o.b + one * 0.3f);
  REACHES(o.Y = ((o.P * o.X).colwise() + o.b).cwiseMax(0.f), o.Y, (all.colwise() + o.b).cwiseMax(0.f));
  REACHES(o.y = (2.f * o.P) * o.x, o.y, one * 2.f);
  REACHES(o.y = (o.P * 2) * o.x, o.y, one * 2.f);
  REACHES(o.y = -o.P * o.x, o.y, one * -1.f);
  REACHES(o.Y = o.P * (2.f * o.X + o.X.reverse()), o.Y, product(o.D, (2.f * o.X + o.X.reverse()).eval()));
  MatrixXf big = MatrixXf::Zero(30, 9);
  REACHES(big.block(3, 1, 24, 7).noalias() = o.P * o.X, big.block(3, 1, 24, 7), all);
  REACHES(big.topLeftCorner(24, 7).reverse() = o.P * o.X, big.topLeftCorner(24, 7).reverse(), all);
}

TEST_CASE("packed: from the right, transposed") {
  operands o;
  const row_matrix all = product(o.X.transpose().eval(), o.D.transpose().eval());
  RowVectorXf r;
  REACHES(r = o.x.transpose() * transpose(o.P), r, all.row(0));
  REACHES(o.Y = o.X.transpose() * transpose(o.P), o.Y, all);
  REACHES(o.Y = o.X.transpose() * (-2.f * o.P).transpose(), o.Y, all * -2.f);
  // A matrix of depth x outputs, packed by its columns, is used like its transpose.
  const auto V = check::tensor_of<qt::uint8_per_channel<1>>(96, 24);
  const auto packed = qt::pack<qt::simd::best_arch, qt::depth_axis::rows>(V);
  REACHES(o.Y = o.X.transpose() * transpose(packed), o.Y, product(o.X.transpose().eval(), check::values(V)));
}

TEST_CASE("packed and not: products of integers are exact") {
  const auto W = check::tensor_of<qt::uint8_per_channel<0>>(24, 96);
  const auto P = qt::pack(W);
  const MatrixXf X = check::numbers(96, 7, 1);
  const auto q = qt::quantize<qt::int8_per_channel<1>>(X);
  const row_matrix want = check::integer_product(W, q, 96);
  MatrixXf Y, B = check::numbers(24, 7, 2);
  REACHES(Y.noalias() = W * q, Y, want);
  REACHES(Y.noalias() = P * q, Y, want);
  REACHES(Y = P * (qt::quantize<qt::int8_per_channel<1>>(X)), Y, want);  // the product owns it
  REACHES(Y = B - 2.f * (P * q), Y, B - want * 2.f);
  REACHES(Y = (-W) * (3.f * q), Y, want * -3.f);
  REACHES(Y = transpose(q) * transpose(P), Y, MatrixXf(want.transpose()));
  // A part of the columns is a product of integers, too.
  REACHES(Y = qt::dequantize(W).middleRows(3, 9) * qt::dequantize(q).middleCols(1, 4), Y, want.block(3, 1, 9, 4));
  // Per-channel scales along the sum: floats.
  const auto along = qt::quantize<qt::int8_per_channel<0>>(X);
  REACHES(Y = W * along, Y, product(check::values(W), check::values(along)));
  REACHES(Y = P * along, Y, product(check::values(W), check::values(along)));
}

TEST_CASE("options: the arithmetic that was asked for, in every spelling") {
  operands o;
  const auto q = qt::quantize<qt::int8_per_channel<1>>(o.X);
  const row_matrix want = check::integer_product(o.W, q, 32);
  REACHES(o.Y = o.W.with(qt::int8_activations) * o.X, o.Y, want);
  REACHES(o.Y = o.P.with(qt::int8_activations, qt::on(qt::serial())) * o.X, o.Y, want);
  REACHES(o.Y = o.W.view().with() * o.X, o.Y, product(o.D, o.X));
  REACHES(o.Y = o.X.transpose() * transpose(o.W.with(qt::int8_activations)), o.Y, MatrixXf(want.transpose()));
  const MatrixXf half = o.X.cast<Eigen::half>().cast<float>(), halves = o.D.cast<Eigen::half>().cast<float>();
  REACHES(o.Y = o.W.with(qt::f16_math) * o.X, o.Y, product(halves, half));
  REACHES(o.Y = o.P.with(qt::f16_math) * q, o.Y,
          product(halves, check::values(q).cast<Eigen::half>().cast<float>().eval()));
  // Weights on the right, with the sum along their rows.
  const auto V = check::tensor_of<qt::along<0, qt::int4_group<32>>>(96, 24);
  REACHES(o.Y = o.X.transpose() * V.with(), o.Y, product(o.X.transpose().eval(), check::values(V)));
}

TEST_CASE("packed: no depth is zeros; sizes that do not fit throw") {
  const qt::tensor<qt::int8_per_tensor> flat(qt::matrix_extents(5, 0));
  const auto P = qt::pack(flat);
  MatrixXf y = MatrixXf::Constant(5, 3, 9.f);
  y.noalias() += P * MatrixXf(0, 3);
  CHECK((y.array() == 9.f).all());
  y.noalias() = P * MatrixXf(0, 3);
  CHECK((y.array() == 0.f).all());
  operands o;
  CHECK_THROWS_WITH_AS(
      (void)(o.P * o.X.topRows(95)),
      "qtensor: the left operand of a product has 96 columns, the right one 95 rows; they must be equal.", qt::error);
}
