// Mirrors include/qtensor/expr/assign_parts.hpp: sums with quantized matrices in them, into both orders, as Eigen does.
// SPDX-License-Identifier: BSD-3-Clause
// clang-format off: the counter comes before the headers that call it.
#include "counted.hpp"
// clang-format on

#include <qtensor/expr/operators.hpp>
#include <vector>

#include "check.hpp"

using namespace Eigen;
namespace qt = qtensor;
using check::index_t;
using check::row_matrix;

#define REACHES(statement, result, want) REACHES_KERNEL(assignments, statement, result, want)

namespace {

/// How codes are read along their order: byte by byte as fast as in runs, or faster in runs.
enum class codes { fast, vectors };

/// Destinations across the order of the codes, and along it where runs are faster, reach boxes; the others Eigen's
/// loops.
template <class T>
void check_sums(const T& t, codes kind) {
  const auto w = qt::dequantize(t);
  const row_matrix d = check::values(t);
  const Index rows = t.rows(), cols = t.cols();
  CAPTURE(rows);
  CAPTURE(cols);
  constexpr bool by_rows = std::is_same_v<typename T::order_type, qt::row_major>;
  const auto check_into = [&](auto y, bool reaches) {
    const decltype(y) r = check::numbers(rows, cols, 1), c = check::numbers(rows, cols, 2);
    const auto seen = [&](const auto& want) {
      CHECK(check::same(row_matrix(y), row_matrix(want)));
      CHECK(counted::assignments == (reaches ? 1 : 0));
      counted::assignments = 0;
    };
    counted::assignments = 0;
    y = c + w;
    seen(c + d);
    y = r - w;
    seen(r - d);
    y = (2.f * w - r).cwiseAbs().cwiseProduct(c);
    seen((2.f * d - r).cwiseAbs().cwiseProduct(c));
    y += w.cwiseQuotient(c);
    seen((2.f * d - r).cwiseAbs().cwiseProduct(c) + d.cwiseQuotient(c));
    y = r;
    y -= w + c;
    seen(r - (d + c));
    y = r;
    y = y + w;  // the same element of both sides
    seen(r + d);
    y = r;
    y.array() *= 3.f;
    y.noalias() = y * 0.5f - w;
    seen(3.f * r * 0.5f - d);
  };
  const auto reaches = [&](bool along, Index lines, Index length) {
    return along ? kind != codes::fast && length >= 128 : lines >= 16;
  };
  check_into(MatrixXf(), reaches(!by_rows, cols, rows));
  check_into(row_matrix(), reaches(by_rows, rows, cols));
}

}  // namespace

TEST_CASE("assign_parts: codes of every kind, sizes around boxes, both storage orders") {
  constexpr codes nibbles = Eigen::internal::packet_traits<float>::size < 16 ? codes::vectors : codes::fast;
  for (const auto& [rows, cols] : {std::pair<index_t, index_t>{1, 1},
                                   {3, 700},
                                   {1, 90},
                                   {2, 41},
                                   {8, 65},
                                   {23, 200},
                                   {40, 1100},
                                   {70, 50},
                                   {600, 3},
                                   {33, 512},
                                   {700, 1}}) {
    check_sums(check::tensor_of<qt::mxfp8_e4m3>(rows, cols), codes::vectors);
    check_sums(check::tensor_of<qt::int4_group<32>>(rows, cols), nibbles);
    check_sums(check::tensor_of<qt::int8_per_channel<1>, qt::col_major>(rows, cols), codes::fast);
  }
  for (const index_t few : {1, 5, 37, 80}) {
    check_sums(check::tensor_of<qt::mxfp6_e2m3>(few, 600), codes::vectors);
    check_sums(check::tensor_of<qt::scheme<qt::int2, qt::group<32>>, qt::col_major>(520, few), codes::vectors);
  }
}

namespace {

template <class S>
void check_turned() {
  const index_t rows = 300, cols = 200;
  const auto t = check::tensor_of<S>(rows, cols);
  const auto w = qt::dequantize(t);
  const row_matrix d = check::values(t);
  for (const auto& [row, col] : {std::pair<index_t, index_t>{0, 0}, {1, 1}, {32, 16}, {5, 2}, {128, 3}, {16, 128}})
    for (const auto& [high, wide] : {std::pair<index_t, index_t>{170, 70}, {32, 16}, {45, 33}}) {
      const MatrixXf c = check::numbers(high, wide);
      MatrixXf y;
      REACHES(y = c - w.block(row, col, high, wide), y, c - d.block(row, col, high, wide));
      REACHES(y = c + 3.f * w.block(row, col, high, wide), y, c + 3.f * d.block(row, col, high, wide));
    }
}

}  // namespace

