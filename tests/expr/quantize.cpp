// Mirrors include/qtensor/expr/quantize.hpp: every form of quantize<S>(expression) stores what the reference stores.
// SPDX-License-Identifier: BSD-3-Clause
#include <array>
#include <qtensor/expr/assign.hpp>
#include <qtensor/expr/quantize.hpp>
#include <thread>
#include <vector>

#include "check.hpp"

using namespace Eigen;
namespace qt = qtensor;
using check::index_t;
using check::row_matrix;

namespace {

template <class S, class Order = qt::row_major>
auto by_reference(const MatrixXf& m, const typename S::granularity_type& granularity = {}) {
  qt::tensor<S, qt::matrix_extents, Order> t(qt::matrix_extents(m.rows(), m.cols()), granularity);
  qt::reference::quantize([&](const auto& at) { return m(at[0], at[1]); }, t.span());
  return t;
}

template <class S>
void check_scheme() {
  CAPTURE(std::string(qt::name<S>));
  for (const auto& [rows, cols] : {std::pair<index_t, index_t>{1, 1}, {5, 33}, {67, 301}}) {
    const MatrixXf a = check::numbers(rows, cols), b = check::numbers(rows, cols, 1);
    const row_matrix r = b;
    const MatrixXf sum = a * 2 + b;
    CHECK(check::same_tensor(qt::quantize<S>(a * 2 + b), by_reference<S>(sum)));
    CHECK(check::same_tensor(qt::quantize<S, qt::col_major>(a * 2 + b), by_reference<S, qt::col_major>(sum)));
    CHECK(check::same_tensor(qt::quantize<S>(r), by_reference<S>(b)));
    CHECK(check::same_tensor(qt::quantize<S, qt::col_major>(r), by_reference<S, qt::col_major>(b)));
  }
}

/// Across the order of codes, large enough to be evaluated line by line.
template <class S>
void check_across() {
  CAPTURE(std::string(qt::name<S>));
  const index_t rows = 301, cols = 440;
  static_assert(301 * 440 >= qt::ops::box_floats);
  const MatrixXf a = check::numbers(rows, cols), b = check::numbers(rows, cols, 1), sum = a * 2 + b;
  const row_matrix r = a, s = b;
  CHECK(check::same_tensor(qt::quantize<S>(a * 2 + b), by_reference<S>(sum)));
  CHECK(check::same_tensor(qt::quantize<S, qt::col_major>(r * 2 + s), by_reference<S, qt::col_major>(sum)));
}

}  // namespace

TEST_CASE("quantize: large expressions across the order of codes") {
  check_across<qt::mxfp8_e4m3>();
  check_across<qt::mxfp4>();
  check_across<qt::uint4_group<32>>();
  check_across<qt::int8_per_channel<0>>();
  check_across<qt::int8_per_channel<1>>();
  check_across<qt::int8_per_tensor>();
  check_across<qt::with<qt::nvfp4, qt::tensor_scale<qt::f32>>>();
}

TEST_CASE("quantize: expressions of both orders into tensors of both orders") {
  check_scheme<qt::int8_per_tensor>();
  check_scheme<qt::uint8_per_channel<1>>();
  check_scheme<qt::mxfp4>();
  check_scheme<qt::fp8_block<16, 32>>();
}

