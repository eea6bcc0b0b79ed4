// Mirrors include/qtensor/ops/code_matrix.hpp.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/ops/code_matrix.hpp>
#include <qtensor/ops/product_int8.hpp>
#include <vector>

#include "../simd/check.hpp"

namespace simd = qtensor::simd;
using namespace qtensor;

namespace {

/// A matrix of codes of each kind of strides, times another, against a loop.
template <format X, format W>
void check_product(index_t m, index_t n, index_t k, bool x_turned, bool w_turned, bool gaps) {
  const index_t x_row = x_turned ? 1 : k + gaps, x_col = x_turned ? m + gaps : 1;
  const index_t w_out = w_turned ? 1 : 2 * (k + gaps), w_k = w_turned ? n + gaps : 1 + gaps;
  std::vector<storage_t<X>> x(static_cast<std::size_t>(m * x_row + k * x_col + 1));
  std::vector<storage_t<W>> w(static_cast<std::size_t>(n * w_out + k * w_k + 1));
  for (auto& c : x) c = static_cast<storage_t<X>>(check::random_bits()());
  for (auto& c : w) c = static_cast<storage_t<W>>(check::random_bits()());
  const std::vector<std::int32_t> x_zero = {7}, w_zeros(static_cast<std::size_t>(n), -3);
  const std::vector<float> x_scales(static_cast<std::size_t>(m), 0.25f);
  const code_matrix<X> left{x.data(), m, k, x_row, x_col, x_zero, x_scales};
  const code_matrix<W> right{w.data(), n, k, w_out, w_k, w_zeros};
  left.check("left");
  check::archs::for_each([&](auto arch) {
    using A = decltype(arch);
    std::vector<float> y(static_cast<std::size_t>(m * n));
    const ops::store_floats<A> store{{y.data(), m, n, n, 1}};
    ops::multiply_integers<A>(right, left, ops::scaled<ops::store_floats<A>>{store}, serial{});
    for (index_t i = 0; i < m; ++i)
      for (index_t j = 0; j < n; ++j) {
        std::int64_t sum = 0;
        for (index_t l = 0; l < k; ++l)
          sum += (x[static_cast<std::size_t>(i * x_row + l * x_col)] - 7) *
                 (w[static_cast<std::size_t>(j * w_out + l * w_k)] + 3);
        REQUIRE(y[static_cast<std::size_t>(i * n + j)] == static_cast<float>(sum) * 0.25f);
      }
  });
}

}  // namespace

TEST_CASE("code_matrix: rows, columns and strides on either side of an integer product") {
  for (const bool x_turned : {false, true})
    for (const bool w_turned : {false, true})
      for (const bool gaps : {false, true})
        for (const index_t k : {1, 9, 70}) {
          check_product<int8, uint8>(5, 19, k, x_turned, w_turned, gaps);
          check_product<uint8, int8>(2, 70, k, x_turned, w_turned, gaps);
        }
}
TEST_CASE("code_matrix: zero points and scales of the wrong number are refused") {
  const std::int8_t codes[4] = {};
  const std::vector<std::int32_t> zeros(3);
  const std::vector<float> scales(3, 1.f);
  CHECK_THROWS_WITH((code_matrix<int8>{codes, 2, 2, 2, 1, zeros}.check("W")),
                    "qtensor: W has 3 zero points for 2 outputs; it takes none, 1 or 2.");
  CHECK_THROWS_WITH((code_matrix<int8>{codes, 2, 2, 2, 1, {}, scales}.check("W")),
                    "qtensor: W has 3 scales for 2 outputs; it takes none, 1 or 2.");
}
TEST_CASE("code_matrix: lines of codes that follow each other along the depth") {
  const std::uint8_t codes[24] = {};
  const code_matrix<uint8> x{codes, 3, 4, 8, 1};
  CHECK(x.lines().first == codes);
  CHECK(x.lines().stride == 8);
  CHECK(code_matrix<uint8>{codes, 3, 4, 1, 3}.lines().first == nullptr);
}
