// Mirrors include/qtensor/ops/rows.hpp.
// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <array>
#include <qtensor/ops/rows.hpp>
#include <utility>
#include <vector>

#include "check.hpp"

using namespace qtensor;

namespace {

/// Elements tell where they lie; `Rows` as a source that likes rows one at a time, else tiles; `Direct` lends its
/// memory.
template <bool Rows, bool Direct>
struct numbered_source {
  index_t row_count, col_count;
  std::vector<float> memory;
  static constexpr bool reads_rows = Rows;
  static constexpr bool reads_twice = true;
  mutable std::vector<index_t> reads;  // floats of every read

  numbered_source(index_t rows, index_t cols) : row_count(rows), col_count(cols) {
    for (index_t i = 0; i < rows * cols; ++i) memory.push_back(static_cast<float>(i));
  }
  index_t rows() const { return row_count; }
  index_t cols() const { return col_count; }
  const float* direct(index_t row, index_t col) const {
    return Direct ? memory.data() + row * col_count + col : nullptr;
  }
  void read(index_t row, index_t rows, index_t col, index_t cols, float* tile, index_t stride) const {
    reads.push_back(rows * cols);
    for (index_t r = 0; r < rows; ++r)
      for (index_t c = 0; c < cols; ++c)
        tile[r * stride + c] = memory[static_cast<std::size_t>((row + r) * col_count + col + c)];
  }
};

/// Visits pieces of rows [first, first + count) and checks that they are the source's elements, each once.
template <class X>
void check_pieces(const X& x, index_t first, index_t count, index_t step) {
  INFO("rows ", x.rows(), " cols ", x.cols(), " from row ", first, " count ", count, " step ", step);
  std::vector<int> seen(x.memory.size(), 0);
  bool right = true, on_steps = true, short_only_at_the_end = true;
  ops::for_each_piece(x, first, count, step, [&](index_t row, index_t col, index_t n, const float* floats) {
    on_steps = on_steps && col % step == 0 && n <= ops::tile_floats;
    short_only_at_the_end = short_only_at_the_end && (n % step == 0 || col + n == x.cols());
    for (index_t i = 0; i < n; ++i) {
      const auto at = static_cast<std::size_t>(row * x.cols() + col + i);
      right = right && floats[i] == static_cast<float>(at);
      ++seen[at];
    }
  });
  CHECK(right);
  CHECK(on_steps);
  CHECK(short_only_at_the_end);
  bool once = true;
  for (index_t row = 0; row < x.rows(); ++row)
    for (index_t col = 0; col < x.cols(); ++col)
      once =
          once && seen[static_cast<std::size_t>(row * x.cols() + col)] == (row >= first && row < first + count ? 1 : 0);
  CHECK(once);
  for (index_t n : x.reads) CHECK(n <= ops::box_floats);
}

using run = std::pair<index_t, index_t>;
template <std::size_t Rank>
std::vector<run> runs_of(const std::array<index_t, Rank>& first, const std::array<index_t, Rank>& count,
                         const std::array<index_t, Rank>& extents) {
  std::vector<run> runs;
  ops::for_each_row_run(first, count, extents, [&](index_t row, index_t n) { runs.emplace_back(row, n); });
  return runs;
}
using runs = std::vector<run>;

}  // namespace

TEST_CASE("row_index: rows counted with the last of the leading axes fastest") {
  CHECK(ops::row_index<1>(0, {7}) == std::array<index_t, 1>{0});
  CHECK(ops::row_index<2>(5, {9, 7}) == std::array<index_t, 2>{5, 0});
  CHECK(ops::row_index<4>(0, {2, 3, 4, 7}) == std::array<index_t, 4>{0, 0, 0, 0});
  CHECK(ops::row_index<4>(23, {2, 3, 4, 7}) == std::array<index_t, 4>{1, 2, 3, 0});
  CHECK(ops::row_index<4>(6, {2, 3, 4, 7}) == std::array<index_t, 4>{0, 1, 2, 0});
}

TEST_CASE("for_each_row_run: boxes over whole axes make longer runs") {
  CHECK(runs_of<1>({3}, {4}, {9}) == runs{{0, 1}});
  CHECK(runs_of<2>({2, 0}, {3, 5}, {9, 5}) == runs{{2, 3}});
  CHECK(runs_of<3>({1, 0, 0}, {2, 4, 8}, {5, 4, 8}) == runs{{4, 8}});
  CHECK(runs_of<3>({1, 2, 0}, {2, 2, 8}, {5, 4, 8}) == runs{{6, 2}, {10, 2}});
  CHECK(runs_of<4>({0, 1, 0, 0}, {2, 1, 3, 8}, {2, 2, 3, 8}) == runs{{3, 3}, {9, 3}});
}

TEST_CASE("for_each_piece: every element once, whatever the source, the shape and the step") {
  for (const auto& [rows, cols] :
       {std::pair<index_t, index_t>{1, 1}, {3, 70}, {40, 70}, {2, 5000}, {70, 300}, {5, 8200}})
    for (index_t step : {index_t{1}, index_t{2}, index_t{32}, index_t{48}, index_t{3000}, ops::tile_floats}) {
      check_pieces(numbered_source<true, true>(rows, cols), 0, rows, step);
      check_pieces(numbered_source<true, false>(rows, cols), 0, rows, step);
      check_pieces(numbered_source<false, false>(rows, cols), 0, rows, step);
      if (rows > 2) check_pieces(numbered_source<false, false>(rows, cols), 1, rows - 2, step);
    }
}

