// Mirrors include/qtensor/expr/matmul.hpp: results of every kind, epilogues, destinations, wrong use.
// SPDX-License-Identifier: BSD-3-Clause
#include <mutex>
#include <qtensor/expr/matmul.hpp>
#include <qtensor/expr/quantize.hpp>
#include <thread>

#include "check.hpp"

using namespace Eigen;
namespace qt = qtensor;
using check::product;
using check::row_matrix;

namespace {

using weights = qt::tensor<qt::int8_per_channel<0>>;
using along = qt::along<0, qt::mxfp8_e4m3>;

// 70 outputs: whole tiles and a part of one, on every architecture.
struct operands {
  weights W = check::tensor_of<qt::int8_per_channel<0>>(70, 40);
  MatrixXf X = check::numbers(40, 13, 1);
  VectorXf b = check::numbers(70, 1, 2);
  row_matrix want = product(check::values(W), X);
  MatrixXf after = (want.colwise() + b).cwiseMax(0.f);
  auto epilogue() const {
    return [this](auto acc, qt::tile t) { return (acc.colwise() + b.segment(t.row, t.rows)).cwiseMax(0.f); };
  }
};
auto threads(qt::index_t n) {
  return qt::parallel_for(n, [](qt::index_t count, const auto& part) {
    std::vector<std::thread> all;
    for (qt::index_t i = 0; i < count; ++i) all.emplace_back([&part, i] { part(i); });
    for (auto& t : all) t.join();
  });
}

}  // namespace

TEST_CASE("matmul: floats, from tensors and packed weights, matrices and vectors") {
  const operands o;
  const auto P = qt::pack(o.W);
  static_assert(std::is_same_v<decltype(qt::matmul(o.W, o.X)), MatrixXf>);
  static_assert(std::is_same_v<decltype(qt::matmul(o.W, o.b)), VectorXf>);
  CHECK(check::same(qt::matmul(o.W, o.X), o.want));
  CHECK(check::same(qt::matmul(P, o.X, qt::on(threads(3))), o.want));
  CHECK(check::same(qt::matmul(P, o.X.col(2)), o.want.col(2)));
  CHECK(check::same(qt::matmul(o.W, o.X.reverse()), product(check::values(o.W), o.X.reverse().eval())));
  const Matrix<Eigen::half, Dynamic, Dynamic> half = o.X.cast<Eigen::half>();
  CHECK(check::same(qt::matmul(P, half), product(check::values(o.W), half.cast<float>().eval())));
  const Matrix<Eigen::bfloat16, Dynamic, Dynamic, Eigen::RowMajor> wide = [&] {
    Matrix<Eigen::bfloat16, Dynamic, Dynamic, Eigen::RowMajor> m(44, 17);
    m.setConstant(Eigen::bfloat16(1e30f));
    m.block(3, 2, 40, 13) = o.X.cast<Eigen::bfloat16>();
    return m;
  }();
  const auto narrow = wide.block(3, 2, 40, 13);
  const MatrixXf narrowed = narrow.cast<float>();
  CHECK(check::same(qt::matmul(P, narrow), product(check::values(o.W), narrowed)));
  CHECK(check::same(qt::matmul(o.W, narrow, qt::on(threads(3))), product(check::values(o.W), narrowed)));
  CHECK(check::same(qt::matmul(P, narrow.col(4)), product(check::values(o.W), narrowed.col(4).eval())));
  CHECK(check::same(qt::matmul(P, half, qt::int8_activations),
                    qt::matmul(P, half.cast<float>().eval(), qt::int8_activations)));
  CHECK(check::same(qt::matmul(P, narrow, qt::int8_activations), qt::matmul(P, narrowed, qt::int8_activations)));
  CHECK(check::same(qt::matmul(P, narrow, qt::f16_math), qt::matmul(P, narrowed, qt::f16_math)));
  const auto q = qt::quantize<qt::int8_per_channel<1>>(o.X);
  CHECK(check::same(qt::matmul(P, q), check::integer_product(o.W, q, 40)));
  CHECK(check::same(qt::matmul(o.W, o.X, qt::int8_activations), check::integer_product(o.W, q, 40)));
}

