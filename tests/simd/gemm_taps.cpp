// Mirrors include/qtensor/simd/gemm_taps.hpp: tiles of every height, segments anywhere, against plain loops.
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cmath>
#include <qtensor/simd/gemm_taps.hpp>

#include "check.hpp"

namespace simd = qtensor::simd;
using qtensor::index_t;

TEST_CASE("dot_taps_tile: every height, number of columns, segments and quads, nothing read beyond") {
  check::archs::for_each([]<class A>(A) {
    using dot = simd::quad_dot<A>;
    constexpr index_t width = simd::int_tile<A>::panel, room = 40;
    for (index_t rows = 1; rows <= simd::int_tile<A>::max_rows; ++rows)
      for (index_t count = 0; count <= 3; ++count)
        for (index_t quads = 0; quads <= 4; ++quads) {
          check::fenced<std::int8_t> panel(count * quads * 4 * width);
          for (index_t i = 0; i < panel.size(); ++i) panel[i] = static_cast<std::int8_t>(check::random_bits()());
          std::vector<std::uint8_t> x(static_cast<std::size_t>(rows * room));
          for (auto& v : x) v = static_cast<std::uint8_t>(check::random_bits()());
          check::fenced<typename dot::unit> units(rows * room);
          for (index_t r = 0; r < rows; ++r)
            simd::pack_units<A>(x.data() + r * room, room, simd::code_sign::is_signed, units.data() + r * room);
          // Rows in no order; the last segment ends with the memory.
          const typename dot::unit* at[6];
          for (index_t r = 0; r < rows; ++r) at[r] = units.data() + (rows - 1 - r) * room;
          const index_t offsets[3] = {room - 4 * quads, 4, 8};
          alignas(64) std::int32_t start[width], sums[simd::int_tile<A>::max_rows * width];
          for (auto& v : start) v = static_cast<std::int32_t>(check::random_bits()());
          const index_t columns = quads == 4 ? width : quads == 0 ? 1 : std::min(width, quads * simd::lanes<A>);
          simd::dot_taps_tile<A>(panel.data(), at, rows, {offsets, count, quads}, start, sums, columns);
          for (index_t r = 0; r < rows; ++r)
            for (index_t c = 0; c < columns; ++c) {
              auto want = static_cast<std::uint32_t>(start[c]);
              for (index_t s = 0; s < count; ++s)
                for (index_t k = 0; k < 4 * quads; ++k) {
                  const auto code =
                      static_cast<std::int8_t>(x[static_cast<std::size_t>((rows - 1 - r) * room + offsets[s] + k)]);
                  want += static_cast<std::uint32_t>(panel[((s * quads + k / 4) * width + c) * 4 + k % 4] *
                                                     (code + dot::unit_offset));
                }
              REQUIRE(static_cast<std::uint32_t>(sums[r * width + c]) == want);
            }
        }
  });
}

TEST_CASE("dot_row_tile: every number of pixels, runs and quads, places at any distance, nothing read beyond") {
  check::archs::for_each([]<class A>(A) {
    using dot = simd::quad_dot<A>;
    constexpr index_t width = simd::int_tile<A>::panel, taps = simd::row_tile_taps;
    for (index_t count = 1; count <= simd::row_tile_pixels; ++count)
      for (index_t runs = 0; runs <= 3; ++runs)
        for (index_t quads = 0; quads <= 3; ++quads) {
          const index_t step = 4 * quads + count % 3 * 4;
          check::fenced<std::int8_t> panel(runs * taps * quads * 4 * width);
          for (index_t i = 0; i < panel.size(); ++i) panel[i] = static_cast<std::int8_t>(check::random_bits()());
          const index_t places = (count + taps - 2) * step + 4 * quads;  // the last run ends with the memory
          const index_t offsets[3] = {8, 0, 4}, room = places + (runs == 0 ? 0 : 8);
          std::vector<std::uint8_t> x(static_cast<std::size_t>(room));
          for (auto& v : x) v = static_cast<std::uint8_t>(check::random_bits()());
          check::fenced<typename dot::unit> units(room);
          simd::pack_units<A>(x.data(), room, simd::code_sign::is_signed, units.data());
          alignas(64) std::int32_t start[width], sums[simd::row_tile_pixels * width];
          for (auto& v : start) v = static_cast<std::int32_t>(check::random_bits()());
          simd::dot_row_tile<A>(panel.data(), units.data(), step, count, {offsets, runs, quads}, start, sums);
          for (index_t p = 0; p < count; ++p)
            for (index_t c = 0; c < simd::lanes<A>; ++c) {
              auto want = static_cast<std::uint32_t>(start[c]);
              for (index_t s = 0; s < runs; ++s)
                for (index_t t = 0; t < taps; ++t)
                  for (index_t k = 0; k < 4 * quads; ++k) {
                    const auto code =
                        static_cast<std::int8_t>(x[static_cast<std::size_t>((p + t) * step + offsets[s] + k)]);
                    const auto w = panel[(((s * taps + t) * quads + k / 4) * width + c) * 4 + k % 4];
                    want += static_cast<std::uint32_t>(w * (code + dot::unit_offset));
                  }
              REQUIRE(static_cast<std::uint32_t>(sums[p * width + c]) == want);
            }
        }
  });
}

