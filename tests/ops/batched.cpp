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

/// Each pair of matrices as a product of its own.
template <class L, class R, class... Option>
std::vector<float> apart(const L& left, const R& right, const Option&... option) {
  const auto a = ops::batch_of(left);
  const auto b = ops::batch_of(right);
  const product_batches batches(ops::dims_of(a), ops::dims_of(b));
  const index_t m = batches.m, n = batches.n;
  std::vector<float> y(static_cast<std::size_t>(batches.count() * m * n), 7.f);
  for (index_t i = 0; i < batches.count(); ++i) {
    const auto l = ops::matrix_number(a, batches.left(i));
    const auto r = ops::matrix_number(b, batches.right(i));
    float* const to = y.data() + i * m * n;
    if constexpr (quantized<R>)
      multiply_tiles(ops::operand_of<depth_axis::rows>(r), ops::operand_of<depth_axis::cols>(l),
                     ops::store_floats<simd::best_arch>{{to, m, n, n, 1}}, option...);
    else
      multiply_tiles(ops::operand_of<depth_axis::cols>(l), ops::operand_of<depth_axis::rows>(r),
                     ops::store_floats<simd::best_arch>{{to, n, m, 1, n}}, option...);
  }
  return y;
}
template <class L, class R, class... Option>
void check_batches(const L& left, const R& right, const Option&... option) {
  const std::vector<float> want = apart(left, right, option...);
  check::fenced<float> y(static_cast<index_t>(want.size()));
  matmul_batches_into(left, right, {y.data(), want.size()}, option...);
  for (std::size_t i = 0; i < want.size(); ++i) {
    CAPTURE(i);
    const float got = y[static_cast<index_t>(i)];
    REQUIRE((bits_of(got) == bits_of(want[i]) || (got != got && want[i] != want[i])));
  }
}

/// Leading extents of both sides: joined, joined in parts, apart, shared on the left.
struct leading {
  std::array<index_t, 2> left, right;
};
constexpr leading all_leading[] = {{{3, 4}, {1, 1}}, {{3, 4}, {3, 1}}, {{2, 3}, {1, 3}}, {{1, 1}, {2, 3}},
                                   {{3, 1}, {3, 2}}, {{1, 7}, {1, 1}}, {{7, 1}, {1, 1}}, {{0, 2}, {1, 1}}};
struct sizes {
  index_t m, k, n;
};
constexpr sizes all_sizes[] = {{1, 32, 5}, {2, 64, 17}, {5, 96, 33}, {16, 64, 64}, {3, 0, 4}, {0, 32, 3}};

/// check(extents of the left operand, of the right one) for all of them.
template <class Check>
void for_all_extents(const Check& check) {
  for (const auto& [l, r] : all_leading)
    for (const auto& [m, k, n] : all_sizes) check(extents(l[0], l[1], m, k), extents(r[0], r[1], k, n));
}
template <class S>
auto some_tensor(const extents<dynamic, dynamic, dynamic, dynamic>& e) {
  auto x = numbers(e[0] * e[1] * e[2] * e[3]);
  return quantize<S>(source(x.data(), e));
}

}  // namespace

TEST_CASE_TEMPLATE("matmul_batches_into: joined rows of codes have the bits of products apart", S, int8_per_tensor,
                   int8_group<32>, int8_per_channel<0>, uint8_per_channel<2>) {
  for_all_extents(
      [](const auto& l, const auto& r) { check_batches(some_tensor<S>(l), some_tensor<uint8_per_tensor>(r)); });
}
TEST_CASE_TEMPLATE("matmul_batches_into: joined rows of weights have the bits of products apart", S, int8_group<32>,
                   fp8_block<2, 32>) {
  for_all_extents([](const auto& l, const auto& r) {
    const auto floats = numbers(r[0] * r[1] * r[2] * r[3]);
    check_batches(some_tensor<S>(l), source(floats.data(), r));
  });
}
TEST_CASE("matmul_batches_into: joined rows of floats have the bits of products apart, in every arithmetic") {
  for_all_extents([](const auto& l, const auto& r) {
    auto floats = numbers(l[0] * l[1] * l[2] * l[3]);
    const auto right = some_tensor<int8_per_tensor>(r);
    const auto left = source(floats.data(), l);
    for (const bool special : {false, true}) {
      if (special && floats.size() > 3)
        floats[1] = float_of(0x7f800000), floats[floats.size() / 2] = float_of(0x7fc00000);
      check_batches(left, right);
      check_batches(left, right, f16_math);
      check_batches(left, right, bf16_math);
      check_batches(left, right, int8_activations);
    }
  });
}
TEST_CASE("matmul_batches_into: matrices with gaps between them are not joined, wide codes not packed") {
  const auto x = numbers(3 * 5 * 40);
  const memory_source<f32, extents<dynamic, dynamic, dynamic>> left{x.data(), extents(3, 4, 32), {200, 40, 1}};
  const auto w = numbers(32 * 9);
  check_batches(left, quantize<int8_per_tensor>(source(w.data(), extents(32, 9))));
  check_batches(left, quantize<int8_per_tensor>(source(w.data(), extents(1, 32, 9))), int8_activations);
  check_batches(left, quantize<scheme<int16, per_tensor>>(source(w.data(), extents(32, 9))));
  const memory_source<f32, extents<dynamic, dynamic, dynamic>> turned{x.data(), extents(3, 32, 5), {160, 1, 32}};
  check_batches(quantize<int8_per_tensor>(source(w.data(), extents(9, 32))), turned);
  check_batches(quantize<scheme<int16, per_tensor>>(source(w.data(), extents(9, 32))), turned);
}

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