TEST_CASE("quantize: vectors and expressions of vectors, as columns and as rows") {
  const auto check_vectors = []<class S>() {
    CAPTURE(std::string(qt::name<S>));
    for (const index_t n : {1, 33, 64, 1000, 5000}) {
      const VectorXf v = check::numbers(n, 1), w = check::numbers(n, 1, 1), sum = v * 2 + w;
      const MatrixXf m = check::numbers(n, 3, 2);
      CHECK(check::same_tensor(qt::quantize<S>(v), by_reference<S>(v)));
      CHECK(check::same_tensor(qt::quantize<S>(v * 2 + w), by_reference<S>(sum)));
      CHECK(check::same_tensor(qt::quantize<S, qt::col_major>(v * 2 + w), by_reference<S, qt::col_major>(sum)));
      CHECK(check::same_tensor(qt::quantize<S>((v * 2 + w).transpose()), by_reference<S>(sum.transpose())));
      CHECK(check::same_tensor(qt::quantize<S, qt::col_major>((v * 2 + w).transpose()),
                               by_reference<S, qt::col_major>(sum.transpose())));
      CHECK(check::same_tensor(qt::quantize<S>(m.col(1)), by_reference<S>(m.col(1))));
      CHECK(check::same_tensor(qt::quantize<S>(m.col(1) * 3 - v), by_reference<S>(m.col(1) * 3 - v)));
      CHECK(check::same_tensor(qt::quantize<S>(m.row(0).transpose()), by_reference<S>(m.row(0).transpose())));
      const auto q = qt::quantize<S>(w);
      CHECK(check::same_tensor(qt::quantize<S>(qt::dequantize(q) + v), by_reference<S>(check::values(q) + v)));
    }
  };
  check_vectors.operator()<qt::int8_per_tensor>();
  check_vectors.operator()<qt::along<0, qt::mxfp8_e4m3>>();
  check_vectors.operator()<qt::along<0, qt::mxfp4>>();
  check_vectors.operator()<qt::uint8_per_channel<1>>();
}

TEST_CASE("quantize: blocks, maps, arrays, products and quantized matrices as sources") {
  using S = qt::int4_group<32>;
  const MatrixXf a = check::numbers(40, 80), p = check::numbers(40, 9, 1), q = check::numbers(9, 80, 2);
  CHECK(check::same_tensor(qt::quantize<S>(a.block(3, 5, 30, 70)), by_reference<S>(a.block(3, 5, 30, 70))));
  CHECK(check::same_tensor(qt::quantize<S>(a.array() + 1.f), by_reference<S>((a.array() + 1.f).matrix())));
  CHECK(check::same_tensor(qt::quantize<S>(a.transpose()), by_reference<S>(a.transpose())));
  CHECK(check::same_tensor(qt::quantize<S>(p * q + a), by_reference<S>(p * q + a)));
  CHECK(check::same_tensor(qt::quantize<qt::int8_per_tensor>(p * q + a), by_reference<qt::int8_per_tensor>(p * q + a)));
  const auto t = check::tensor_of<qt::mxfp8_e4m3>(40, 80);
  const row_matrix d = check::values(t);
  CHECK(check::same_tensor(qt::quantize<S>(qt::dequantize(t)), by_reference<S>(d)));
  CHECK(check::same_tensor(qt::quantize<S>(qt::dequantize(t).transpose()), by_reference<S>(d.transpose())));
  CHECK(check::same_tensor(qt::quantize<S>(qt::dequantize(t).block(3, 5, 30, 70) * 3.f),
                           by_reference<S>(d.block(3, 5, 30, 70) * 3.f)));
  CHECK(check::same_tensor(qt::quantize<S>(qt::dequantize(t) + a), by_reference<S>(d + a)));
  CHECK(check::same_tensor(qt::quantize<S>(Vector4f(1, 2, 3, 4)), by_reference<S>(Vector4f(1, 2, 3, 4))));
}

TEST_CASE("quantize: aliasing is safe, the result is a new tensor") {
  auto t = check::tensor_of<qt::mxfp4>(20, 70);
  const MatrixXf b = check::numbers(20, 70, 3), sum = check::values(t) + b;
  t = qt::quantize<qt::mxfp4>(qt::dequantize(t) + b);
  CHECK(check::same_tensor(t, by_reference<qt::mxfp4>(sum)));
}

