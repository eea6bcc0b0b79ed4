// Mirrors include/qtensor/expr/boxes.hpp: assignments beyond the last-level cache give the bits of those of few rows.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/expr/operators.hpp>
#include <qtensor/ops/quantize.hpp>

#include "check.hpp"

using namespace Eigen;
namespace qt = qtensor;
using check::index_t;
using check::row_matrix;

namespace {

constexpr index_t cols = 1031;  // no line begins on a cache line
constexpr index_t rows = qt::ops::streaming_floats / cols + 40;

template <class Matrix>
const Matrix& numbers() {
  static const Matrix m = [] {
    Matrix x(rows, cols);
    std::uint32_t state = 7;
    for (Index i = 0; i < x.size(); ++i) {
      state = state * 1664525u + 1013904223u;
      x.data()[i] = static_cast<float>(static_cast<std::int32_t>(state)) * 0x1p-29f;
    }
    return x;
  }();
  return m;
}

template <class S>
auto quantized() {
  return qt::quantize<S>(qt::source(numbers<row_matrix>().data(), qt::matrix_extents(rows, cols)));
}

/// What an assignment gives row by row, where little is assigned; others than some are left out.
template <class Result, class Expression>
bool is_same_by_rows(const Result& y, const Expression& of_rows) {
  bool same = check::same(of_rows(rows - 1), y.row(rows - 1));
  for (index_t row = 0; row < rows; row += 131) same = same && check::same(of_rows(row), y.row(row));
  return same;
}

/// Into a block of a larger matrix, too, whose neighbours stay.
template <class Matrix, class T>
void check_assignments(const T& t) {
  const auto w = qt::dequantize(t);
  const Matrix& a = numbers<Matrix>();
  Matrix y(rows, cols);
  y.noalias() = 0.3f * w;
  CHECK(is_same_by_rows(y, [&](index_t row) -> Matrix { return 0.3f * w.middleRows(row, 1); }));
  y.noalias() = a - w;
  CHECK(is_same_by_rows(y, [&](index_t row) -> Matrix { return a.middleRows(row, 1) - w.middleRows(row, 1); }));
  y = y + 2.f * w;  // the same element of both sides
  CHECK(is_same_by_rows(y, [&](index_t row) -> Matrix {
    const Matrix before = a.middleRows(row, 1) - w.middleRows(row, 1);
    return before + 2.f * w.middleRows(row, 1);
  }));
  y = a;
  y -= 0.3f * w;  // the product is rounded first
  CHECK(is_same_by_rows(y, [&](index_t row) -> Matrix {
    const Matrix product = 0.3f * w.middleRows(row, 1);
    return a.middleRows(row, 1) - product;
  }));
  Matrix big = Matrix::Constant(rows + 2, cols + 3, 7.f);
  big.block(1, 2, rows, cols) = a + w;
  CHECK(is_same_by_rows(big.block(1, 2, rows, cols),
                        [&](index_t row) -> Matrix { return a.middleRows(row, 1) + w.middleRows(row, 1); }));
  big.block(1, 2, rows, cols) = w * 0.7f;
  CHECK(
      is_same_by_rows(big.block(1, 2, rows, cols), [&](index_t row) -> Matrix { return w.middleRows(row, 1) * 0.7f; }));
  big.block(1, 2, rows, cols).setConstant(7.f);
  CHECK((big.array() == 7.f).all());
}

}  // namespace

TEST_CASE("boxes: assignments past the caches, codes that are decoded and turned") {
  const auto t = quantized<qt::mxfp8_e4m3>();
  check_assignments<MatrixXf>(t);
  check_assignments<row_matrix>(t);
}

TEST_CASE("boxes: assignments past the caches, codes that Eigen reads") {
  const auto t = quantized<qt::int8_per_channel<0>>();
  check_assignments<MatrixXf>(t);
  check_assignments<row_matrix>(t);
}

TEST_CASE("boxes: assignments past the caches, codes of 4 bits") {
  check_assignments<MatrixXf>(quantized<qt::mxfp4>());
}

TEST_CASE("boxes: assignments past the caches, a matrix across") {
  const auto t = quantized<qt::mxfp4>();
  const auto w = qt::dequantize(t);
  const MatrixXf& a = numbers<MatrixXf>();
  row_matrix y(rows, cols);
  y.noalias() = a + w;
  CHECK(is_same_by_rows(
      y, [&](index_t row) -> row_matrix { return row_matrix(a.middleRows(row, 1)) + w.middleRows(row, 1); }));
}
