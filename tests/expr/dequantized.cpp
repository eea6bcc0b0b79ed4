// Mirrors include/qtensor/expr/dequantized.hpp: every way Eigen reads the lazy expression gives the reference's values.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/expr/assign.hpp>
#include <qtensor/expr/dequantized.hpp>
#include <qtensor/tensor/view_of.hpp>
#include <string>

#include "../simd/check.hpp"
#include "check.hpp"

using namespace Eigen;
namespace qt = qtensor;
using check::index_t;

namespace {

struct nf4 {
  static constexpr int bits = 4;
  static constexpr bool is_integer = false, is_signed = true;
  static constexpr float min = -1, max = 1;
  static constexpr qt::fixed_string name = "nf4";
  static constexpr float table[16] = {-1,     -.6962f, -.5251f, -.3949f, -.2844f, -.1848f, -.0911f, 0,
                                      .0796f, .1609f,  .2461f,  .3379f,  .4407f,  .5626f,  .7230f,  1};
  static constexpr float decode(std::uint32_t code) { return table[code & 15]; }
};

// Elementwise expressions in the view's own order use packets, in the other order coefficients; blocks start anywhere.
template <class T>
void check_reading(const T& t) {
  CAPTURE(std::string(qt::name<typename T::scheme_type>));
  CAPTURE(t.rows());
  CAPTURE(t.cols());
  const check::row_matrix want = check::values(t), zero = check::row_matrix::Zero(t.rows(), t.cols());
  const MatrixXf zero_columns = zero;
  const auto w = qt::dequantize(t);
  const check::row_matrix rows = w - zero;
  const MatrixXf columns = w - zero_columns;
  CHECK(check::same(rows, want));
  CHECK(check::same(columns, want));
  const Index r = t.rows() / 2, c = t.cols() / 2;
  const check::row_matrix block =
      w.block(r, c, t.rows() - r, t.cols() - c) - zero.block(r, c, t.rows() - r, t.cols() - c);
  CHECK(check::same(block, want.block(r, c, t.rows() - r, t.cols() - c)));
  CHECK(check::same(w.bottomRightCorner(1, 1), want.bottomRightCorner(1, 1)));
}

template <class S>
void check_scheme() {
  for (const index_t n : {1, 7, 32, 51, 77}) {
    check_reading(check::tensor_of<S>(5, n));
    check_reading(check::tensor_of<S, qt::col_major>(n, 3));
  }
}

}  // namespace

TEST_CASE("dequantized: integers of every granularity read as the reference's values") {
  check_scheme<qt::int8_per_tensor>();
  check_scheme<qt::int8_per_channel<0>>();
  check_scheme<qt::int8_per_channel<1>>();
  check_scheme<qt::uint8_per_channel<1>>();
  check_scheme<qt::int4_group<32>>();
  check_scheme<qt::uint4_group<6>>();
}

TEST_CASE("dequantized: float formats, two-dimensional blocks, codes across bytes") {
  check_scheme<qt::mxfp4>();
  check_scheme<qt::fp8_block<4, 8>>();
  check_scheme<qt::mxfp6_e2m3>();
  check_scheme<qt::with<qt::nvfp4, qt::tensor_scale<qt::f32>>>();
}

TEST_CASE("dequantized: a user's format, interleaved blocks, codes from the high end, groups of run-time size") {
  check_scheme<qt::scheme<nf4, qt::group<8>>>();
  check_reading(check::tensor_of<qt::scheme<qt::int8, qt::group<32>, qt::scale_as<qt::f16>, qt::interleaved<>>>(3, 77));
  check_reading(check::tensor_of<qt::scheme<qt::int4, qt::group<32>, qt::planar<qt::high_first>>>(3, 51));
  using run_time = qt::scheme<qt::int4, qt::group<qt::dynamic>>;
  for (const index_t n : {3, 8, 16, 40})
    check_reading(check::tensor_of<run_time>(qt::matrix_extents(4, 50), qt::group<qt::dynamic>(n)));
}

TEST_CASE("dequantized: every e4m3 code, NaN among them, under scales from the smallest to the largest") {
  qt::tensor<qt::scheme<qt::e4m3, qt::per_channel<0>>> t(qt::matrix_extents(4, 256));
  for (index_t i = 0; i < 4 * 256; ++i) t.codes()[static_cast<std::size_t>(i)] = static_cast<std::uint8_t>(i);
  t.scales()[0] = 0x1p-149f;
  t.scales()[1] = 0x1p-120f;
  t.scales()[2] = 1.f / 3;
  t.scales()[3] = 0x1.fp127f;
  check_reading(t);
}

