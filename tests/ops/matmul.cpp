// Mirrors include/qtensor/ops/matmul.hpp.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/ops/dequantize.hpp>
#include <qtensor/ops/matmul.hpp>
#include <qtensor/reference/matmul.hpp>

#include "../simd/check.hpp"

#include <cmath>
#include <cstdlib>
#include <vector>

using qtensor::accumulate;
using qtensor::index_t;
using qtensor::matmul_into;
using qtensor::matrix_ref;

namespace {

/// Where the elements of a matrix lie in memory: by rows, by columns, spread over every second row and third column, or
/// by rows from the last row and column to the first.
constexpr int layouts = 4;

/// A matrix in one of the layouts, in memory whose other floats are `untouched`.
class matrix {
 public:
  static constexpr float untouched = 12345.f;

  matrix(index_t rows, index_t cols, int layout) : rows_(rows), cols_(cols) {
    row_stride_ = layout == 1 ? 1 : layout == 2 ? 2 * (3 * cols + 1) : cols + 2;
    col_stride_ = layout == 1 ? rows + 1 : layout == 2 ? 3 : 1;
    const index_t span = rows == 0 || cols == 0 ? 0 : (rows - 1) * row_stride_ + (cols - 1) * col_stride_;
    memory_.assign(static_cast<std::size_t>(span + 1), untouched);
    if (layout == 3) row_stride_ = -row_stride_, col_stride_ = -col_stride_, first_ = span;
  }
  float& operator()(index_t r, index_t c) {
    return memory_[static_cast<std::size_t>(first_ + r * row_stride_ + c * col_stride_)];
  }
  matrix_ref<float> ref() { return {memory_.data() + first_, rows_, cols_, row_stride_, col_stride_}; }
  matrix_ref<const float> view() const { return {memory_.data() + first_, rows_, cols_, row_stride_, col_stride_}; }
  template <class F>
  matrix& fill(F f) {
    for (index_t r = 0; r < rows_; ++r)
      for (index_t c = 0; c < cols_; ++c) (*this)(r, c) = f();
    return *this;
  }
  /// Whether the memory between the elements is as it was. Overwrites the elements.
  bool kept_its_gaps() {
    fill([] { return untouched; });
    for (float x : memory_)
      if (x != untouched) return false;
    return true;
  }

 private:
  index_t rows_, cols_, row_stride_ = 0, col_stride_ = 0, first_ = 0;
  std::vector<float> memory_;
};

/// A source that has no memory to show, as a dequantized tensor has none. Reads outside it end the test.
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

float plain() { return static_cast<float>(static_cast<int>(check::random_bits()())) * 0x1p-31f; }

/// Calls f with matrix m as each kind of source: 0 memory, 1 tiles, 2 the transpose of tiles.
constexpr int kinds = 3;
template <class F>
void with_source(const matrix& m, int kind, F f) {
  const tiles_only by_rows{m.view()}, by_cols{m.view().transposed()};
  if (kind == 0) f(m.view());
  if (kind == 1) f(by_rows);
  if (kind == 2) f(qtensor::transposed_source{by_cols});
}

struct product {
  index_t m, n, k;
  int a_layout = 0, b_layout = 0, y_layout = 0, a_kind = 0, b_kind = 0;
  float alpha = 1.f;
  accumulate mode = accumulate::assign;
};

/// Computes p on every architecture and compares every element with its definition.
template <class F>
void verify(const product& p, F value) {
  const matrix a = matrix(p.m, p.k, p.a_layout).fill(value), b = matrix(p.k, p.n, p.b_layout).fill(value);
  const matrix before = matrix(p.m, p.n, p.y_layout).fill(value);
  matrix want = before;
  for (index_t i = 0; i < p.m; ++i)
    for (index_t j = 0; j < p.n; ++j) {
      const float dot = qtensor::reference::dot(a.view(), b.view(), i, j, p.k);
      const float v = p.alpha == 1.f ? dot : qtensor::rounded(dot * p.alpha);
      float& to = want(i, j);
      to = p.mode == accumulate::assign ? v : p.mode == accumulate::add ? to + v : to - v;
    }
  check::on_every_arch([&](auto arch) {
    matrix y = before;
    with_source(a, p.a_kind, [&](const auto& left) {
      with_source(b, p.b_kind,
                  [&](const auto& right) { matmul_into<decltype(arch)>(left, right, y.ref(), p.alpha, p.mode); });
    });
    for (index_t i = 0; i < p.m; ++i)
      for (index_t j = 0; j < p.n; ++j)
        if (!check::same_or_nan(y(i, j), want(i, j)))
          FAIL(p.m, " x ", p.n, " x ", p.k, " layouts ", p.a_layout, p.b_layout, p.y_layout, " kinds ", p.a_kind,
               p.b_kind, " alpha ", p.alpha, " mode ", static_cast<int>(p.mode), " at ", i, ", ", j, ": ", y(i, j),
               " not ", want(i, j));
    if (!y.kept_its_gaps()) FAIL(p.m, " x ", p.n, " x ", p.k, ": wrote beside y");
  });
}

/// Layouts, kinds, alpha and mode number i of all combinations.
product numbered(index_t m, index_t n, index_t k, int i) {
  const auto next = [&i](int count) {
    const int now = i % count;
    i /= count;
    return now;
  };
  product p{m, n, k};
  p.y_layout = next(layouts), p.a_layout = next(layouts), p.b_layout = next(layouts);
  p.a_kind = next(kinds), p.b_kind = next(kinds);
  constexpr float alphas[] = {1.f, -0.3f};
  p.alpha = alphas[next(2)];
  p.mode = static_cast<accumulate>(next(3));
  return p;
}
constexpr int combinations = layouts * layouts * layouts * kinds * kinds * 2 * 3;

}  // namespace

