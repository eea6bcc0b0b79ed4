// Mirrors include/qtensor/expr/expression_source.hpp: any tile of any expression equals the evaluated matrix.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/expr/assign.hpp>
#include <qtensor/expr/expression_source.hpp>

#include "check.hpp"

using namespace Eigen;
namespace qt = qtensor;
using check::index_t;
using check::row_matrix;

namespace {

template <class Order, class Xpr>
void check_order(const Xpr& x, const MatrixXf& rows_of_source) {
  const qt::expression_source<Xpr, Order> source(x);
  static_assert(qt::tile_source<qt::expression_source<Xpr, Order>>);
  const Index rows = rows_of_source.rows(), cols = rows_of_source.cols();
  REQUIRE(source.rows() == rows);
  REQUIRE(source.cols() == cols);
  for (const auto& [row, col] : {std::pair<index_t, index_t>{0, 0}, {1, 0}, {0, 3}, {5, 7}, {rows - 1, cols - 1}}) {
    const index_t height = rows - row, width = cols - col, stride = width + 2;
    if (height <= 0 || width <= 0) continue;
    row_matrix tile = row_matrix::Constant(height, stride, 77.f);
    source.read(row, height, col, width, tile.data(), stride);
    REQUIRE(check::same(tile.leftCols(width), rows_of_source.bottomRightCorner(height, width)));
    REQUIRE((tile.rightCols(2).array() == 77.f).all());
    if (const float* here = source.direct(row, col))
      for (index_t c = 0; c < width; ++c) REQUIRE(here[c] == rows_of_source(row, col + c));
  }
}
template <class Xpr>
void check_expression(const Xpr& x) {
  const MatrixXf want = x;
  check_order<qt::row_major>(x, want);
  check_order<qt::col_major>(x, want.transpose());
}

}  // namespace

TEST_CASE("expression_source: matrices, maps, blocks and transposes of both orders") {
  const MatrixXf a = check::numbers(37, 61);
  const row_matrix r = a;
  check_expression(a);
  check_expression(r);
  check_expression(a.transpose());
  check_expression(r.block(3, 5, 20, 40));
  check_expression(a.block(3, 5, 20, 40));
  const Map<const MatrixXf, 0, Stride<Dynamic, Dynamic>> strided(a.data(), 10, 20, Stride<Dynamic, Dynamic>(61, 2));
  check_expression(strided);
  const Ref<const MatrixXf> ref(a);
  check_expression(ref);
}

TEST_CASE("expression_source: arithmetic, reversals, broadcasts, casts, selections, mixed orders") {
  const MatrixXf a = check::numbers(37, 61), b = check::numbers(37, 61, 1);
  const row_matrix r = b;
  check_expression(a * 2 + b);
  check_expression(r * 2 - r.cwiseAbs());
  check_expression(a + r);
  check_expression(a.reverse());
  check_expression((a.rowwise() - a.row(3)).colwise() + b.col(2));
  check_expression(a.replicate(2, 1));
  check_expression(a.cast<double>().cast<float>());
  check_expression((a.array() < 0.f).select(a, b));
  check_expression((a.array() * b.array()).max(0.25f).matrix());
  check_expression(MatrixXf::Identity(20, 33));
  check_expression(a.col(3));
  check_expression(a.row(3));
}

TEST_CASE("expression_source: products inside an expression, and quantized matrices in it") {
  const MatrixXf p = check::numbers(37, 9), q = check::numbers(9, 61, 1), a = check::numbers(37, 61, 2);
  check_expression(p * q + a);
  check_expression(p * q);
  const auto t = check::tensor_of<qt::mxfp4>(37, 61);
  check_expression(qt::dequantize(t) + a);
  check_expression(a - qt::dequantize(t));
}