TEST_CASE("quantize: callables are called once an element, whatever the rule") {
  int calls = 0;
  const auto counting = [&](Index i, Index j) {
    ++calls;
    return check::number(i, j);
  };
  const auto once = qt::quantize<qt::mxfp4>(MatrixXf::NullaryExpr(20, 70, counting));
  CHECK(calls == 20 * 70);
  CHECK(check::same_tensor(once, by_reference<qt::mxfp4>(check::numbers(20, 70))));
  calls = 0;
  const auto kept = qt::quantize<qt::int8_per_tensor>(MatrixXf::NullaryExpr(20, 70, counting));
  CHECK(calls == 20 * 70);
  CHECK(check::same_tensor(kept, by_reference<qt::int8_per_tensor>(check::numbers(20, 70))));
}

TEST_CASE("quantize: half and bfloat16 sources give what their exact floats give") {
  const MatrixXf a = check::numbers(12, 50);
  const Matrix<half, Dynamic, Dynamic> h = a.cast<half>();
  const Matrix<bfloat16, Dynamic, Dynamic, RowMajor> b = a.cast<bfloat16>();
  CHECK(check::same_tensor(qt::quantize<qt::mxfp8_e5m2>(h), by_reference<qt::mxfp8_e5m2>(h.cast<float>())));
  CHECK(check::same_tensor(qt::quantize<qt::int8_per_tensor>(b), by_reference<qt::int8_per_tensor>(b.cast<float>())));
  // Blocks, transposes and arithmetic of them; the other storage order.
  const auto part = b.block(1, 3, 9, 40);
  CHECK(check::same_tensor(qt::quantize<qt::mxfp4>(part), by_reference<qt::mxfp4>(part.cast<float>())));
  CHECK(check::same_tensor(qt::quantize<qt::int8_per_channel<0>>(b.transpose()),
                           by_reference<qt::int8_per_channel<0>>(b.transpose().cast<float>())));
  CHECK(check::same_tensor(qt::quantize<qt::mxfp4, qt::col_major>(h),
                           qt::quantize<qt::mxfp4, qt::col_major>(h.cast<float>())));
  const auto sum = h + h;
  CHECK(check::same_tensor(qt::quantize<qt::mxfp8_e5m2>(sum), by_reference<qt::mxfp8_e5m2>(sum.cast<float>())));
}

TEST_CASE("quantize: a given scale makes it static; ranges, zero points and Eigen vectors likewise") {
  const MatrixXf a = check::numbers(6, 40);
  const auto expected = [&](auto t, const auto& scales, const auto& zeros) {
    for (index_t i = 0; i < t.rows(); ++i)
      t.scales()[static_cast<std::size_t>(i)] = scales[static_cast<std::size_t>(i)];
    for (index_t i = 0; i < t.rows(); ++i)
      t.zero_points()[static_cast<std::size_t>(i)] = zeros[static_cast<std::size_t>(i)];
    qt::reference::quantize_static([&](const auto& at) { return a(at[0], at[1]); }, t.span());
    return t;
  };
  qt::tensor<qt::int8_per_tensor> one(qt::matrix_extents(6, 40));
  one.scales()[0] = 0.05f;
  qt::reference::quantize_static([&](const auto& at) { return a(at[0], at[1]); }, one.span());
  CHECK(check::same_tensor(qt::quantize<qt::int8_per_tensor>(a, 0.05f), one));
  CHECK(check::same_tensor(qt::quantize<qt::int8_per_tensor>(a, 0.05), one));

  using S = qt::uint8_per_channel<0>;
  const std::vector<float> scales{.01f, .02f, .03f, .04f, .05f, .06f};
  const std::array<std::uint8_t, 6> zeros{0, 10, 128, 200, 255, 3};
  const auto want = expected(qt::tensor<S>(qt::matrix_extents(6, 40)), scales, zeros);
  CHECK(check::same_tensor(qt::quantize<S>(a, scales, zeros), want));
  CHECK(check::same_tensor(
      qt::quantize<S>(a, std::span<const float>(scales), std::vector<int>(zeros.begin(), zeros.end())), want));
  const VectorXf twice = Map<const VectorXf>(scales.data(), 6) * 2.f;
  VectorXi z(6);
  z << 0, 10, 128, 200, 255, 3;
  CHECK(check::same_tensor(qt::quantize<S>(a, twice / 2.f, z), want));
  VectorXf apart(12);
  for (Index i = 0; i < 12; ++i) apart[i] = i % 2 == 0 ? scales[static_cast<std::size_t>(i / 2)] : 99.f;
  CHECK(check::same_tensor(qt::quantize<S>(a, Map<const VectorXf, 0, InnerStride<2>>(apart.data(), 6), z), want));
  const auto uniform = qt::quantize<S>(a, 0.05f, 128);
  for (index_t i = 0; i < 6; ++i) {
    CHECK(uniform.scale(i, 0) == 0.05f);
    CHECK(uniform.zero_point(i, 0) == 128);
  }
}

