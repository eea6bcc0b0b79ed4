// Mirrors include/qtensor/simd/gemm_int8.hpp.
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <qtensor/simd/gemm_int8.hpp>
#include <vector>

#include "check.hpp"

namespace simd = qtensor::simd;
using qtensor::index_t;

namespace {

std::int8_t code() { return static_cast<std::int8_t>(check::random_bits()()); }

template <class A>
void check_tiles(index_t quads) {
  using dot = simd::quad_dot<A>;
  using unit = typename dot::unit;
  constexpr index_t width = simd::int_tile<A>::panel;
  const index_t depth = 4 * quads;
  for (index_t rows = 1; rows <= simd::int_tile<A>::max_rows; ++rows)
    for (const index_t step : {0, 64, 128}) {
      check::fenced<std::int8_t> panel(width * depth);
      for (index_t i = 0; i < panel.size(); ++i) panel[i] = code();
      check::fenced<unit> units(rows * depth);
      std::vector<std::int8_t> x(static_cast<std::size_t>(rows * depth));
      for (auto& v : x) v = code();
      for (index_t r = 0; r < rows; ++r)
        simd::pack_units<A>(reinterpret_cast<const std::uint8_t*>(x.data()) + r * depth, depth,
                            simd::code_sign::is_signed, units.data() + r * depth);
      alignas(64) std::int32_t start[width], sums[simd::int_tile<A>::max_rows * width];
      for (auto& v : start) v = static_cast<std::int32_t>(check::random_bits()());
      simd::dot_tile<A>(panel.data(), {units.data(), depth}, rows, quads, start, sums,
                        {step > 0 ? panel.data() : nullptr, step});
      for (index_t r = 0; r < rows; ++r)
        for (index_t c = 0; c < width; ++c) {
          auto want = static_cast<std::uint32_t>(start[c]);
          for (index_t k = 0; k < depth; ++k)
            want += static_cast<std::uint32_t>(panel[(k / 4 * width + c) * 4 + k % 4] *
                                               (x[static_cast<std::size_t>(r * depth + k)] + dot::unit_offset));
          REQUIRE(static_cast<std::uint32_t>(sums[r * width + c]) == want);
        }
      if constexpr (!simd::square_dot<A>::exists)
        if (rows == simd::int_tile<A>::max_rows) {  // the same from registers
          std::vector<std::int32_t> put(static_cast<std::size_t>(rows * width), 0);
          const simd::sums_in_turn<A, width, false, std::int32_t> turn{nullptr, 0, rows, put.data(), width};
          simd::dot_tile_to<A>(panel.data(), {units.data(), depth}, quads, start, turn,
                               {step > 0 ? panel.data() : nullptr, step});
          REQUIRE(std::equal(put.begin(), put.end(), sums));
        }
    }
}

template <class A>
void check_lines(index_t depth) {
  constexpr index_t step = simd::line_dot<A>::step, columns = 21;
  constexpr index_t most_rows = 9;
  const index_t x_stride = qtensor::round_up(depth, step);
  for (index_t rows = 1; rows <= most_rows; ++rows)
    for (const std::uint8_t flip : {std::uint8_t{0}, std::uint8_t{0x80}}) {
      const index_t w_stride = depth + (rows + flip / 128) % 2 * 3;
      check::fenced<std::uint8_t> w(depth == 0 ? 0 : (columns - 1) * w_stride + depth);
      check::fenced<std::int8_t> x(rows * x_stride);
      for (index_t i = 0; i < w.size(); ++i) w[i] = static_cast<std::uint8_t>(code());
      for (index_t i = 0; i < x.size(); ++i) x[i] = i % x_stride < depth ? code() : std::int8_t{0};
      std::int32_t sums[most_rows * columns] = {};
      simd::dot_along<A>(w.data(), w_stride, columns, flip, x.data(), x_stride, rows, depth, rows % 3 > 0, sums,
                         columns);
      for (index_t r = 0; r < rows; ++r)
        for (index_t c = 0; c < columns; ++c) {
          std::int32_t want = 0;
          for (index_t k = 0; k < depth; ++k)
            want += (static_cast<std::int8_t>(w[c * w_stride + k] ^ flip) + simd::line_dot<A>::weight_offset) *
                    x[r * x_stride + k];
          REQUIRE(sums[r * columns + c] == want);
        }
    }
}

template <class A, index_t Panels, bool Asks>
void check_split_row(index_t quads) {
  using unit = typename simd::split_dot<A>::unit;
  constexpr index_t width = simd::int_tile<A>::panel;
  const index_t depth = 4 * quads, apart = width * depth;
  for (const bool extreme : {false, true}) {
    check::fenced<std::int8_t> panels(Panels * apart);
    for (index_t i = 0; i < panels.size(); ++i) panels[i] = extreme ? std::int8_t{-128} : code();
    std::vector<std::int8_t> x(static_cast<std::size_t>(depth));
    for (auto& v : x) v = extreme ? std::int8_t{127} : code();
    check::fenced<unit> units(depth);
    simd::pack_units<A>(reinterpret_cast<const std::uint8_t*>(x.data()), depth, simd::code_sign::is_signed,
                        units.data());
    check::fenced<std::uint8_t> row(2 * qtensor::round_up(depth, simd::split_dot<A>::split_units));
    simd::split_row<A>(units.data(), quads, row.data());
    alignas(64) std::int32_t sums[Panels * width];
    simd::dot_split_row<A, Panels, Asks>(panels.data(), apart, row.data(), quads, sums);
    for (index_t c = 0; c < Panels * width; ++c) {
      const std::int8_t* w = panels.data() + c / width * apart + c % width * 4;
      std::int32_t want = 0;
      for (index_t k = 0; k < depth; ++k)
        want += w[k / 4 * (4 * width) + k % 4] * (x[static_cast<std::size_t>(k)] + 128);
      REQUIRE(sums[c] == want);
    }
  }
}

}  // namespace

TEST_CASE("for_each_row_tile: covers all rows in order, no tile above the height, the rest split evenly") {
  for (index_t m = 0; m < 200; ++m)
    for (const index_t height : {1, 4, 6}) {
      index_t next = 0, least = height, tiles = 0;
      simd::for_each_row_tile(m, height, [&](index_t row, index_t rows) {
        REQUIRE(row == next);
        REQUIRE((rows >= 1 && rows <= height));
        next += rows, ++tiles;
        least = rows < least ? rows : least;
      });
      REQUIRE(next == m);
      REQUIRE(tiles == qtensor::divide_up(m, height));
      if (tiles > 1) REQUIRE(least >= height / 2);
    }
}
TEST_CASE("dot_tile: every number of rows, with and without prefetching, nothing read past the operands") {
  check::archs::for_each([](auto arch) {
    for (const index_t quads : {0, 1, 2, 3, 4, 5, 8, 13}) check_tiles<decltype(arch)>(quads);
  });
}
TEST_CASE("dot_split_row: one panel and two, every number of quads, the largest products, nothing read past them") {
  check::archs::for_each([]<class A>(A) {
    if constexpr (simd::split_dot<A>::exists)
      for (index_t quads = 0; quads < 40; ++quads) {
        check_split_row<A, 1, true>(quads);
        check_split_row<A, 2, false>(quads);
        check_split_row<A, 2, true>(quads);
      }
  });
}
TEST_CASE("dot_along: few rows against lines in memory, with gaps and without, every depth") {
  check::archs::for_each([](auto arch) {
    for (index_t depth = 0; depth < 140; depth += depth < 20 ? 1 : 7) check_lines<decltype(arch)>(depth);
  });
}