TEST_CASE("matmul: results of 16 bits") {
  const operands o;
  const auto bf16 = qt::matmul<qt::bf16>(o.W, o.X);
  const auto half = qt::matmul<qt::f16>(o.W, o.X, o.epilogue());
  static_assert(std::is_same_v<typename decltype(bf16)::Scalar, Eigen::bfloat16>);
  for (Index i = 0; i < 70; ++i)
    for (Index j = 0; j < 13; ++j) {
      REQUIRE(Eigen::numext::bit_cast<std::uint16_t>(bf16(i, j)) == qt::encode<qt::bf16>(o.want(i, j)));
      REQUIRE(Eigen::numext::bit_cast<std::uint16_t>(half(i, j)) == qt::encode<qt::f16>(o.after(i, j)));
    }
}

TEST_CASE("matmul: epilogues see every element once, where it is") {
  const operands o;
  const auto P = qt::pack(o.W);
  CHECK(check::same(qt::matmul(o.W, o.X, o.epilogue()), o.after));
  CHECK(check::same(qt::matmul(P, o.X, o.epilogue(), qt::on(threads(2))), o.after));
  const MatrixXf other = check::numbers(70, 13, 3);
  CHECK(check::same(qt::matmul(P, o.X,
                               [&](auto acc, qt::tile t) {
                                 return (acc.array() * other.block(t.row, t.col, t.rows, t.cols).array()).square();
                               }),
                    (o.want.array() * other.array()).square().matrix()));
  // Elements of a tile may go anywhere in it: it is not changed while it is read.
  std::mutex lock;
  MatrixXf times = MatrixXf::Zero(70, 13), turned(70, 13);
  turned = qt::matmul(P, o.X, [&](auto acc, qt::tile t) {
    const std::lock_guard hold(lock);
    times.block(t.row, t.col, t.rows, t.cols).array() += 1.f;
    CHECK(check::same(acc, o.want.block(t.row, t.col, t.rows, t.cols)));
    return acc.rowwise().reverse();
  });
  CHECK((times.array() == 1.f).all());
  CHECK(turned.sum() == doctest::Approx(o.want.sum()));
  const MatrixXf empty = qt::matmul(o.W, MatrixXf(40, 0), o.epilogue());
  CHECK(empty.rows() == 70);
  CHECK(empty.cols() == 0);
}

TEST_CASE("matmul: stages") {
  const operands o;
  const std::vector<float> bias(o.b.data(), o.b.data() + 70);
  const auto stages = qt::stages(qt::stage::bias(bias), qt::stage::relu());
  CHECK(check::same(qt::matmul(o.W, o.X, stages), o.after));
  const auto Q = qt::matmul<along>(qt::pack(o.W), o.X, stages);
  CHECK(check::same_tensor(Q, qt::quantize<along, qt::col_major>(o.after)));
}

TEST_CASE("matmul: quantized results, tile by tile or in a second pass") {
  const operands o;
  const auto P = qt::pack(o.W);
  const auto f = o.epilogue();
  const auto Q = qt::matmul<along>(P, o.X, f);
  static_assert(std::is_same_v<typename decltype(Q)::order_type, qt::col_major>);
  CHECK(check::same_tensor(Q, qt::quantize<along, qt::col_major>(o.after)));
  CHECK(check::same_tensor(qt::matmul<along, qt::row_major>(P, o.X, f), qt::quantize<along>(o.after)));
  using rows = qt::int8_per_channel<1>;  // a scale for each activation, over all outputs
  CHECK(check::same_tensor(qt::matmul<rows>(P, o.X, f, qt::on(threads(2))), qt::quantize<rows>(o.after)));
  CHECK(check::same_tensor(qt::matmul<qt::mxfp4>(P, o.X), qt::quantize<qt::mxfp4>(o.want)));
  CHECK(check::same_tensor(qt::matmul<qt::int8_per_tensor>(o.W, o.X), qt::quantize<qt::int8_per_tensor>(o.want)));
}

TEST_CASE("matmul: scales of quantized results that lie over several tiles of few activations") {
  const auto x = check::numbers(4096, 5, 1);
  for (const qt::index_t outputs : {12, 24, 48, 64})
    for (const qt::index_t depth : {64, 4096}) {
      const auto W = check::tensor_of<qt::mxfp4>(outputs, depth);
      for (const qt::index_t count : {1, 2, 3, 4, 5}) {
        INFO(outputs, " x ", depth, " times ", count);
        const auto X = x.topLeftCorner(depth, count);
        using line = qt::int8_per_channel<1>;
        CHECK(check::same_tensor(qt::matmul<line>(W, X), qt::quantize<line>(qt::matmul(W, X))));
        CHECK(check::same_tensor(qt::matmul<line>(W, X, on(threads(2))), qt::quantize<line>(qt::matmul(W, X))));
        CHECK(check::same_tensor(qt::matmul<along>(W, X), qt::quantize<along>(qt::matmul(W, X))));
      }
    }
}

