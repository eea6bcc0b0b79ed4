// Mirrors include/qtensor/compat/onnx_products.hpp.
// SPDX-License-Identifier: BSD-3-Clause
#include <cmath>
#include <limits>
#include <qtensor/compat/onnx_products.hpp>
#include <vector>

#include "../simd/check.hpp"

namespace onnx = qtensor::compat::onnx;
using qtensor::index_t;

namespace {

using dims = std::vector<index_t>;
template <class T>
std::span<const T> view(const std::vector<T>& v) {
  return v;
}
template <class T>
std::vector<T> some_codes(index_t n) {
  std::vector<T> out(static_cast<std::size_t>(n));
  for (T& c : out) c = static_cast<T>(check::random_bits()());
  return out;
}
std::vector<float> some_scales(index_t n) {
  std::vector<float> out(static_cast<std::size_t>(n));
  for (float& s : out) s = static_cast<float>(1 + check::random_below(4096)) * 0x1p-14f;
  return out;
}

/// Both operators by definition, one element after the other.
template <class A, class B, class Y>
void check_products(const dims& a_dims, const dims& b_dims, bool row_parameters, bool column_parameters,
                    float y_scale) {
  const qtensor::product_batches batches(a_dims, b_dims);
  const index_t m = batches.m, k = batches.k, n = batches.n, rows = row_parameters ? m : 1,
                columns = column_parameters ? n : 1;
  CAPTURE(batches.count());
  CAPTURE(m);
  CAPTURE(k);
  CAPTURE(n);
  const auto a = some_codes<A>(qtensor::element_count(a_dims)), a_zeros = some_codes<A>(rows);
  const auto b = some_codes<B>(qtensor::element_count(b_dims)), b_zeros = some_codes<B>(columns);
  const auto a_scales = some_scales(rows), b_scales = some_scales(columns);
  const auto y_zero = some_codes<Y>(1)[0];
  check::fenced<std::int32_t> sums(batches.count() * m * n);
  check::fenced<Y> saturated(sums.size()), wrapped(sums.size());
  onnx::matmul_integer(view(a), a_dims, view(b), b_dims, view(a_zeros), view(b_zeros),
                       {sums.data(), sums.data() + sums.size()});
  const onnx::qlinear_matmul_parameters<A, B, Y> p{a_scales, view(a_zeros), b_scales, view(b_zeros), y_scale, y_zero};
  onnx::qlinear_matmul<A, B, Y>(view(a), a_dims, view(b), b_dims, p,
                                {saturated.data(), saturated.data() + sums.size()});
  onnx::qlinear_matmul<A, B, Y>(view(a), a_dims, view(b), b_dims, p, {wrapped.data(), wrapped.data() + sums.size()},
                                onnx::matmul_rule::reference);
  const auto at = [](const auto& list, index_t i) { return list[list.size() == 1 ? 0 : static_cast<std::size_t>(i)]; };
  for (index_t i = 0, e = 0; i < batches.count(); ++i)
    for (index_t r = 0; r < m; ++r)
      for (index_t c = 0; c < n; ++c, ++e) {
        const A* const left = a.data() + (batches.left(i) * m + r) * k;
        const B* const right = b.data() + batches.right(i) * k * n + c;
        std::int32_t sum = 0;
        for (index_t d = 0; d < k; ++d) sum += (left[d] - at(a_zeros, r)) * (right[d * n] - at(b_zeros, c));
        REQUIRE(sums[e] == sum);
        const float s = qtensor::rounded(qtensor::rounded(at(a_scales, r) * at(b_scales, c)) / y_scale);
        const float q = std::nearbyint(qtensor::rounded(static_cast<float>(sum) * s)) + static_cast<float>(y_zero);
        constexpr float low = std::numeric_limits<Y>::min(), high = std::numeric_limits<Y>::max();
        REQUIRE(saturated[e] == static_cast<Y>(q < low ? low : q > high ? high : q));
        const double wide =
            std::nearbyint(static_cast<double>(sum) * static_cast<double>(s) + static_cast<double>(y_zero));
        REQUIRE(wrapped[e] == static_cast<Y>(static_cast<std::int64_t>(wide)));
      }
}

}  // namespace

