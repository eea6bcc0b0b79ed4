// Mirrors include/qtensor/ops/batched.hpp.
// SPDX-License-Identifier: BSD-3-Clause
#include <cmath>
#include <qtensor/ops/batched.hpp>
#include <vector>

#include "../simd/check.hpp"

using namespace qtensor;

namespace {

std::vector<float> numbers(index_t n) {
  std::vector<float> out(static_cast<std::size_t>(n));
  for (float& x : out) x = static_cast<float>(static_cast<std::int32_t>(check::random_bits()())) * 0x1p-30f;
  return out;
}

}  // namespace

TEST_CASE("matmul_batches_into: broadcast float activations times quantized matrices, in order") {
  constexpr index_t m = 5, k = 20, n = 9;
  const auto x = numbers(2 * m * k), w = numbers(3 * k * n);
  const auto left = source(x.data(), extents(2, 1, m, k));
  const auto right = quantize<int8_group<4>>(source(w.data(), extents(3, k, n)));
  std::vector<float> y(2 * 3 * m * n);
  matmul_batches_into(left, right, y);
  for (index_t a = 0; a < 2; ++a)
    for (index_t b = 0; b < 3; ++b)
      for (index_t i = 0; i < m; ++i)
        for (index_t j = 0; j < n; ++j) {
          float sum = 0.f;
          for (index_t l = 0; l < k; ++l)
            sum = std::fma(x[static_cast<std::size_t>((a * m + i) * k + l)], reference::value(right.view(), {b, l, j}),
                           sum);
          REQUIRE(y[static_cast<std::size_t>(((a * 3 + b) * m + i) * n + j)] == sum);
        }
}
TEST_CASE("matmul_batches_into: integers times integers, exact, in threads too") {
  constexpr index_t m = 4, k = 33, n = 6;
  const auto x = numbers(2 * m * k), w = numbers(k * n);
  const auto left = quantize<int8_per_tensor>(source(x.data(), extents(2, m, k)));
  const auto right = quantize<uint8_per_tensor>(source(w.data(), extents(1, k, n)));
  std::vector<float> y(2 * m * n);
  matmul_batches_into(left, right, y, on(serial()));
  for (index_t a = 0; a < 2; ++a)
    for (index_t i = 0; i < m; ++i)
      for (index_t j = 0; j < n; ++j) {
        std::int64_t sum = 0;
        for (index_t l = 0; l < k; ++l)
          sum += static_cast<std::int8_t>(left.view().code(a, i, l)) *
                 (static_cast<std::int64_t>(right.view().code(0, l, j)) - right.zero_points()[0]);
        REQUIRE(y[static_cast<std::size_t>((a * m + i) * n + j)] ==
                rounded(rounded(static_cast<float>(sum) * left.scales()[0]) * right.scales()[0]));
      }
}
TEST_CASE("matmul_batches_into: a quantized left operand with floats on the right") {
  const auto x = numbers(2 * 3 * 8), w = numbers(8 * 5);
  const auto left = quantize<mxfp8_e4m3>(source(x.data(), extents(2, 3, 8)));
  std::vector<float> y(2 * 3 * 5);
  matmul_batches_into(left, source(w.data(), extents(1, 8, 5)), y);
  for (index_t a = 0; a < 2; ++a)
    for (index_t i = 0; i < 3; ++i)
      for (index_t j = 0; j < 5; ++j) {
        float sum = 0.f;
        for (index_t l = 0; l < 8; ++l)
          sum = std::fma(reference::value(left.view(), {a, i, l}), w[static_cast<std::size_t>(l * 5 + j)], sum);
        REQUIRE(y[static_cast<std::size_t>((a * 3 + i) * 5 + j)] == sum);
      }
}
TEST_CASE("matmul_batches_into: refusals") {
  const tensor<int8_per_tensor, extents<dynamic, dynamic, dynamic>> w(extents(2, 4, 5));
  const auto x = numbers(24);
  std::vector<float> y(30, 7.f);
  CHECK_THROWS_WITH(matmul_batches_into(source(x.data(), extents(2, 3, 4)), w, std::span(y).first(29)),
                    "qtensor: y has 29 elements; this product has 30.");
  CHECK_THROWS_WITH(
      matmul_batches_into(source(x.data(), extents(2, 4, 3)), w, y),
      "qtensor: the left operand of a product has 3 elements along the sum, the right one 4; they must be "
      "equal.");
  for (const float v : y) CHECK(v == 7.f);
}
