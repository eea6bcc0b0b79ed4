// Mirrors include/qtensor/expr/assign.hpp: destinations of both orders, with strides, fixed, too small; =, += and -=.
// SPDX-License-Identifier: BSD-3-Clause
// clang-format off: the counter comes before the headers that call it.
#include "counted.hpp"
// clang-format on

#include <qtensor/expr/assign.hpp>
#include <vector>

#include "check.hpp"

using namespace Eigen;
namespace qt = qtensor;
using check::index_t;
using check::row_matrix;

#define REACHES(statement, result, want) REACHES_KERNEL(assignments, statement, result, want)

namespace {

template <class T>
void check_destinations(const T& t) {
  const auto w = qt::dequantize(t);
  const row_matrix d = check::values(t);
  const Index rows = t.rows(), cols = t.cols();
  CAPTURE(rows);
  CAPTURE(cols);
  MatrixXf y, a = check::numbers(rows, cols, 1);
  row_matrix r;
  REACHES(y = w, y, d);
  REACHES(r = w, r, d);
  REACHES(y.noalias() = w, y, d);
  REACHES(y = w.transpose(), y, d.transpose());
  REACHES(r = w.transpose(), r, d.transpose());
  REACHES(y = 0.3f * w, y, 0.3f * d);
  REACHES(r = w * -0.3f, r, -0.3f * d);
  REACHES((y = a, y += w), y, a + d);
  REACHES((r = a, r += w), r, a + d);
  REACHES((y = a, y -= w), y, a - d);
  REACHES((r = a, r -= 3.f * w), r, a - (3.f * d).eval());
  REACHES((y = a, y += 0.3f * w), y, a + (0.3f * d).eval());

  // Blocks of a larger matrix: the neighbours stay.
  MatrixXf big = MatrixXf::Constant(rows + 5, cols + 4, 7.f);
  REACHES(big.block(3, 2, rows, cols) = w, big.block(3, 2, rows, cols), d);
  big.block(3, 2, rows, cols).setConstant(7.f);
  CHECK((big.array() == 7.f).all());
  row_matrix big_rows = row_matrix::Constant(rows + 5, cols + 4, 7.f);
  REACHES(big_rows.block(3, 2, rows, cols) += w, big_rows.block(3, 2, rows, cols), (d.array() + 7.f).matrix());
  big_rows.block(3, 2, rows, cols).setConstant(7.f);
  CHECK((big_rows.array() == 7.f).all());

  std::vector<float> memory(static_cast<std::size_t>(rows * 3 * (cols + 1) * 2), 5.f);
  using strides = Stride<Dynamic, Dynamic>;
  Map<MatrixXf, 0, strides> strided(memory.data(), rows, cols, strides(rows * 3, 2));
  REACHES(strided = w, strided, d);
  REACHES(strided -= w, strided, d - d);

  MatrixXf apart = MatrixXf::Constant(2 * rows, cols, 7.f);
  apart(seqN(0, rows, 2), seqN(0, cols)) = w;
  CHECK(check::same(row_matrix(apart(seqN(0, rows, 2), seqN(0, cols))), d));
  CHECK((apart(seqN(1, rows, 2), seqN(0, cols)).array() == 7.f).all());
}

}  // namespace

TEST_CASE("assign: every size around registers, tiles and cache lines, in both storage orders") {
  for (const auto& [rows, cols] :
       {std::pair<index_t, index_t>{1, 1}, {3, 70}, {1, 90}, {2, 700}, {16, 16}, {17, 33}, {40, 300}, {65, 5}}) {
    check_destinations(check::tensor_of<qt::int4_group<32>>(rows, cols));
    check_destinations(check::tensor_of<qt::int8_per_channel<1>, qt::col_major>(rows, cols));
  }
}

TEST_CASE("assign: matrices of one column and of one row, and parts of them") {
  const auto check_parts = [](const auto& t) {
    check_destinations(t);
    const auto w = qt::dequantize(t);
    const row_matrix d = check::values(t);
    const index_t rows = std::min<index_t>(t.rows(), 41), cols = std::min<index_t>(t.cols(), 41);
    const index_t row = t.rows() > rows ? 3 : 0, col = t.cols() > cols ? 3 : 0;
    const row_matrix part = d.block(row, col, rows, cols), some = 0.3f * part, sum = part + some;
    MatrixXf y;
    REACHES(y = w.block(row, col, rows, cols), y, part);
    REACHES(y += 0.3f * w.block(row, col, rows, cols), y, sum);
    REACHES(y.transpose() -= w.block(row, col, rows, cols).transpose(), y, sum - part);
  };
  for (const index_t n : {2, 70, 300, 5000}) {
    check_parts(check::tensor_of<qt::int8_per_tensor>(n, 1));
    check_parts(check::tensor_of<qt::along<0, qt::mxfp8_e4m3>>(n, 1));
    check_parts(check::tensor_of<qt::int4_group<32>>(n, 1));
    check_parts(check::tensor_of<qt::uint8_per_channel<0>, qt::col_major>(1, n));
  }
}