TEST_CASE("products: every element of every type by the definition, also where batches are joined") {
  struct sizes {
    dims a, b;
  };
  const sizes all[] = {{{1, 5}, {5, 1}},
                       {{3, 4}, {4, 17}},
                       {{7, 33}, {33, 65}},
                       {{16, 64}, {64, 64}},
                       {{33, 65}, {65, 100}},
                       {{70, 200}, {200, 130}},
                       {{9}, {9, 40}},
                       {{6, 9}, {9}},
                       {{5, 0}, {0, 40}},
                       {{0, 5}, {5, 40}},
                       {{5, 3}, {3, 0}},
                       {{40, 1, 20}, {20, 33}},
                       {{9, 4, 70}, {1, 70, 40}},
                       {{2, 3, 5, 64}, {2, 1, 64, 33}},
                       {{2, 1, 5, 12}, {1, 3, 12, 9}}};
  for (const bool squares : {true, false}) {
    qtensor::simd::squares_allowed = squares;
    for (const auto& [a, b] : all)
      for (int choice = 0; choice < 4; ++choice)
        for (const float y_scale : {0x1p-12f, 0x1p-6f, 1.f}) {
          const bool rows = (choice & 1) != 0, columns = (choice & 2) != 0;
          check_products<std::uint8_t, std::int8_t, std::uint8_t>(a, b, rows, columns, y_scale);
          check_products<std::int8_t, std::int8_t, std::int8_t>(a, b, rows, columns, y_scale);
          check_products<std::uint8_t, std::uint8_t, std::int8_t>(a, b, rows, columns, y_scale);
        }
  }
  qtensor::simd::squares_allowed = true;
}