TEST_CASE("matmul: static results") {
  const operands o;
  const auto P = qt::pack(o.W);
  using S = qt::uint8_per_tensor;
  const auto want = qt::quantize<S>(o.after, 0.05f, 10);
  CHECK(check::same_tensor(qt::matmul<S>(P, o.X, qt::with_scales(0.05f, 10), o.epilogue()), want));
  CHECK(check::same_tensor(qt::matmul<S, qt::row_major>(P, o.X, o.epilogue(), qt::with_scales(0.05f, 10)), want));
}

TEST_CASE("matmul: into what is there") {
  const operands o;
  const auto P = qt::pack(o.W);
  MatrixXf big = MatrixXf::Zero(80, 20);
  qt::matmul(P, o.X, qt::into(big.block(3, 2, 70, 13)));
  CHECK(check::same(big.block(3, 2, 70, 13), o.want));
  row_matrix rows(70, 13);
  qt::matmul(o.W, o.X, o.epilogue(), qt::into(rows));
  CHECK(check::same(rows, o.after));
  Matrix<Eigen::bfloat16, Dynamic, Dynamic> narrow(70, 13);
  qt::matmul(P, o.X, qt::into(narrow));
  CHECK(check::same(narrow.cast<float>(), qt::matmul<qt::bf16>(P, o.X).cast<float>()));
  qt::tensor<along, qt::matrix_extents, qt::col_major> q(qt::matrix_extents(70, 13));
  qt::matmul(P, o.X, qt::into(q), o.epilogue());
  CHECK(check::same_tensor(q, qt::quantize<along, qt::col_major>(o.after)));
  qt::tensor<qt::int8_per_tensor, qt::matrix_extents, qt::col_major> fixed(qt::matrix_extents(70, 13));
  qt::store_scales(fixed.span(), 0.25f);
  qt::matmul(P, o.X, qt::into(fixed.span()), qt::with_scales());  // those that are stored
  CHECK(check::same_tensor(fixed, qt::quantize<qt::int8_per_tensor, qt::col_major>(o.want, 0.25f)));
}

TEST_CASE("matmul: bases of expressions, as functions of any expression take them") {
  const operands o;
  const auto product_of = [&](const auto& base) { return qt::matmul(o.W, base); };
  CHECK(product_of(static_cast<const MatrixBase<MatrixXf>&>(o.X)) == o.want);
  CHECK(product_of(static_cast<const DenseBase<MatrixXf>&>(o.X)) == o.want);
  MatrixXf y(70, 13);
  qt::matmul(o.W, o.X, qt::into(static_cast<MatrixBase<MatrixXf>&>(y)));
  CHECK(y == o.want);
  Matrix<bfloat16, Dynamic, Dynamic> h(70, 13);
  qt::matmul(o.W, o.X, qt::into(static_cast<MatrixBase<decltype(h)>&>(h)));
  CHECK(h == o.want.cast<bfloat16>());
}

TEST_CASE("matmul: what does not fit throws and writes nothing") {
  const operands o;
  CHECK_THROWS_WITH_AS(
      qt::matmul(o.W, o.X.topRows(39)),
      "qtensor: the left operand of a product has 40 columns, the right one 39 rows; they must be equal.", qt::error);
  MatrixXf y = MatrixXf::Constant(70, 12, 9.f);
  CHECK_THROWS_WITH_AS(qt::matmul(o.W, o.X, qt::into(y)),
                       "qtensor: a product of 70x13 elements does not fit a destination of 70x12.", qt::error);
  CHECK((y.array() == 9.f).all());
  qt::tensor<along> q(qt::matrix_extents(70, 12));
  CHECK_THROWS_AS(qt::matmul(o.W, o.X, qt::into(q)), qt::error);
  CHECK_THROWS_WITH_AS(qt::matmul(o.W, o.X.leftCols(2), [](auto acc, qt::tile) { return acc.leftCols(1); }),
                       doctest::Contains("1 of a tile of"), qt::error);
  const std::vector<float> bias(69);
  CHECK_THROWS_AS(qt::matmul(o.W, o.X, qt::stages(qt::stage::bias(bias))), qt::error);
  CHECK_THROWS_AS(qt::matmul<qt::int8_per_tensor>(o.W, o.X, qt::with_scales(0.f)), qt::error);
}
