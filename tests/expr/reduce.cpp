// Mirrors include/qtensor/expr/reduce.hpp, and Eigen's own reductions of lazy expressions.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/expr/operators.hpp>
#include <qtensor/expr/quantize.hpp>
#include <qtensor/expr/reduce.hpp>

#include "check.hpp"

using namespace qtensor;

namespace {

using i8 = scheme<int8, per_tensor, static_only>;
using i32 = scheme<int32, per_tensor, static_only>;

/// A float fold whose order shows.
const auto leaky = [](float a, float b) { return .5f * a - b; };

}  // namespace

TEST_CASE("reduce: Eigen matrices of both orders, blocks and sums, into Eigen vectors") {
  const Eigen::MatrixXf a = check::numbers(13, 70), b = check::numbers(13, 70, 1);
  const check::row_matrix r = a;
  Eigen::VectorXf rows(13), cols(70);
  float all = 2.f;
  for (index_t i = 0; i < 13; ++i) {
    rows(i) = 2.f;
    for (index_t k = 0; k < 70; ++k) rows(i) = leaky(rows(i), a(i, k));
    for (index_t k = 0; k < 70; ++k) all = leaky(all, a(i, k));
  }
  for (index_t k = 0; k < 70; ++k) {
    cols(k) = 2.f;
    for (index_t i = 0; i < 13; ++i) cols(k) = leaky(cols(k), a(i, k));
  }
  const Eigen::VectorXf by_rows = reduce(a, 2.f, dimensions(1), leaky);
  CHECK(by_rows == rows);
  CHECK(reduce(a, 2.f, dimensions(0), leaky) == cols);
  CHECK(reduce(r, 2.f, dimensions(1), leaky) == rows);
  CHECK(reduce(r, 2.f, dimensions(0), leaky) == cols);
  CHECK(reduce(a, 2.f, dimensions(0, 1), leaky) == all);
  CHECK(reduce(r, 2.f, dimensions(0, 1), leaky) == all);
  const Eigen::MatrixXf sum = a + b;
  CHECK(reduce(a + b, 2.f, dimensions(1), leaky) == reduce(sum, 2.f, dimensions(1), leaky));
  CHECK(reduce(a.middleCols(3, 20), 0.f, dimensions(0), max) == a.middleCols(3, 20).colwise().maxCoeff().transpose());
  CHECK(reduce(a.array(), 0.f, dimensions(0), max) == a.colwise().maxCoeff().cwiseMax(0.f).transpose());
  const Eigen::MatrixXd d = a.cast<double>();
  const Eigen::VectorXd wide = reduce(d, 0.0, dimensions(1), add);
  CHECK(wide(3) == doctest::Approx(d.row(3).sum()));
}

TEST_CASE("reduce: a product inside the expression, a lazy dequantize, mixed inputs, quantized results") {
  const Eigen::MatrixXf a = check::numbers(9, 5), b = check::numbers(5, 40, 1);
  const Eigen::MatrixXf product = a * b;
  CHECK(reduce(a * b, 0.f, dimensions(1), leaky) == reduce(product, 0.f, dimensions(1), leaky));
  const auto w = quantize<i8>(product, .25f);
  const auto lazy = dequantize(w);
  CHECK(reduce(lazy, 0.f, dimensions(1), leaky) == reduce(Eigen::MatrixXf(lazy), 0.f, dimensions(1), leaky));
  CHECK(reduce(2.f * lazy, 0.f, dimensions(0), leaky).size() == 40);
  const tensor<i32, dynamic_extents<1>> q = reduce(product, 0.f, dimensions(1), add, requantize_to<i32>(.5f));
  CHECK(q.scale(0) == .5f);
  // A quantized tensor and a matrix together: a dot product by rows.
  const auto dot = [](const auto& s, float t, const auto& x, float y) { return std::tuple(s, t + x.real() * y); };
  const auto [first, second] = reduce(std::tie(w, product), std::tuple(number_like(w, 0.f), 0.f), dimensions(1), dot);
  CHECK(second.size() == 9);
  CHECK(second(2) == doctest::Approx(Eigen::MatrixXf(lazy).row(2).dot(product.row(2))));
  CHECK(first.size() == 9);
}

TEST_CASE("reduce_window: an Eigen image, into an Eigen matrix of its order") {
  const Eigen::MatrixXf a = check::numbers(8, 9);
  const auto y = reduce_window(a, -infinity, window<2>{.sizes = {2, 3}}, max);
  static_assert(std::is_same_v<std::remove_const_t<decltype(y)>, Eigen::MatrixXf>);
  REQUIRE(y.rows() == 7);
  REQUIRE(y.cols() == 7);
  for (index_t i = 0; i < 7; ++i)
    for (index_t k = 0; k < 7; ++k) CHECK(y(i, k) == a.block(i, k, 2, 3).maxCoeff());
  const auto pooled = reduce_window(a, 0.f, window<2>{.sizes = {2, 2}, .strides = {2, 2}}, add, requantize_to<i8>(.1f));
  CHECK(pooled.extents() == matrix_extents(4, 4));
}

TEST_CASE("Eigen's reductions of lazy expressions give what those of matrices give, and read packets") {
  const Eigen::MatrixXf x = check::numbers(33, 67);
  const auto check_all = [](const auto& w) {
    const auto lazy = dequantize(w);
    const Eigen::MatrixXf m = lazy;
    CHECK(Eigen::VectorXf(lazy.rowwise().sum()).isApprox(Eigen::VectorXf(m.rowwise().sum())));
    CHECK(Eigen::RowVectorXf(lazy.colwise().sum()).isApprox(Eigen::RowVectorXf(m.colwise().sum())));
    CHECK(Eigen::VectorXf(lazy.rowwise().maxCoeff()) == Eigen::VectorXf(m.rowwise().maxCoeff()));
    CHECK(Eigen::RowVectorXf(lazy.colwise().minCoeff()) == Eigen::RowVectorXf(m.colwise().minCoeff()));
    CHECK(lazy.maxCoeff() == m.maxCoeff());
    CHECK(lazy.sum() == doctest::Approx(m.sum()));
    CHECK((2.f * lazy + lazy).rowwise().norm().isApprox((3.f * m).rowwise().norm()));
    // Vectors across the contiguous axis by packets of results, along it by packets of elements.
    using expression = std::remove_const_t<decltype(lazy)>;
    constexpr bool by_rows = expression::IsRowMajor;
    using across = std::conditional_t<by_rows, decltype(lazy.colwise().sum()), decltype(lazy.rowwise().sum())>;
    constexpr int flags = Eigen::internal::evaluator<across>::Flags;
    using line = std::conditional_t<by_rows, typename expression::ConstRowXpr, typename expression::ConstColXpr>;
    using sum_traits = Eigen::internal::redux_traits<Eigen::internal::scalar_sum_op<float, float>,
                                                     Eigen::internal::redux_evaluator<line>>;
    if constexpr (expr_detail::packet_lanes > 1) {
      CHECK((flags & Eigen::PacketAccessBit) != 0);
      CHECK(static_cast<int>(sum_traits::Traversal) != static_cast<int>(Eigen::DefaultTraversal));
    }
  };
  check_all(quantize<i8>(x, .01f));
  check_all(quantize<i8>(check::row_matrix(x), .01f));
  tensor<i8, matrix_extents, col_major> columns = quantize<i8, col_major>(x, .01f);
  check_all(columns);
}