TEST_CASE("quantize: a matrix of scales belongs to blocks by position, in either storage order") {
  const MatrixXf a = check::numbers(4, 8);
  MatrixXf scales(2, 2);
  scales << .1f, .2f, .3f, .4f;
  using S = qt::with<qt::fp8_block<2, 4>, qt::static_only>;
  const auto rows = qt::quantize<S>(a, scales);
  const auto cols = qt::quantize<S, qt::col_major>(a, scales);
  for (index_t i = 0; i < 4; ++i)
    for (index_t j = 0; j < 8; ++j) {
      CHECK(rows.scale(i, j) == scales(i / 2, j / 4));
      CHECK(cols.scale(i, j) == scales(i / 2, j / 4));
      CHECK(rows.code(i, j) == cols.code(i, j));
    }
}

TEST_CASE("quantize: groups of run-time size, dynamic and static") {
  using S = qt::scheme<qt::int4, qt::group<qt::dynamic>>;
  const MatrixXf a = check::numbers(5, 100);
  const qt::group<qt::dynamic> size(24);
  CHECK(check::same_tensor(qt::quantize<S>(a * 1.f, size), by_reference<S>(a, size)));
  const std::vector<float> scales(5 * 5, 0.25f);
  CHECK(check::same_tensor(qt::quantize<S>(a, scales, size), qt::quantize<S>(a, 0.25f, size)));
  CHECK(qt::quantize<S>(a, scales, size).scale(4, 99) == 0.25f);
}

TEST_CASE("quantize_into: reuses memory, slices included; sizes must agree") {
  const MatrixXf a = check::numbers(20, 64), b = check::numbers(8, 64, 1);
  auto t = qt::quantize<qt::mxfp4>(a);
  qt::quantize_into(t.span().middle_rows(4, 8), 2.f * b);
  MatrixXf want = a;
  want.middleRows(4, 8) = 2.f * b;
  CHECK(check::same_tensor(t, by_reference<qt::mxfp4>(want)));
  qt::quantize_into(t, a);
  CHECK(check::same_tensor(t, by_reference<qt::mxfp4>(a)));
  CHECK_THROWS_WITH_AS(qt::quantize_into(t, b),
                       "qtensor: an expression of 8x64 is quantized into a tensor of 20x64; sizes must agree.",
                       qt::error);
  CHECK(check::same_tensor(t, by_reference<qt::mxfp4>(a)));
}

TEST_CASE("quantize: mxint8, which is a format, too") {
  const MatrixXf a = check::numbers(3, 64);
  CHECK(check::values(qt::quantize<qt::mxint8>(a)) == check::values(by_reference<qt::mxint8>(a)));
  const row_matrix rows = a;
  CHECK(check::values(qt::quantize<qt::mxint8>(qt::source(rows.data(), qt::matrix_extents(3, 64)))) ==
        check::values(by_reference<qt::mxint8>(a)));
}

