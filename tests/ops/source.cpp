// Mirrors include/qtensor/ops/source.hpp.
// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <qtensor/ops/source.hpp>
#include <vector>

using namespace qtensor;

namespace {

template <storage_order Order, format F, class E>
auto rows_of(const memory_source<F, E>& x) {
  return typename memory_source<F, E>::template in_order<Order>(x);
}

/// All that a source reads, row after row, in tiles of two rows and three columns.
template <tile_source X>
std::vector<float> all_of(const X& x) {
  std::vector<float> out(static_cast<std::size_t>(x.rows() * x.cols()), -99.f);
  for (index_t row = 0; row < x.rows(); row += 2)
    for (index_t col = 0; col < x.cols(); col += 3) {
      const index_t rows = std::min<index_t>(2, x.rows() - row), cols = std::min<index_t>(3, x.cols() - col);
      float tile[2 * 5] = {};
      x.read(row, rows, col, cols, tile, 5);
      for (index_t r = 0; r < rows; ++r)
        for (index_t c = 0; c < cols; ++c) {
          out[static_cast<std::size_t>((row + r) * x.cols() + col + c)] = tile[r * 5 + c];
          if (const auto* here = x.direct(row + r, col))
            CHECK(simd::number<simd::source_of<element_format_of<X>>>(here[c]) == tile[r * 5 + c]);
        }
    }
  return out;
}
std::vector<float> counting(std::size_t n) {
  std::vector<float> x(n);
  for (std::size_t i = 0; i < n; ++i) x[i] = static_cast<float>(i);
  return x;
}
using floats = std::vector<float>;

static_assert(tile_source<matrix_ref<const float>> &&
              tile_source<memory_source<bf16, matrix_extents>::in_order<row_major>> && !tile_source<int>);

template <class T>
concept a_source = requires(const T* p) {
  source(p, matrix_extents(1, 1));
};
static_assert(a_source<float> && !a_source<int> && !a_source<std::uint16_t>);

}  // namespace

TEST_CASE("matrix_ref: elements by strides, direct where rows are contiguous") {
  const floats x = counting(12);
  const matrix_ref<const float> m{x.data(), 3, 4, 4, 1};
  CHECK(m(2, 1) == 9.f);
  CHECK(all_of(m) == x);
  CHECK(m.direct(1, 2) == x.data() + 6);
  const auto t = m.transposed();
  CHECK(t.rows() == 4);
  CHECK(t.cols() == 3);
  CHECK(t(1, 2) == 9.f);
  CHECK(t.direct(0, 0) == nullptr);
  CHECK(all_of(t) == floats{0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11});
  floats y(4);
  const matrix_ref<float> out{y.data(), 2, 2, 2, 1};
  out(1, 0) = 5.f;
  CHECK(y[2] == 5.f);
}

TEST_CASE("source: dense memory, its rows for a row_major tensor and its columns for a col_major one") {
  const floats x = counting(6);
  const auto s = source(x.data(), matrix_extents(2, 3));
  CHECK(s.strides == std::array<index_t, 2>{3, 1});
  const auto rows = rows_of<row_major>(s);
  CHECK(rows.rows() == 2);
  CHECK(rows.cols() == 3);
  CHECK(all_of(rows) == x);
  CHECK(rows.direct(1, 0) == x.data() + 3);
  const auto columns = rows_of<col_major>(s);
  CHECK(columns.rows() == 3);
  CHECK(columns.cols() == 2);
  CHECK(all_of(columns) == floats{0, 3, 1, 4, 2, 5});
  CHECK(columns.direct(0, 0) == nullptr);
}

TEST_CASE("source: higher ranks flatten their leading axes, in storage order") {
  const floats x = counting(24);
  const auto s = source(x.data(), extents(2, 3, 4));
  CHECK(rows_of<row_major>(s).rows() == 6);
  CHECK(all_of(rows_of<row_major>(s)) == x);
  const auto turned = all_of(rows_of<col_major>(s));  // axes 2, 1, then 0 contiguous
  CHECK(turned[0] == 0.f);
  CHECK(turned[1] == 12.f);
  CHECK(turned[2] == 4.f);
  CHECK(turned[6] == 1.f);
  CHECK(all_of(rows_of<row_major>(source(x.data(), extents(24)))) == x);
}

