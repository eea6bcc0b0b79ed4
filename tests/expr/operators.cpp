// Mirrors include/qtensor/expr/operators.hpp: tensors and views beside Eigen expressions.
// SPDX-License-Identifier: BSD-3-Clause
// clang-format off: the counter comes before the headers that call it.
#include "counted.hpp"
// clang-format on

#include <qtensor/expr/operators.hpp>
#include <qtensor/expr/quantize.hpp>
#include <sstream>

#include "check.hpp"

using namespace Eigen;
namespace qt = qtensor;
using check::product;
using check::row_matrix;

namespace {

template <class A, class B>
concept can_multiply = requires(A&& a, B&& b) {
  static_cast<A&&>(a) * static_cast<B&&>(b);
};
template <class A, class B>
concept can_add = requires(A&& a, B&& b) {
  static_cast<A&&>(a) + static_cast<B&&>(b);
};
template <class A, class B>
concept can_subtract = requires(A&& a, B&& b) {
  static_cast<A&&>(a) - static_cast<B&&>(b);
};
template <class A>
concept can_negate = requires(A&& a) {
  -static_cast<A&&>(a);
};
template <class A>
concept can_dequantize = requires(A&& a) {
  qt::dequantize(static_cast<A&&>(a));
};
template <class A>
concept can_view = requires(A&& a) {
  static_cast<A&&>(a).view();
};

using tensor = qt::tensor<qt::int4_group<32>>;
using view = tensor::view_type;

}  // namespace

TEST_CASE("operators: products of tensors and views with Eigen and with each other, one kernel call each") {
  const tensor W = check::tensor_of<qt::int4_group<32>>(24, 96);
  const auto V = check::tensor_of<qt::int8_per_channel<0>>(96, 10);
  const row_matrix D = check::values(W), E = check::values(V);
  const MatrixXf X = check::numbers(96, 7, 1), Z = check::numbers(8, 96, 3);
  counted::products = 0;
  CHECK(check::same(W * X, product(D, X)));
  CHECK(check::same(W.view() * X, product(D, X)));
  CHECK(check::same(Z * V, product(Z, E)));
  CHECK(check::same(W * V, product(D, E)));
  CHECK(check::same(W.view() * V.view(), product(D, E)));
  CHECK(check::same((2.f * W) * X, product(D, X) * 2.f));
  CHECK(check::same((W * 2) * X, product(D, X) * 2.f));
  CHECK(check::same(-W * X, product(D, X) * -1.f));
  CHECK(check::same(transpose(W) * Z.leftCols(24).transpose(),
                    product(D.transpose().eval(), Z.leftCols(24).transpose().eval())));
  CHECK(check::same(W.view().middle_rows(0, 8) * X, product(D.topRows(8).eval(), X)));
  CHECK(counted::products == 10);
  CHECK(check::same(W * X.col(0).asDiagonal(), D * X.col(0).asDiagonal()));
  CHECK(
      check::same(Z.col(0).head(8).asDiagonal() * W.view().top_rows(8), Z.col(0).head(8).asDiagonal() * D.topRows(8)));
}

TEST_CASE("operators: sums, differences, multiples and signs are elementwise") {
  const tensor W = check::tensor_of<qt::int4_group<32>>(24, 96);
  const auto V = check::tensor_of<qt::mxfp4>(24, 96);
  const row_matrix D = check::values(W), E = check::values(V);
  const MatrixXf A = check::numbers(24, 96, 1);
  CHECK(check::same(W + A, D + A));
  CHECK(check::same(A + W, A + D));
  CHECK(check::same(W - A, D - A));
  CHECK(check::same(A - W, A - D));
  CHECK(check::same(W + V, D + E));
  CHECK(check::same(W - V, D - E));
  CHECK(check::same(3.f * W, 3.f * D));
  CHECK(check::same(W * 3, D * 3.f));
  CHECK(check::same(W / 3.0, D / 3.f));
  CHECK(check::same(-W + A, A - D));
  CHECK(check::same((W + A).cwiseMax(0.f), (D + A).cwiseMax(0.f)));
  CHECK(check::same(A.cwiseProduct(dequantize(W)), A.cwiseProduct(D)));
}