TEST_CASE("assign: several tiles, two levels of scales") {
  check_destinations(check::tensor_of<qt::int4_group<32>>(150, 137));
  check_destinations(check::tensor_of<qt::with<qt::nvfp4, qt::tensor_scale<qt::f32>>>(70, 200));
}

TEST_CASE("assign: blocks of a quantized matrix that start inside groups and bytes") {
  const auto t = check::tensor_of<qt::mxfp4>(40, 90);
  const auto w = qt::dequantize(t);
  const row_matrix d = check::values(t);
  MatrixXf y;
  row_matrix r;
  REACHES(y = w.block(3, 7, 30, 61), y, d.block(3, 7, 30, 61));
  REACHES(r = w.block(3, 7, 30, 61), r, d.block(3, 7, 30, 61));
  REACHES(y = w.block(3, 7, 30, 61).transpose(), y, d.block(3, 7, 30, 61).transpose());
  REACHES(y = w.block(3, 32, 30, 57), y, d.block(3, 32, 30, 57));
  REACHES(r = w.block(3, 32, 30, 57), r, d.block(3, 32, 30, 57));
  REACHES(r += w.block(3, 7, 30, 57), r, d.block(3, 32, 30, 57) + d.block(3, 7, 30, 57));
  REACHES(y += w.block(3, 7, 30, 57), y, d.block(3, 32, 30, 57) + d.block(3, 7, 30, 57));
  REACHES(y = w.topRows(3), y, d.topRows(3));
  VectorXf v;
  REACHES(v = w.col(31), v, d.col(31));
  REACHES(v = w.row(5), v, d.row(5).transpose());
}

TEST_CASE("assign: fixed sizes, references, arrays and construction") {
  const auto t = check::tensor_of<qt::int8_per_channel<0>>(qt::extents<6, 10>());
  const auto w = qt::dequantize(t);
  const row_matrix d = check::values(t);
  Matrix<float, 6, 10> fixed;
  REACHES(fixed = w, fixed, d);
  Matrix<float, 6, 10, RowMajor> fixed_rows;
  REACHES(fixed_rows = w, fixed_rows, d);
  MatrixXf memory(6, 10);
  Ref<MatrixXf> ref(memory);
  REACHES(ref = w, ref, d);
  counted::assignments = 0;
  const MatrixXf constructed = w;
  CHECK(counted::assignments == 1);
  CHECK(check::same(constructed, d));
  const Ref<const MatrixXf> evaluated = w;
  CHECK(check::same(evaluated, d));
  CHECK(check::same(w.eval(), d));
}

TEST_CASE("assign: what has no memory, or no such kernel, is ordinary Eigen") {
  const auto t = check::tensor_of<qt::int8_per_channel<0>>(6, 10);
  const auto w = qt::dequantize(t);
  const row_matrix d = check::values(t);
  MatrixXf y(6, 10);
  counted::assignments = 0;
  y.reverse() = w;
  CHECK(check::same(y.reverse(), d));
  y = d;
  y.array() *= w.array();
  CHECK(check::same(y, d.cwiseProduct(d)));
  CHECK(counted::assignments == 0);
}

TEST_CASE("assign: a destination that cannot change its size throws and stays as it is") {
  const auto t = check::tensor_of<qt::int8_per_channel<0>>(6, 10);
  const auto w = qt::dequantize(t);
  MatrixXf memory = MatrixXf::Constant(6, 9, 3.f), empty;
  using internal::add_assign_op;
  using internal::assign_op;
  using to_map = internal::Assignment<Map<MatrixXf>, std::remove_const_t<decltype(w)>, assign_op<float, float>,
                                      qt::QuantizedToDense>;
  using to_sum = internal::Assignment<MatrixXf, std::remove_const_t<decltype(w)>, add_assign_op<float, float>,
                                      qt::QuantizedToDense>;
  Map<MatrixXf> map(memory.data(), 6, 9);
  CHECK_THROWS_WITH_AS(
      to_map::run(map, w, {}),
      "qtensor: a quantized matrix of 6x10 is assigned to a destination of 6x9, which cannot change its size.",
      qt::error);
  CHECK_THROWS_WITH_AS(to_sum::run(memory, w, {}),
                       "qtensor: a quantized matrix of 6x10 does not fit a destination of 6x9.", qt::error);
  CHECK((memory.array() == 3.f).all());
}

TEST_CASE("assign: empty matrices") {
  const qt::tensor<qt::int4_group<32>> none(qt::matrix_extents(0, 5)), thin(qt::matrix_extents(4, 0));
  MatrixXf y = MatrixXf::Ones(3, 3);
  y = qt::dequantize(none);
  CHECK(y.rows() == 0);
  CHECK(y.cols() == 5);
  y = qt::dequantize(thin).transpose();
  CHECK(y.rows() == 0);
  CHECK(y.cols() == 4);
}