TEST_CASE("matmul_into: every shape to 20 x 20 x 20 equals the chain of fma, bit for bit") {
  int i = 0;
  for (index_t m = 1; m <= 20; ++m)
    for (index_t n = 1; n <= 20; ++n)
      for (index_t k = 1; k <= 20; ++k) verify(numbered(m, n, k, i), plain), i = (i + 1009) % combinations;
}

TEST_CASE("matmul_into: every layout of a, b and y, from memory and from tiles, every alpha and mode") {
  for (int i = 0; i < combinations; ++i) {
    verify(numbered(7, 37, 13, i), plain);
    verify(numbered(35, 3, 13, i), plain);
  }
}

TEST_CASE("matmul_into: NaN, infinities, signed zeros and subnormals behave as in the chain") {
  int i = 0;
  for (const index_t m : {1, 2, 5, 17, 33})
    for (const index_t n : {1, 3, 16, 20, 65})
      for (const index_t k : {1, 2, 3, 9})
        for (int round = 0; round < 8; ++round)
          verify(numbered(m, n, k, i), check::hard_float), i = (i + 1009) % combinations;
}

TEST_CASE("matmul_into: sizes around tiles, panels and blocks") {
  const index_t shapes[][3] = {
      {1, 1, 1000},   {1, 257, 129},  {300, 1, 257},  {2, 100, 300},  {100, 2, 300},  {3, 64, 128},   {4, 65, 129},
      {65, 4, 127},   {5, 63, 256},   {6, 128, 255},  {8, 33, 130},   {9, 32, 130},   {239, 17, 129}, {240, 16, 128},
      {241, 15, 130}, {241, 65, 257}, {13, 255, 129}, {13, 256, 128}, {13, 257, 131}, {257, 13, 131}, {245, 263, 131}};
  int i = 0;
  for (const auto& s : shapes)
    for (int round = 0; round < 4; ++round) verify(numbered(s[0], s[1], s[2], i), plain), i = (i + 1009) % combinations;
}

TEST_CASE("matmul_into: few rows or columns of any source, around the wide parts that are read of the other one") {
  const index_t shapes[][3] = {{1, 255, 15}, {1, 256, 16}, {2, 257, 17},  {3, 300, 33}, {8, 513, 40},  {9, 513, 18},
                               {5, 270, 31}, {300, 1, 33}, {257, 8, 257}, {4, 100, 255}, {40, 4, 256}, {1, 33, 513}};
  int alternative = 0;
  for (const auto& s : shapes)
    for (int a_kind = 0; a_kind < kinds; ++a_kind)
      for (int b_kind = 0; b_kind < kinds; ++b_kind) {
        product p = numbered(s[0], s[1], s[2], alternative);
        alternative = (alternative + 1009) % combinations;
        p.a_kind = a_kind, p.b_kind = b_kind;
        verify(p, plain);
      }
}