TEST_CASE("dequantized: sizes that the type fixes flow into Eigen's, and no flag promises memory") {
  const auto t = check::tensor_of<qt::mxfp4>(qt::extents<qt::dynamic, 64>(5));
  const auto w = qt::dequantize(t);
  using expression = std::remove_const_t<decltype(w)>;
  static_assert(expression::RowsAtCompileTime == Dynamic && expression::ColsAtCompileTime == 64);
  static_assert(expression::IsRowMajor && std::is_same_v<expression::Scalar, float>);
  static_assert((expression::Flags & (DirectAccessBit | LvalueBit | NestByRefBit)) == 0);
  static_assert(std::is_same_v<internal::ref_selector<expression>::type, const expression>);
  const auto u = check::tensor_of<qt::int8_per_tensor, qt::col_major>(qt::extents<4, 4>());
  static_assert(!decltype(qt::dequantize(u))::IsRowMajor && decltype(qt::dequantize(u))::SizeAtCompileTime == 16);
  const Matrix4f square = qt::dequantize(u).array() + 0.f;
  CHECK(check::same(square, check::values(u)));
  check_reading(t);
  check_reading(u);
}

TEST_CASE("dequantized: vectors, which Eigen reads by one index") {
  const auto row = check::tensor_of<qt::int4_group<32>>(qt::extents<1, 45>());
  const auto column = check::tensor_of<qt::int4_group<32>>(qt::extents<45, 1>());
  const Matrix<float, 1, 45> zero = Matrix<float, 1, 45>::Zero();
  const RowVectorXf r = qt::dequantize(row) + zero, c = qt::dequantize(column).transpose() + zero;
  CHECK(check::same(r, check::values(row)));
  CHECK(check::same(c, check::values(column).transpose()));
}

TEST_CASE("dequantized: reductions, comparisons, casts, reversals and broadcasts see the same numbers") {
  const auto t = check::tensor_of<qt::mxfp8_e4m3>(9, 70);
  const auto w = qt::dequantize(t);
  const check::row_matrix want = check::values(t);
  CHECK(w.maxCoeff() == want.maxCoeff());
  CHECK(w.minCoeff() == want.minCoeff());
  CHECK(w.sum() == doctest::Approx(want.sum()).epsilon(1e-4));
  CHECK((w.array() > 0.f).count() == (want.array() > 0.f).count());
  CHECK(check::same(w.reverse(), want.reverse()));
  CHECK(check::same(w.cast<double>().cast<float>(), want));
  CHECK(check::same(w.rowwise() - want.row(0), want.rowwise() - want.row(0)));
  CHECK(check::same(w.replicate(2, 1), want.replicate(2, 1)));
}

TEST_CASE("dequantized: slices, spans and matrices of higher ranks are views too") {
  auto t = check::tensor_of<qt::int4_group<16>>(12, 64);
  const check::row_matrix want = check::values(t);
  CHECK(check::same(qt::dequantize(t.view().block(3, 16, 5, 33)).eval(), want.block(3, 16, 5, 33)));
  CHECK(check::same(qt::dequantize(t.span()).eval(), want));
  qt::tensor<qt::int8_per_channel<0>, qt::dynamic_extents<3>> cube(qt::extents(2, 3, 20));
  qt::reference::quantize([](const auto& at) { return check::number(at[0] * 3 + at[1], at[2]); }, cube.span());
  CHECK(check::same(qt::dequantize(cube.view().matrix(1)).eval(), check::values(cube.view().matrix(1))));
}

TEST_CASE("dequantized: packets and their parts read no byte beyond a row's last code") {
  for (index_t cols = 1; cols < 70; ++cols) {
    const qt::tensor_shape<qt::mxfp4> shape{qt::matrix_extents(3, cols), {}, {}};
    check::fenced<std::uint8_t> codes(shape.code_units()), scales(shape.scale_count());
    for (index_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<std::uint8_t>(i * 37 + 11);
    for (index_t i = 0; i < scales.size(); ++i) scales[i] = static_cast<std::uint8_t>(120 + i);
    const auto view = qt::view_of<qt::mxfp4>({codes.data(), static_cast<std::size_t>(codes.size())},
                                             {scales.data(), static_cast<std::size_t>(scales.size())}, shape.extents);
    const check::row_matrix got = qt::dequantize(view) - check::row_matrix::Zero(3, cols);
    REQUIRE(check::same(got, check::values(view)));
  }
}
