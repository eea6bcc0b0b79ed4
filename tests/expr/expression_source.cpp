// Mirrors include/qtensor/expr/expression_source.hpp: any tile of any expression equals the evaluated matrix.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/expr/assign.hpp>
#include <qtensor/expr/expression_source.hpp>

#include "tiles.hpp"

using namespace Eigen;
namespace qt = qtensor;
using check::index_t;
using check::row_matrix;

namespace {

template <class Xpr>
void check_expression(const Xpr& x) {
  const MatrixXf want = x;
  check::check_tiles(qt::expression_source<Xpr, qt::row_major>(x), want);
  check::check_tiles(qt::expression_source<Xpr, qt::col_major>(x), want.transpose());
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
  check_expression(a(seqN(1, 12, 3), seqN(0, 20, 3)));
  check_expression(r(seqN(1, 12, 3), seqN(0, 61)) * 2.f);
  const Ref<const MatrixXf> ref(a);
  check_expression(ref);
}

TEST_CASE("expression_source: matrices of more elements than the caches hold") {
  const VectorXf memory = check::numbers(130000, 1);
  const Map<const MatrixXf, 0, OuterStride<>> columns(memory.data(), 80, 120000, OuterStride<>(1));  // they overlap
  REQUIRE(columns.size() >= qt::ops::streaming_floats);
  const qt::expression_source<std::remove_const_t<decltype(columns)>, qt::row_major> by_rows(columns);
  const auto sums = columns * 2 + columns.cwiseAbs();
  const qt::expression_source<std::remove_const_t<decltype(sums)>, qt::row_major> sums_by_rows(sums);
  const auto turned = columns.transpose();
  const qt::expression_source<std::remove_const_t<decltype(turned)>, qt::col_major> by_columns(turned);
  for (const index_t rows : {1, 16, 33, 64, 77})
    for (const index_t cols : {5, 16, 40, 100}) {
      check::check_box(by_rows, columns, 80 - rows, rows, 0, cols);
      check::check_box(by_rows, columns, 3, rows, 120000 - cols, cols);
      check::check_box(sums_by_rows, sums, 3, rows, 120000 - cols, cols);
      check::check_box(by_columns, columns, 3, rows, 17, cols);
    }
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

TEST_CASE("expression_source: fewer rows or columns than a packet holds, with and without gaps between them") {
  const MatrixXf memory = check::numbers(40, 130), other = check::numbers(40, 130, 1);
  for (const index_t few : {1, 2, 3, 4, 5, 7, 8, 12, 15, 16, 17, 19, 31}) {
    CAPTURE(few);
    const MatrixXf a = memory.topRows(few), b = other.topRows(few);
    const row_matrix r = memory.leftCols(few), s = other.leftCols(few);
    check_expression(a);
    check_expression(2.f * a + b);
    check_expression((r - s).cwiseAbs());
    check_expression(a.transpose() + b.transpose());
    check_expression(memory.topRows(few) * 2.f - b);
    check_expression(memory.middleRows(9, few) + other.middleRows(1, few));
    const ArrayXXf random = memory.topRows(few).array() + ArrayXXf::Constant(few, 130, 0.5f);
    check_expression(random.matrix());
  }
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