TEST_CASE("for_each_piece: no columns or no rows, nothing to visit") {
  int visits = 0;
  const auto visit = [&](index_t, index_t, index_t, const float*) { ++visits; };
  ops::for_each_piece(numbered_source<true, false>(3, 0), 0, 3, 1, visit);
  ops::for_each_piece(numbered_source<true, false>(3, 5), 1, 0, 1, visit);
  ops::for_each_piece(numbered_source<false, false>(3, 5), 1, 0, 1, visit);
  CHECK(visits == 0);
}

TEST_CASE("for_each_piece: a source that runs across the rows is asked for tiles of several rows") {
  const numbered_source<false, false> x(256, 256);
  ops::for_each_piece(x, 0, 256, 32, [](index_t, index_t, index_t, const float*) {});
  CHECK(x.reads.size() == 4);
  const numbered_source<true, false> y(64, 256);
  ops::for_each_piece(y, 0, 64, 32, [](index_t, index_t, index_t, const float*) {});
  CHECK(y.reads.size() == 64);
}

TEST_CASE("for_each_flat_piece: every element once, in order; long rows in memory are not copied") {
  for (const std::array<index_t, 3> sizes : {std::array<index_t, 3>{1, 600, 0},
                                             {3, 64, 0},
                                             {70, 64, 5},
                                             {5, ops::direct_floats - 1, 1},
                                             {5, ops::direct_floats, 1},
                                             {3, 5000, 8},
                                             {2, ops::tile_floats + 1, 1}}) {
    const index_t rows = sizes[0], cols = sizes[1], gap = sizes[2];
    INFO(rows << " rows of " << cols << ", " << gap << " between them");
    std::vector<float> memory(static_cast<std::size_t>(rows * (cols + gap)), -1.f);
    for (index_t i = 0; i < rows * cols; ++i)
      memory[static_cast<std::size_t>(i / cols * (cols + gap) + i % cols)] = static_cast<float>(i);
    const matrix_ref<const float> x{memory.data(), rows, cols, cols + gap, 1};
    index_t next = 0;
    bool right = true, in_place = true;
    ops::for_each_flat_piece(x, 1, ops::tile_floats, [&](index_t row, index_t first, index_t n, const float* elements) {
      right = right && row == 0 && first == next;
      in_place = in_place && elements >= memory.data() && elements < memory.data() + memory.size();
      for (index_t i = 0; i < n; ++i) right = right && elements[i] == static_cast<float>(next + i);
      next += n;
    });
    CHECK(right);
    CHECK(next == rows * cols);
    CHECK(in_place == (gap == 0 || cols >= ops::direct_floats));
  }
}

TEST_CASE("for_each_flat_piece: a step of all elements is one piece, however its rows lie") {
  for (const std::array<index_t, 2> sizes : {std::array<index_t, 2>{8, ops::direct_floats}, {64, 64}, {39, 100}})
    for (const index_t gap : {0, 1}) {
      const index_t rows = sizes[0], cols = sizes[1];
      const std::vector<float> memory(static_cast<std::size_t>(rows * (cols + gap)));
      const matrix_ref<const float> x{memory.data(), rows, cols, cols + gap, 1};
      index_t pieces = 0;
      ops::for_each_flat_piece(x, rows * cols, ops::tile_floats, [&](index_t, index_t, index_t n, const float*) {
        pieces += n == rows * cols ? 1 : 100;
      });
      CHECK(pieces == 1);
    }
}

TEST_CASE("piece_length: whole steps, at least one") {
  CHECK(ops::piece_length(32, 4096) == 4096);
  CHECK(ops::piece_length(48, 4096) == 4080);
  CHECK(ops::piece_length(300, 256) == 300);
}

TEST_CASE("for_each_float_run: rows where they lie, or read a few at a time") {
  const auto x = check::numbers(7 * 5, 1);
  const matrix_ref<const float> direct{x.data(), 7, 5, 5, 1};
  std::vector<float> room(15);
  const auto sees_rows = [&](const auto& source, index_t first, index_t count, bool in_place) {
    index_t seen = 0;
    ops::for_each_float_run(source, first, count, 3, room.data(),
                            [&](index_t r, index_t n, const float* from, index_t step) {
                              REQUIRE(r == seen);
                              REQUIRE((n >= 1 && n <= 3));
                              CHECK((from == x.data() + (first + r) * 5) == in_place);
                              for (index_t i = 0; i < n; ++i)
                                for (index_t c = 0; c < 5; ++c) CHECK(from[i * step + c] == direct(first + r + i, c));
                              seen += n;
                            });
    CHECK(seen == count);
  };
  sees_rows(direct, 0, 7, true);
  sees_rows(check::tiled_source{direct}, 0, 7, false);
  sees_rows(check::tiled_source{direct}, 2, 4, false);
}

TEST_CASE("for_each_column_run: several columns where they follow each other, else one by one") {
  const std::vector<float> x(7 * 20);
  for (const index_t gap : {0, 3}) {
    const matrix_ref<const float> columns{x.data(), 7, 5, 5 + gap, 1};
    index_t next = 0;
    ops::for_each_column_run(columns, 3, [&](index_t col, index_t n, const float* elements) {
      const index_t together = gap == 0 ? std::min(index_t{3}, 7 - col) : 1;
      CHECK(col == next);
      CHECK(n == together * 5);
      CHECK(elements == x.data() + col * (5 + gap));
      next = col + together;
    });
    CHECK(next == 7);
  }
}