TEST_CASE("quantize_static_into: expressions under the scales that are there") {
  using scheme = qt::int8_per_tensor;
  const MatrixXf a = check::numbers(6, 40), b = check::numbers(40, 1, 2);
  qt::tensor<scheme> t(qt::matrix_extents(6, 40));
  qt::store_scales(t.span(), 0.25f);
  qt::quantize_static_into(t, 2.f * a);
  CHECK(check::values(t) == check::values(qt::quantize<scheme>(2.f * a, 0.25f)));
  qt::quantize_static_into(t.span().slice<0>(3, 1), b.transpose());
  MatrixXf both = 2.f * a;
  both.row(3) = b.transpose();
  CHECK(check::values(t) == check::values(qt::quantize<scheme>(both, 0.25f)));
  CHECK_THROWS_WITH(qt::quantize_static_into(t, a.transpose()),
                    "qtensor: an expression of 40x6 is quantized into a tensor of 6x40; sizes must agree.");
}

TEST_CASE("quantize_dual_axis: both axes of the original numbers") {
  for (const auto& [rows, cols] : {std::pair<index_t, index_t>{64, 96}, {33, 70}}) {
    const MatrixXf x = check::numbers(rows, cols);
    auto [by_rows, by_cols] = qt::quantize_dual_axis<qt::mxfp8_e4m3>(x * 2.f);
    CHECK(check::same_tensor(by_rows, by_reference<qt::mxfp8_e4m3>(x * 2.f)));
    CHECK(check::same_tensor(by_cols, by_reference<qt::along<0, qt::mxfp8_e4m3>>(x * 2.f)));
  }
}

TEST_CASE("quantize: wrong parameters throw sentences that name value and requirement") {
  const MatrixXf a = check::numbers(6, 40);
  using S = qt::uint8_per_channel<0>;
  CHECK_THROWS_AS(qt::quantize<S>(a, std::vector<float>{1.f, 2.f}, 3), qt::error);
  CHECK_THROWS_AS(qt::quantize<S>(a, 1.f, 256), qt::error);
  CHECK_THROWS_AS(qt::quantize<S>(a, 0.f, 1), qt::error);
  CHECK_THROWS_AS(qt::quantize<qt::int8_per_tensor>(a, -1.f), qt::error);
  CHECK_THROWS_AS(qt::quantize<qt::int8_per_tensor>(a, std::nanf("")), qt::error);
}

TEST_CASE("quantize: empty expressions give empty tensors") {
  CHECK(qt::quantize<qt::mxfp4>(MatrixXf(0, 5)).rows() == 0);
  CHECK(qt::quantize<qt::mxfp4>(MatrixXf(0, 5)).cols() == 5);
  CHECK(qt::quantize<qt::int8_per_tensor>(MatrixXf(5, 0)).size() == 0);
}

TEST_CASE("quantize: an executor changes no bit") {
  const auto threads = [](index_t count, const auto& part) {
    std::vector<std::thread> others;
    for (index_t i = 1; i < count; ++i) others.emplace_back([&part, i] { part(i); });
    part(0);
    for (std::thread& t : others) t.join();
  };
  const MatrixXf a = check::numbers(301, 229), b = check::numbers(301, 229, 1);
  const MatrixXf sum = a * 2 + b;
  for (index_t n : {2, 3}) {
    const auto pool = qt::on(qt::parallel_for(n, threads));
    CHECK(check::same_tensor(qt::quantize<qt::mxfp4>(a * 2 + b, pool), by_reference<qt::mxfp4>(sum)));
    CHECK(check::same_tensor(qt::quantize<qt::int8_per_tensor, qt::col_major>(a * 2 + b, pool),
                             by_reference<qt::int8_per_tensor, qt::col_major>(sum)));
    CHECK(check::same_tensor(qt::quantize<qt::int8_per_tensor>(a, 0.5f, pool),
                             qt::quantize<qt::int8_per_tensor>(a, 0.5f)));
    qt::tensor<qt::mxfp4> out(qt::extents(301, 229));
    qt::quantize_into(out, a * 2 + b, pool);
    CHECK(check::same_tensor(out, by_reference<qt::mxfp4>(sum)));
  }
}