TEST_CASE("assign_parts: codes that are turned, from anywhere in their blocks") {
  check_turned<qt::mxfp8_e4m3>();
  check_turned<qt::fp8_block<128, 128>>();
  check_turned<qt::hif8_block<1, 128>>();
  check_turned<qt::scheme<qt::e4m3, qt::group<32, 0>>>();
  check_turned<qt::scheme<qt::e5m2, qt::per_channel<1>>>();
  check_turned<qt::mxfp4>();
  check_turned<qt::uint4_group<32>>();
}

TEST_CASE("assign_parts: blocks that start inside groups, transposes, several quantized matrices") {
  const auto t = check::tensor_of<qt::mxfp8_e5m2>(60, 700);
  const auto u = check::tensor_of<qt::int8_per_channel<0>, qt::col_major>(60, 700);
  const auto w = qt::dequantize(t);
  const auto v = qt::dequantize(u);
  const row_matrix d = check::values(t), e = check::values(u);
  MatrixXf y;
  row_matrix r;
  REACHES(y = w + v, y, d + e);
  REACHES(r = w - 0.5f * v, r, d - (0.5f * e).eval());
  const MatrixXf c = check::numbers(60, 700);
  REACHES(r = c + v, r, c + e);
  REACHES(y = v.transpose() + w.transpose(), y, e.transpose() + d.transpose());
  REACHES(r = w.block(3, 7, 50, 600) + v.block(9, 90, 50, 600), r, d.block(3, 7, 50, 600) + e.block(9, 90, 50, 600));
  row_matrix big = row_matrix::Constant(64, 705, 7.f);
  REACHES(big.block(2, 3, 60, 700) += w + w, big.block(2, 3, 60, 700), (7.f + (d + d).array()).matrix());
  big.block(2, 3, 60, 700).setConstant(7.f);
  CHECK((big.array() == 7.f).all());
  RowVectorXf line = RowVectorXf::Ones(700);
  REACHES(line = line + w.row(5), line, RowVectorXf::Ones(700) + d.row(5));
}

TEST_CASE("assign_parts: rows and columns of codes as vectors, of any length") {
  for (const index_t n : {1, 40, 245, 261, 300, 513, 1100}) {
    CAPTURE(n);
    const auto t = check::tensor_of<qt::mxfp8_e4m3>(n, n);
    const auto u = check::tensor_of<qt::int4_group<32>, qt::col_major>(n, n);
    const auto w = qt::dequantize(t);
    const auto v = qt::dequantize(u);
    const row_matrix d = check::values(t), e = check::values(u);
    const index_t last = n - 1;
    VectorXf y = w.row(0).transpose() + w.col(last);
    CHECK(check::same(row_matrix(y), row_matrix(d.row(0).transpose() + d.col(last))));
    y -= 2.f * v.col(last) + w.col(0);
    CHECK(check::same(row_matrix(y), row_matrix(d.row(0).transpose() + d.col(last) - (2.f * e.col(last) + d.col(0)))));
    RowVectorXf z = w.row(last) - w.col(0).transpose();
    CHECK(check::same(row_matrix(z), row_matrix(d.row(last) - d.col(0).transpose())));
    MatrixXf m = check::numbers(n, 3);
    m.col(1) = v.row(0).transpose() - w.col(last);
    CHECK(check::same(row_matrix(m.col(1)), row_matrix(e.row(0).transpose() - d.col(last))));
  }
}

TEST_CASE("assign_parts: what has no such memory, products and other functions are Eigen's") {
  const auto t = check::tensor_of<qt::mxfp8_e4m3>(40, 600);
  const auto w = qt::dequantize(t);
  const row_matrix d = check::values(t), r = check::numbers(40, 600);
  std::vector<float> memory(2 * 40 * 600, 5.f);
  Map<row_matrix, 0, InnerStride<2>> strided(memory.data(), 40, 600);
  row_matrix y(40, 600);
  counted::assignments = 0;
  strided = r + w;
  CHECK(check::same(row_matrix(strided), r + d));
  y = (r + w).cwiseMax(0.f);
  CHECK(check::same(y, (r + d).cwiseMax(0.f)));
  Matrix<double, Dynamic, Dynamic, RowMajor> wide = (r + w).cast<double>();
  CHECK(check::same(row_matrix(wide.cast<float>()), r + d));
  CHECK(counted::assignments == 0);
  const MatrixXf a = check::numbers(40, 5, 3), b = check::numbers(5, 600, 4);
  REACHES(y = w + a * b, y, d + a * b);
}
