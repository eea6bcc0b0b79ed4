// Mirrors include/qtensor/expr/mixed_source.hpp: matrices of both orders in one expression, as Eigen evaluates it.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/expr/assign.hpp>
#include <qtensor/expr/mixed_source.hpp>
#include <qtensor/expr/quantize.hpp>

#include "tiles.hpp"

using namespace Eigen;
namespace qt = qtensor;
using check::row_matrix;

namespace {

template <class Xpr>
void check_expression(const Xpr& x) {
  static_assert(qt::expr_detail::goes_by_parts<Xpr, qt::row_major>);
  const MatrixXf want = x;
  check::check_tiles(qt::mixed_source<Xpr, qt::row_major>(x), want);
  check::check_tiles(qt::mixed_source<Xpr, qt::col_major>(x), want.transpose());
}
template <class Xpr>
constexpr bool mixes(const Xpr&) {
  return qt::expr_detail::goes_by_parts<Xpr, qt::row_major>;
}

}  // namespace

TEST_CASE("mixed_source: any tile of any expression equals the evaluated matrix") {
  for (const auto& [rows, cols] : {std::pair<Index, Index>{37, 61}, {1, 1}, {16, 256}, {40, 300}, {300, 40}}) {
    const MatrixXf a = check::numbers(rows, cols), b = check::numbers(rows, cols, 1);
    const row_matrix r = b, s = a * 3;
    check_expression(a + r);
    check_expression(r - a);
    check_expression(2 * a + r);
    check_expression(a.cwiseProduct(r) - (r / 3.f - b).cwiseAbs());
    check_expression(a.cwiseQuotient(r) + s);
    if constexpr (qt::eigen_generation >= 5) check_expression(-a.cwiseQuotient(r) + s);
    check_expression(a + r.transpose().transpose() + b);
    check_expression(a.block(0, 0, rows, cols) + s);
  }
}

TEST_CASE("mixed_source: zeros of a negative have their sign") {
  const MatrixXf a = MatrixXf::Zero(40, 70);
  const row_matrix r = a;
  check::check_tiles(qt::expr_detail::source_of<qt::row_major>(-(a + r)), MatrixXf::Constant(40, 70, -0.f));
}

TEST_CASE("mixed_source: products, broadcasts and quantized matrices in it") {
  const MatrixXf a = check::numbers(37, 61), p = check::numbers(37, 9), q = check::numbers(9, 61, 1);
  const row_matrix r = check::numbers(37, 61, 2);
  const RowVectorXf v = check::numbers(1, 61, 3);
  check_expression(a.rowwise() + v);
  check_expression(p * q + r);
  const auto t = check::tensor_of<qt::mxfp4>(37, 61);
  check_expression(qt::dequantize(t) + a);
}

TEST_CASE("mixed_source: few rows or columns of codes, and vectors of them") {
  for (const auto& [rows, cols] :
       {std::pair<Index, Index>{1, 600}, {4, 600}, {23, 300}, {64, 130}, {65, 70}, {300, 7}, {600, 1}}) {
    const auto t = check::tensor_of<qt::mxfp6_e2m3>(rows, cols);
    const auto u = check::tensor_of<qt::mxfp8_e4m3, qt::col_major>(rows, cols);
    const auto w = qt::dequantize(t);
    const auto v = qt::dequantize(u);
    const MatrixXf a = check::numbers(rows, cols);
    const row_matrix r = a;
    check_expression(w + a);
    check_expression(v - r);
    check_expression(w + v);
    check_expression(2.f * w - a + v);
  }
  for (const Index n : {1, 245, 261, 300, 512, 513}) {
    const auto t = check::tensor_of<qt::mxfp8_e4m3>(n, n);
    const auto w = qt::dequantize(t);
    const auto down = w.row(0).transpose() + w.col(n - 1);
    const auto along = w.row(0) - w.col(n - 1).transpose();
    check::check_tiles(qt::expr_detail::source_of<qt::row_major>(down), down);
    check::check_tiles(qt::expr_detail::source_of<qt::col_major>(down), down.transpose());
    check::check_tiles(qt::expr_detail::source_of<qt::row_major>(along), along);
    check::check_tiles(qt::expr_detail::source_of<qt::col_major>(along), along.transpose());
  }
}

TEST_CASE("mixed_source: only for matrices of both orders, a few at most, and functions whose packets are exact") {
  const MatrixXf a = check::numbers(4, 5);
  const row_matrix r = a;
  const VectorXf v = a.col(0);
  CHECK(!mixes(a + 2 * a));
  CHECK(!mixes(r - r.cwiseAbs()));
  CHECK(!mixes(v + v));
  CHECK(!mixes(MatrixXf::Constant(4, 5, 1.f) + r));
  CHECK(!mixes(a.array().exp().matrix() + r));
  CHECK(!mixes(a + r.cwiseMax(0.f)));
  CHECK(!mixes(a + r.unaryExpr([](float x) { return x + 1; })));
  CHECK(!mixes((a.array() < 0.f).select(a, 2 * a) + r));
  CHECK(mixes(a + a + a + a + a + a + a + r));
  CHECK(!mixes(a + a + a + a + a + a + a + a + r));
}

TEST_CASE("mixed_source: matrices of more elements than the caches hold") {
  const VectorXf memory = check::numbers(130000, 1);
  const Map<const MatrixXf, 0, OuterStride<>> columns(memory.data(), 80, 120000, OuterStride<>(1));  // they overlap
  const Map<const row_matrix, 0, OuterStride<>> rows(memory.data(), 80, 120000, OuterStride<>(3));
  const auto sum = columns * 2 + rows;
  const qt::mixed_source<std::remove_const_t<decltype(sum)>, qt::row_major> source(sum);
  static_assert(qt::ops::mixes_orders<decltype(source)>);
  for (const Index height : {1, 16, 33, 80})
    for (const Index width : {5, 16, 300}) {
      check::check_box(source, sum, 80 - height, height, 0, width);
      check::check_box(source, sum, 0, height, 120000 - width, width);
    }
}

TEST_CASE("mixed_source: quantize gives the codes of the evaluated matrix") {
  const MatrixXf a = check::numbers(70, 300);
  const row_matrix r = check::numbers(70, 300, 1), sum = 2 * a + r;
  CHECK(check::same(check::values(qt::quantize<qt::mxfp8_e4m3>(2 * a + r)),
                    check::values(qt::quantize<qt::mxfp8_e4m3>(sum))));
}