TEST_CASE("matmul_into: rounded_step rounds every product, too") {
  for (const index_t m : {1, 3, 7, 40})
    for (const index_t n : {1, 5, 64, 70})
      for (const index_t k : {1, 9, 130, 300})
        for (const int layout : {0, 1}) {
          const matrix a = matrix(m, k, layout).fill(plain), b = matrix(k, n, layout).fill(plain);
          matrix y(m, n, 0);
          matmul_into<qtensor::simd::best_arch, qtensor::simd::rounded_step>(a.view(), b.view(), y.ref());
          for (index_t i = 0; i < m; ++i)
            for (index_t j = 0; j < n; ++j) {
              float want = 0.f;
              for (index_t l = 0; l < k; ++l) want += qtensor::rounded(a.view()(i, l) * b.view()(l, j));
              REQUIRE(y(i, j) == want);
            }
        }
}

TEST_CASE("matmul_into: touches no memory outside the operands") {
  check::on_every_arch([](auto arch) {
    for (const index_t m : {1, 3, 17, 34})
      for (const index_t n : {1, 5, 16, 67})
        for (const index_t k : {1, 6, 131})
          for (int form = 0; form < 16; ++form) {
            const bool at_start = form / 8 != 0;
            check::fenced<float> a(m * k, at_start), b(k * n, at_start), y(m * n, at_start);
            for (index_t i = 0; i < a.size(); ++i) a[i] = plain();
            for (index_t i = 0; i < b.size(); ++i) b[i] = plain();
            const auto placed = [](float* data, index_t rows, index_t cols, bool turned) {
              return turned ? matrix_ref<float>{data, rows, cols, 1, rows}
                            : matrix_ref<float>{data, rows, cols, cols, 1};
            };
            const auto left = placed(a.data(), m, k, form & 1), right = placed(b.data(), k, n, form & 2);
            const auto to = placed(y.data(), m, n, form & 4);
            matmul_into<decltype(arch)>(left, right, to);
            REQUIRE(to(m - 1, n - 1) == qtensor::reference::dot(left, right, m - 1, n - 1, k));
          }
  });
}

TEST_CASE("matmul_into: K = 0 writes +0, or leaves y as it is when adding") {
  for (const float alpha : {1.f, -1.f, qtensor::quiet_nan}) {
    const matrix a(3, 0, 0), b(0, 5, 0);
    matrix y = matrix(3, 5, 1).fill([] { return -0.f; });
    matmul_into(a.view(), b.view(), y.ref(), alpha, accumulate::add);
    matmul_into(a.view(), b.view(), y.ref(), alpha, accumulate::subtract);
    CHECK(qtensor::bits_of(y(2, 4)) == 0x80000000u);
    matmul_into(a.view(), b.view(), y.ref(), alpha);
    for (index_t i = 0; i < 3; ++i)
      for (index_t j = 0; j < 5; ++j) CHECK(qtensor::bits_of(y(i, j)) == 0u);
  }
}

TEST_CASE("matmul_into: without rows or columns nothing is read or written") {
  const matrix_ref<const float> nothing{nullptr, 0, 4, 4, 1}, narrow{nullptr, 4, 0, 0, 1};
  const matrix square = matrix(4, 4, 0).fill(plain);
  matmul_into(nothing, square.view(), matrix_ref<float>{nullptr, 0, 4, 4, 1});
  matmul_into(square.view(), narrow, matrix_ref<float>{nullptr, 4, 0, 0, 1});
  CHECK(square.view()(3, 3) != matrix::untouched);
}

TEST_CASE("matmul_into: the sum is taken in ascending order") {
  matrix a(1, 4, 0), b(4, 1, 0), y(1, 1, 0);
  b.fill([] { return 1.f; });
  a(0, 0) = 0x1p24f, a(0, 1) = 1.f, a(0, 2) = 1.f, a(0, 3) = -0x1p24f;  // any other order would give 1 or 2
  matmul_into(a.view(), b.view(), y.ref());
  CHECK(y(0, 0) == 0.f);
}
