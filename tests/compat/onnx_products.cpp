// Mirrors include/qtensor/compat/onnx_products.hpp.
// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <qtensor/compat/onnx_products.hpp>
#include <vector>

namespace onnx = qtensor::compat::onnx;
using qtensor::index_t;

namespace {

using dims = std::vector<index_t>;
template <class T>
std::span<const T> view(const std::vector<T>& v) {
  return v;
}

}  // namespace

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
  for (const std::int32_t v : y) CHECK(v == 77);
}