TEST_CASE("operators: += and -= into matrices, blocks, maps and noalias") {
  const tensor W = check::tensor_of<qt::int4_group<32>>(24, 96);
  const row_matrix D = check::values(W);
  const MatrixXf A = check::numbers(24, 96, 1);
  MatrixXf Y = A;
  Y += W;
  CHECK(check::same(Y, A + D));
  Y = A;
  Y -= W.view();
  CHECK(check::same(Y, A - D));
  Y = A;
  Y.noalias() += W;
  Y.noalias() -= W;
  CHECK(check::same(Y, ((A + D).eval() - D)));
  MatrixXf big = MatrixXf::Zero(30, 100);
  big.block(2, 3, 24, 96) += W;
  CHECK(check::same(big.block(2, 3, 24, 96), D));
  row_matrix rows = A;
  Map<row_matrix> map(rows.data(), 24, 96);
  map += W;
  CHECK(check::same(rows, A + D));
}

TEST_CASE("operators: a product with quantize<S>(X) on its right owns it") {
  const tensor W = check::tensor_of<qt::int4_group<32>>(24, 96);
  const MatrixXf X = check::numbers(96, 7, 1);
  using S = qt::int8_per_channel<1>;
  const auto q = qt::quantize<S>(X);
  const row_matrix want = check::integer_product(W, q, 32);
  MatrixXf Y;
  Y.noalias() = W * qt::quantize<S>(X);
  CHECK(check::same(Y, want));
  const auto later = W * qt::quantize<S>(X);  // the tensor lives as long as the expression
  const MatrixXf overwrites = MatrixXf::Constant(100, 100, 3.f);
  CHECK(check::same(later + Y, (want + Y)));
  CHECK(overwrites(0, 0) == 3.f);
}

TEST_CASE("operators: nothing lazy refers to a temporary tensor") {
  static_assert(can_multiply<tensor&, MatrixXf&> && can_multiply<MatrixXf&, tensor&> && can_multiply<view, MatrixXf&>);
  static_assert(can_multiply<tensor&, tensor>);  // the product owns its right operand
  static_assert(!can_multiply<tensor, MatrixXf&> && !can_multiply<const tensor, MatrixXf&> &&
                !can_multiply<MatrixXf&, tensor>);
  static_assert(!can_multiply<tensor, tensor&> && !can_multiply<tensor, tensor> && !can_multiply<tensor, float> &&
                !can_multiply<float, tensor>);
  static_assert(can_add<tensor&, MatrixXf&> && can_add<view, MatrixXf> && can_add<tensor&, view>);
  static_assert(!can_add<tensor, MatrixXf&> && !can_add<MatrixXf&, tensor> && !can_add<tensor, tensor&> &&
                !can_add<tensor&, tensor>);
  static_assert(can_subtract<tensor&, MatrixXf&> && !can_subtract<tensor, MatrixXf&> &&
                !can_subtract<MatrixXf&, tensor>);
  static_assert(can_negate<tensor&> && can_negate<view> && !can_negate<tensor>);
  static_assert(can_dequantize<tensor&> && can_dequantize<const tensor&> && can_dequantize<view> &&
                !can_dequantize<tensor> && !can_dequantize<const tensor>);
  static_assert(can_view<tensor&> && !can_view<tensor>);
  CHECK(can_add<tensor&, MatrixXf&>);
}

TEST_CASE("operators: they leave other types alone") {
  static_assert(!can_multiply<tensor&, std::string&> && !can_add<tensor&, float> && !can_add<std::string&, tensor&>);
  static_assert(!can_multiply<qt::extents<2, 3>, MatrixXf&>);
  const tensor W = check::tensor_of<qt::int4_group<32>>(24, 96);
  std::ostringstream text;
  text << W << ' ' << (dequantize(W).topLeftCorner(1, 1) * 0.f).cwiseAbs();
  CHECK(text.str() == "24x96 [int4 x group<32> / f32] 0");
}

TEST_CASE("operators: sizes that do not fit throw sentences") {
  const tensor W = check::tensor_of<qt::int4_group<32>>(24, 96);
  const MatrixXf X(95, 7);
  CHECK_THROWS_WITH_AS(
      (void)(W * X),
      "qtensor: the left operand of a product has 96 columns, the right one 95 rows; they must be equal.", qt::error);
  CHECK_THROWS_WITH_AS(
      (void)(X * W), "qtensor: the left operand of a product has 7 columns, the right one 24 rows; they must be equal.",
      qt::error);
  CHECK_THROWS_WITH_AS((void)(W + X),
                       "qtensor: a matrix of 24x96 is added to (or subtracted from) one of 95x7; sizes must agree.",
                       qt::error);
  MatrixXf Y = MatrixXf::Ones(3, 3);
  CHECK_THROWS_AS(Y += W, qt::error);
  CHECK((Y.array() == 1.f).all());
  CHECK_THROWS_AS((void)(W * W), qt::error);
}