TEST_CASE("source: strides of any sign") {
  const floats x = counting(12);
  const auto backwards = source(x.data() + 11, matrix_extents(3, 4), {-4, -1});
  CHECK(all_of(rows_of<row_major>(backwards)) == floats{11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0});
  const auto every_second = source(x.data(), matrix_extents(3, 2), {4, 2});
  CHECK(all_of(rows_of<row_major>(every_second)) == floats{0, 2, 4, 6, 8, 10});
  const auto repeated = source(x.data(), matrix_extents(2, 3), {0, 1});
  CHECK(all_of(rows_of<row_major>(repeated)) == floats{0, 1, 2, 0, 1, 2});
}

TEST_CASE("source: bf16 and f16 by their bits, widened exactly") {
  const std::vector<std::uint16_t> b = {0x3F80, 0xC000, 0x0001, 0x7F80}, h = {0x3C00, 0xC000, 0x0001, 0x7BFF};
  CHECK(all_of(rows_of<row_major>(source<bf16>(b.data(), matrix_extents(2, 2)))) ==
        floats{1.f, -2.f, 0x1p-133f, infinity});
  CHECK(all_of(rows_of<row_major>(source<f16>(h.data(), matrix_extents(2, 2)))) ==
        floats{1.f, -2.f, 0x1p-24f, 65504.f});
}

TEST_CASE("source: 16 bits are direct where they lie in order, and can be read as they are") {
  std::vector<std::uint16_t> b(70 * 33);
  for (std::size_t i = 0; i < b.size(); ++i) b[i] = static_cast<std::uint16_t>(i + 0x3f00);
  const auto memory = source<bf16>(b.data(), matrix_extents(70, 33));
  const auto rows = rows_of<row_major>(memory);
  static_assert(std::is_same_v<element_format_of<decltype(rows)>, bf16>);
  CHECK(rows.direct(2, 5) == b.data() + 2 * 33 + 5);
  CHECK(rows.row_step() == 33);
  const auto columns = rows_of<col_major>(memory);
  CHECK(columns.direct(0, 0) == nullptr);
  CHECK(columns.row_step() == std::nullopt);
  std::vector<std::uint16_t> tile(33 * 72, 7);
  floats wide(33 * 72, 7.f);
  columns.read(0, 33, 1, 69, tile.data(), 72);
  columns.read(0, 33, 1, 69, wide.data(), 72);
  bool same = true;
  for (std::size_t r = 0; r < 33; ++r)
    for (std::size_t c = 0; c < 72; ++c) {
      const std::uint16_t at = c < 69 ? b[(c + 1) * 33 + r] : std::uint16_t{7};
      same = same && tile[r * 72 + c] == at && wide[r * 72 + c] == (c < 69 ? decode<bf16>(at) : 7.f);
    }
  CHECK(same);
}

TEST_CASE("as_floats: sources of floats as they are, others by widening") {
  const std::vector<std::uint16_t> h = {0x3C00, 0xC000, 0x0001, 0x7BFF};
  const auto halves = rows_of<row_major>(source<f16>(h.data(), matrix_extents(2, 2)));
  const auto wide = as_floats(halves);
  static_assert(std::is_same_v<element_format_of<decltype(wide)>, f32>);
  CHECK(wide.direct(0, 0) == nullptr);
  CHECK(all_of(wide) == floats{1.f, -2.f, 0x1p-24f, 65504.f});
  const floats x = counting(4);
  const matrix_ref<const float> m{x.data(), 2, 2, 2, 1};
  CHECK(&as_floats(m) == &m);
}

TEST_CASE("source: empty ones have no rows or no columns") {
  const float nothing = 0.f;
  CHECK(rows_of<row_major>(source(&nothing, extents(0, 3, 4))).rows() == 0);
  CHECK(rows_of<row_major>(source(&nothing, extents(3, 0))).cols() == 0);
}

TEST_CASE("source: null is refused where there are elements") {
  const float* const null = nullptr;
  CHECK(rows_of<row_major>(source(null, extents(0, 3))).rows() == 0);
  CHECK_THROWS_WITH_AS(source(null, extents(2, 3)), doctest::Contains("the source is null, but has 6 elements."), error);
  CHECK_THROWS_AS(source<bf16>(nullptr, extents(2, 3), {1, 2}), error);
}