TEST_CASE("MatMulInteger: ONNX's own example") {
  const std::vector<std::uint8_t> a = {11, 7, 3, 10, 6, 2, 9, 5, 1, 8, 4, 0}, b = {1, 4, 2, 5, 3, 6}, az = {12},
                                  bz = {0};
  std::vector<std::int32_t> y(8);
  onnx::matmul_integer(view(a), dims{4, 3}, view(b), dims{3, 2}, view(az), view(bz), y);
  CHECK(y == std::vector<std::int32_t>{-38, -83, -44, -98, -50, -113, -56, -128});
}
TEST_CASE("MatMulInteger: vectors, broadcast batches, zero points for rows and columns") {
  const std::vector<std::int8_t> a = {1, 2, 3, -4, -5, -6, 7, 8}, b = {1, -1, 2, -2, 3, -3};
  CHECK(onnx::matmul_dims(dims{2}, dims{2, 3}) == dims{3});
  CHECK(onnx::matmul_dims(dims{2, 1, 2, 2}, dims{3, 2, 3}) == dims{2, 3, 2, 3});
  CHECK(onnx::matmul_dims(dims{2}, dims{2}) == dims{});
  const std::vector<std::int8_t> row_zeros = {1, -1}, column_zeros = {0, 1, 2};
  for (const bool shared : {true, false}) {
    const dims a_dims = {2, 2, 2}, b_dims = shared ? dims{2, 3} : dims{1, 2, 3};
    std::vector<std::int32_t> y(12);
    onnx::matmul_integer(view(a), a_dims, view(b), b_dims, view(row_zeros), view(column_zeros), y);
    for (std::size_t i = 0; i < 2; ++i)
      for (std::size_t m = 0; m < 2; ++m)
        for (std::size_t n = 0; n < 3; ++n) {
          std::int32_t want = 0;
          for (std::size_t k = 0; k < 2; ++k)
            want += (a[i * 4 + m * 2 + k] - row_zeros[m]) * (b[k * 3 + n] - column_zeros[n]);
          CHECK(y[i * 6 + m * 3 + n] == want);
        }
  }
}
TEST_CASE("QLinearMatMul: ties to even after scaling; saturates, where the reference wraps around") {
  const std::vector<std::uint8_t> a = {10, 0, 255, 255}, b = {1, 2, 0, 4}, zero = {0};
  const std::vector<float> half = {0.5f}, each = {0.5f, 1.f};
  std::vector<std::uint8_t> y(4);
  onnx::qlinear_matmul<std::uint8_t, std::uint8_t, std::uint8_t>(view(a), dims{2, 2}, view(b), dims{2, 2},
                                                                 {half, view(zero), each, view(zero), 1.f, 1}, y);
  CHECK(y == std::vector<std::uint8_t>{3, 11, 65, 255});  // 2.5 -> 2; 10; 63.75 -> 64; 765
  onnx::qlinear_matmul<std::uint8_t, std::uint8_t, std::uint8_t>(view(a), dims{2, 2}, view(b), dims{2, 2},
                                                                 {half, view(zero), each, view(zero), 1.f, 1}, y,
                                                                 onnx::matmul_rule::reference);
  CHECK(y[3] == static_cast<std::uint8_t>(766));
}
TEST_CASE("QLinearMatMul: sums that leave 32 bits are exact") {
  constexpr index_t k = 70000;
  const std::vector<std::uint8_t> a(2 * k, 255), b(3 * k, 255), zero = {0};
  const std::vector<float> small = {0.001f}, rows = {0.001f, 0.0005f};
  const auto multiply = [&](std::span<const float> of_rows, std::span<const std::uint8_t> zeros,
                            onnx::matmul_rule rule) {
    std::vector<std::uint8_t> y(6);
    onnx::qlinear_matmul<std::uint8_t, std::uint8_t, std::uint8_t>(
        view(a), dims{2, k}, view(b), dims{k, 3}, {of_rows, zeros, small, view(zero), 20.f, 0}, y, rule);
    return y;
  };
  const std::vector<std::uint8_t> both = {0, 0};
  for (const auto rule : {onnx::matmul_rule::runtime, onnx::matmul_rule::reference}) {
    CHECK(multiply(small, zero, rule) == std::vector<std::uint8_t>(6, 228));  // 4551750000 / 2e7 = 227.6
    CHECK(multiply(rows, both, rule) == std::vector<std::uint8_t>{228, 228, 228, 114, 114, 114});
  }
}
TEST_CASE("QLinearMatMul: results without elements, of any number of columns or batches, take no time or memory") {
  constexpr index_t huge = index_t{1} << 40;
  const std::vector<std::uint8_t> none, one(1), two(2);
  const std::vector<float> unit = {1.f}, units = {1.f, 1.f};
  std::vector<std::uint8_t> y;
  const onnx::qlinear_matmul_parameters<std::uint8_t, std::uint8_t, std::uint8_t> p{unit, one, unit, one, 1.f, 0};
  onnx::qlinear_matmul(view(none), dims{0, 0}, view(none), dims{0, huge}, p, std::span(y));
  const onnx::qlinear_matmul_parameters<std::uint8_t, std::uint8_t, std::uint8_t> rows{units, two, unit, one, 1.f, 0};
  onnx::qlinear_matmul(view(none), dims{huge, 2, 0}, view(none), dims{0, 0}, rows, std::span(y));
}
TEST_CASE("products: what does not fit is refused before anything is written") {
  const std::vector<std::int8_t> a(6), b(6), zeros(3);
  std::vector<std::int32_t> y(4, 77);
  CHECK_THROWS_WITH(
      onnx::matmul_integer(view(a), dims{2, 3}, view(b), dims{2, 3}, {}, {}, y),
      "qtensor: the left operand of a product has 3 elements along the sum, the right one 2; they must be "
      "equal.");
  CHECK_THROWS_WITH(onnx::matmul_integer(view(a), dims{2, 3}, view(b), dims{3, 2}, view(zeros), {}, y),
                    "qtensor: the left operand has 3 zero points for 2 outputs; it takes none, 1 or 2.");
  CHECK_THROWS_WITH(onnx::matmul_integer(view(a), dims{2, 4}, view(b), dims{4, 2}, {}, {}, y),
                    "qtensor: 6 elements of the left operand are given; its dimensions make 8.");
  CHECK_THROWS_WITH(
      onnx::matmul_dims(dims{2, 2, 3}, dims{3, 3, 2}),
      "qtensor: leading dimension 0 of a product is 2 on the left and 3 on the right; they must be equal, "
      "or one of them 1.");
  constexpr index_t huge = index_t{1} << 40;
  CHECK(onnx::matmul_dims(dims{huge, 1, 1}, dims{1, 1}) == dims{huge, 1, 1});
  CHECK_THROWS_WITH(onnx::matmul_integer(view(a), dims{huge, 2, 3}, view(b), dims{3, 2}, {}, {}, y),
                    "qtensor: 6 elements of the left operand are given; its dimensions make 6597069766656.");
  CHECK_THROWS_WITH(onnx::matmul_dims(dims{huge, -2, 3}, dims{3, 3}),
                    "qtensor: a product has a dimension of -2; dimensions are at least 0.");
  for (const std::int32_t v : y) CHECK(v == 77);

  const std::vector<float> unit = {1.f};
  const std::vector<std::int8_t> zero(1);
  std::vector<std::int8_t> codes(4, 77);
  const onnx::qlinear_matmul_parameters<std::int8_t, std::int8_t, std::int8_t> p{unit, view(zero), unit, {}, 1.f, 0};
  CHECK_THROWS_WITH(onnx::qlinear_matmul(view(a), dims{2, 3}, view(b), dims{3, 2}, p, std::span(codes)),
                    "qtensor: b_zero_point has 0 elements; it has 1 or 2.");
  for (const std::int8_t v : codes) CHECK(v == 77);
}