TEST_CASE("dot_lanes_tile: every lane has its own factors; every height and number of columns, nothing read beyond") {
  check::archs::for_each([]<class A>(A) {
    using dot = simd::quad_dot<A>;
    constexpr index_t width = simd::channel_panel<A>, most = 2 * simd::channel_rows + 1;
    for (index_t rows = 1; rows <= most; ++rows)
      for (index_t quads = 0; quads <= 5; ++quads)
        for (index_t columns = 1; columns <= width; columns += 5) {
          const index_t row_step = 3 + rows % 2;
          check::fenced<std::int8_t> panel(quads * 4 * width);
          for (index_t i = 0; i < panel.size(); ++i)
            panel[i] = quads == 5 ? std::int8_t{-128} : static_cast<std::int8_t>(check::random_bits()());
          check::fenced<std::uint8_t> x(std::max(quads, index_t{1}) * 4 * width + (rows - 1) * row_step);
          for (index_t i = 0; i < x.size(); ++i)
            x[i] = static_cast<std::uint8_t>(quads == 5 ? 127 + dot::unit_offset : check::random_bits()());
          std::vector<index_t> offsets;
          for (index_t q = 0; q < quads; ++q) offsets.push_back((quads - 1 - q) * 4 * width);
          alignas(64) std::int32_t start[width], sums[most * width];
          for (auto& v : start) v = static_cast<std::int32_t>(check::random_bits()());
          simd::dot_lanes_tile<A>(panel.data(), x.data(), row_step, rows, offsets.data(), quads, start, sums, columns);
          for (index_t r = 0; r < rows; ++r)
            for (index_t c = 0; c < columns; ++c) {
              auto want = static_cast<std::uint32_t>(start[c]);
              for (index_t q = 0; q < quads; ++q)
                for (index_t i = 0; i < 4; ++i) {
                  const std::uint8_t byte = x[r * row_step + offsets[static_cast<std::size_t>(q)] + 4 * c + i];
                  const std::int32_t unit = dot::unit_offset == 0 ? static_cast<std::int8_t>(byte) : byte;
                  want += static_cast<std::uint32_t>(panel[(q * width + c) * 4 + i] * unit);
                }
              REQUIRE(static_cast<std::uint32_t>(sums[r * width + c]) == want);
            }
        }
  });
}

TEST_CASE("fma_taps_tile: every lane has its own factors, and each term of a chain is rounded once") {
  check::archs::for_each([]<class A>(A) {
    constexpr index_t width = simd::channel_panel<A>, taps = 258;
    for (index_t rows = 1; rows <= simd::channel_rows; ++rows)
      for (const index_t n : {index_t{0}, index_t{1}, index_t{9}, taps}) {
        check::fenced<float> w(n * width), x(std::max(n, index_t{1}) * width + rows);
        for (index_t i = 0; i < w.size(); ++i)
          w[i] = (static_cast<float>(check::random_bits()() % 511) - 255.f) * 0x1.234568p-9f;
        for (index_t i = 0; i < x.size(); ++i)
          x[i] = (static_cast<float>(check::random_bits()() % 511) - 255.f) * 0x1.fedcbap-9f;
        std::vector<index_t> offsets;
        for (index_t t = 0; t < n; ++t) offsets.push_back((n - 1 - t) * width);
        const float* at[simd::channel_rows];
        for (index_t r = 0; r < rows; ++r) at[r] = x.data() + r;
        alignas(64) float sums[simd::channel_rows * width];
        const index_t columns = n == 9 ? rows * width / 4 : width;
        simd::fma_taps_tile<A, simd::fused_step>(w.data(), at, rows, offsets.data(), n, sums, columns);
        for (index_t r = 0; r < rows; ++r)
          for (index_t c = 0; c < columns; ++c) {
            float want = 0.f;
            for (index_t t = 0; t < n; ++t) want = std::fma(x[(n - 1 - t) * width + c + r], w[t * width + c], want);
            REQUIRE(qtensor::bits_of(sums[r * width + c]) == qtensor::bits_of(want));
          }
      }
  });
}