TEST_CASE("expression_source: products are evaluated once, other elements once per reading") {
  int calls = 0;
  const auto counting = MatrixXf::NullaryExpr(8, 16, [&](Index i, Index j) {
    ++calls;
    return static_cast<float>(i + j);
  });
  const MatrixXf one = MatrixXf::Ones(16, 40);
  const auto x = counting * one;
  const qt::expression_source<std::remove_const_t<decltype(x)>, qt::row_major> source(x);
  const int after_construction = calls;
  CHECK(after_construction >= 8 * 16);
  float tile[8 * 40];
  source.read(0, 8, 0, 40, tile, 40);
  source.read(0, 8, 0, 40, tile, 40);
  CHECK(calls == after_construction);
  calls = 0;
  const qt::expression_source<std::remove_const_t<decltype(counting)>, qt::row_major> direct(counting);
  direct.read(0, 8, 0, 16, tile, 16);
  CHECK(calls == 8 * 16);
}

TEST_CASE("expression_source: cheap arithmetic may be read twice; random numbers and stateful callables may not") {
  const MatrixXf a = check::numbers(4, 4);
  const auto may = []<class Xpr>(const Xpr&) { return qt::expression_source<Xpr, qt::row_major>::reads_twice; };
  CHECK(may(a));
  CHECK(may(a * 2 + a.cwiseAbs()));
  const auto t = check::tensor_of<qt::mxfp4>(4, 4);
  CHECK(may(qt::dequantize(t) + a));
  CHECK(!may(MatrixXf::Random(4, 4)));
  CHECK(!may(a + MatrixXf::Random(4, 4)));
  CHECK(!may(a.NullaryExpr(4, 4, [](Index, Index) { return 1.f; })));
  CHECK(!may(a.lazyProduct(a)));
}

TEST_CASE("expression_source: source_of decodes quantized matrices in runs, in either order") {
  const auto t = check::tensor_of<qt::int4_group<32>>(20, 40);
  const auto w = qt::dequantize(t);
  const auto rows = qt::expr_detail::source_of<qt::row_major>(w);
  const auto cols = qt::expr_detail::source_of<qt::col_major>(w);
  static_assert(decltype(rows)::reads_rows && !decltype(cols)::reads_rows);
  row_matrix tile(40, 20);
  cols.read(0, 40, 0, 20, tile.data(), 20);
  CHECK(check::same(tile, check::values(t).transpose()));
}

TEST_CASE("expression_source: half and bfloat16 are widened exactly") {
  const MatrixXf a = check::numbers(3, 4);
  const Matrix<half, Dynamic, Dynamic> h = a.cast<half>();
  const Matrix<bfloat16, Dynamic, Dynamic> b = a.cast<bfloat16>();
  qt::expr_detail::with_floats(h, [&](const auto& x) {
    for (Index i = 0; i < 3; ++i)
      for (Index j = 0; j < 4; ++j) CHECK(x.coeff(i, j) == static_cast<float>(h(i, j)));
  });
  qt::expr_detail::with_floats(b, [&](const auto& x) {
    for (Index i = 0; i < 3; ++i)
      for (Index j = 0; j < 4; ++j) CHECK(x.coeff(i, j) == static_cast<float>(b(i, j)));
  });
}

TEST_CASE("with_source: half and bfloat16 in memory are read where they lie, other expressions as floats") {
  const MatrixXf a = check::numbers(3, 4);
  const Matrix<bfloat16, Dynamic, Dynamic> b = a.cast<bfloat16>();
  qt::expr_detail::with_source<qt::col_major>(b, [&](const auto& x) {
    static_assert(std::is_same_v<qt::element_format_of<std::remove_cvref_t<decltype(x)>>, qt::bf16>);
    CHECK(static_cast<const void*>(x.direct(1, 2)) == static_cast<const void*>(&b(2, 1)));
    CHECK(x.row_step() == 3);
  });
  qt::expr_detail::with_source<qt::row_major>(b, [&](const auto& x) {
    CHECK(x.direct(0, 0) == nullptr);
    float element = 0.f;
    x.read(2, 1, 3, 1, &element, 1);
    CHECK(element == static_cast<float>(b(2, 3)));
  });
  qt::expr_detail::with_source<qt::row_major>(b + b, [&](const auto& x) {
    static_assert(std::is_same_v<qt::element_format_of<std::remove_cvref_t<decltype(x)>>, qt::f32>);
    float element = 0.f;
    x.read(2, 1, 3, 1, &element, 1);
    CHECK(element == static_cast<float>(b(2, 3) + b(2, 3)));
  });
}
