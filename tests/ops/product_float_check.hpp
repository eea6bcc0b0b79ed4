// What the tests of products in floats share: weights with awkward parameters, and a sink that watches its tiles.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <qtensor/ops/product_float.hpp>
#include <qtensor/reference/matmul.hpp>
#include <qtensor/scheme/schemes.hpp>
#include <vector>

#include "../simd/check.hpp"
#include "check.hpp"

namespace product_check {

using namespace qtensor;

/// A dense matrix of floats.
struct matrix {
  index_t rows, cols;
  std::vector<float> data;

  matrix(index_t rows_, index_t cols_) : rows(rows_), cols(cols_), data(static_cast<std::size_t>(rows_ * cols_)) {}
  float& operator()(index_t r, index_t c) { return data[static_cast<std::size_t>(r * cols + c)]; }
  float operator()(index_t r, index_t c) const { return data[static_cast<std::size_t>(r * cols + c)]; }
  matrix_ref<const float> ref() const { return {data.data(), rows, cols, cols, 1}; }
  template <class F>
  matrix& fill(F f) {
    for (float& v : data) v = f();
    return *this;
  }
};
inline float plain() { return static_cast<float>(static_cast<int>(check::random_bits()())) * 0x1p-31f; }

/// A source that has no memory to show. Reads outside it end the test.
struct tiles_only {
  matrix_ref<const float> m;
  static constexpr bool reads_rows = true;
  static constexpr bool reads_twice = false;
  index_t rows() const { return m.rows(); }
  index_t cols() const { return m.cols(); }
  const float* direct(index_t, index_t) const { return nullptr; }
  void read(index_t row, index_t rows, index_t col, index_t cols, float* tile, index_t stride) const {
    if (row < 0 || col < 0 || row + rows > m.rows() || col + cols > m.cols() || stride < cols) std::abort();
    m.read(row, rows, col, cols, tile, stride);
  }
};

/// Quantized weights of n x k; `hard` changes some of the scales to NaN, infinities and zeros where floats hold them.
/// Made, and read below, by the reference, which compiles much sooner than kernels.
template <class S>
auto weights(index_t n, index_t k, bool hard = false) {
  auto q = check::expected<S, row_major>(matrix(n, k).fill(plain).data, extents(n, k));
  if constexpr (S::has_tensor_scale) q.set_tensor_scale(0.77f);
  if constexpr (std::is_same_v<typename S::scale_format, f32>) {
    for (float& s : q.scales())
      if (hard && check::random_below(5) == 0) s = check::hard_float();
  } else if constexpr (S::scale_format::bits == 8) {
    for (auto& s : q.scales())
      if (hard && check::random_below(5) == 0) s = static_cast<std::uint8_t>(check::random_bits()());
  }
  return q;
}
template <class W>
matrix dense(const W& w) {
  matrix d(w.extents()[0], w.extents()[1]);
  const auto& view = as_view(w);
  for (index_t r = 0; r < d.rows; ++r)
    for (index_t c = 0; c < d.cols; ++c) d(r, c) = reference::value(view, {r, c});
  return d;
}

/// Collects a result and sees that every element comes once, in tiles as they are promised.
struct watcher {
  matrix* result;
  std::vector<char>* seen;
  index_t lanes;

  void operator()(const product_tile& t) const {
    bool right = t.rows > 0 && t.cols > 0 && t.row >= 0 && t.col >= 0 && t.row + t.rows <= result->rows &&
                 t.col + t.cols <= result->cols && t.stride % lanes == 0 && t.stride >= t.cols &&
                 reinterpret_cast<std::uintptr_t>(t.values) % 64 == 0;
    for (index_t r = 0; right && r < t.rows; ++r)
      for (index_t c = 0; c < t.cols; ++c) {
        char& count = (*seen)[static_cast<std::size_t>((t.row + r) * result->cols + t.col + c)];
        right = right && count == 0;
        count = 1;
        (*result)(t.row + r, t.col + c) = t.values[r * t.stride + c];
      }
    if (!right) std::abort();
  }
};
/// What multiply(sink) gives for a result of m x n.
template <class A, class Multiply>
matrix collected(index_t m, index_t n, const Multiply& multiply) {
  matrix y(m, n);
  std::vector<char> seen(y.data.size(), 0);
  multiply(watcher{&y, &seen, simd::lanes<A>});
  for (const char s : seen)
    if (s == 0) FAIL("an element was not computed");
  return y;
}

/// x (m x k) times weights (n x k) by the definition.
inline matrix chains(const matrix& w, const matrix& x) {
  matrix y(x.rows, w.rows);
  for (index_t m = 0; m < y.rows; ++m)
    for (index_t n = 0; n < y.cols; ++n)
      y(m, n) = reference::dot([&](index_t row, index_t k) { return w(row, k); },
                               [&](index_t k, index_t col) { return x(col, k); }, n, m, x.cols);
  return y;
}
inline bool same(const matrix& a, const matrix& b) {
  bool equal = a.rows == b.rows && a.cols == b.cols;
  for (std::size_t i = 0; equal && i < a.data.size(); ++i) equal = check::same_or_nan(a.data[i], b.data[i]);
  return equal;
}
/// Requires that the outputs of weights too large for a cache are those of their parts, which are not, for so many rows
/// each; product(packed weights, rows).
template <class W, class Product>
void require_parts(const W& w, std::initializer_list<index_t> rows_each, const Product& product) {
  constexpr index_t part = 64;
  const index_t outputs = w.extents()[0], depth = w.extents()[1];
  const auto all = pack(w);
  REQUIRE(!ops::weights_are_near(all.layout()));
  for (const index_t rows : rows_each) {
    const matrix x = matrix(rows, depth).fill(plain), y = product(all, x.ref());
    for (const index_t first : {index_t{0}, 10 * part, outputs / part * part}) {
      const index_t n = std::min(part, outputs - first);
      const matrix some = product(pack(w.view().template slice<0>(first, n)), x.ref());
      bool equal = true;
      for (index_t r = 0; r < rows; ++r)
        for (index_t c = 0; c < n; ++c) equal = equal && bits_of(y(r, first + c)) == bits_of(some(r, c));
      REQUIRE(equal);
    }
  }
}
/// Calls check() by each way that vectors have of multiplying bf16 numbers; every CPU takes one of them by itself.
template <class Check>
void in_both_ways(const Check& check) {
  for (const auto way : {simd::bf16_way::dots, simd::bf16_way::fma}) {
    simd::bf16_way_taken = way;
    check();
  }
  simd::bf16_way_taken = simd::bf16_way::fastest;
}

}  // namespace product_check
