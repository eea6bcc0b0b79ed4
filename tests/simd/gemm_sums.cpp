// Mirrors include/qtensor/simd/gemm_sums.hpp: tiles of every height, segments anywhere, against plain loops.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/simd/gemm_sums.hpp>
#include <vector>

#include "check.hpp"

namespace simd = qtensor::simd;
using qtensor::index_t;

namespace {

[[maybe_unused]] std::int8_t code() {
  return static_cast<std::int8_t>(check::random_below(4) == 0 ? 0x80 : check::random_bits()());
}

/// `count` segments of `quads` in rows of `room` units, in no order; the last one ends with the memory.
template <class A>
void check_sums(index_t rows, index_t count, index_t quads, index_t step) {
  using unit = typename simd::sum_dot<A>::unit;
  constexpr index_t width = simd::int_tile<A>::panel;
  const index_t room = 4 * quads + 8, depth = 4 * quads * count;
  check::fenced<std::int8_t> panel(depth * width);
  for (index_t i = 0; i < panel.size(); ++i) panel[i] = code();
  std::vector<std::int8_t> x(static_cast<std::size_t>(rows * room));
  for (auto& v : x) v = code();
  check::fenced<unit> units(rows * room), wide(depth * width);
  const index_t offsets[3] = {8, 0, 4};
  const simd::tap_segments taps{offsets, count, quads};
  const unit* at[simd::sum_tile_rows];
  std::int32_t products[simd::sum_tile_rows];
  for (index_t r = 0; r < rows; ++r) {
    simd::pack_units<A>(reinterpret_cast<const std::uint8_t*>(x.data()) + r * room, room, simd::code_sign::is_signed,
                        units.data() + r * room);
    at[r] = units.data() + r * room;
    products[r] = simd::unit_products<A>(at[r], taps);
  }
  alignas(64) std::int32_t start[width], first[width], sums[simd::sum_tile_rows * width];
  for (index_t c = 0; c < width; ++c) first[c] = start[c] = static_cast<std::int32_t>(check::random_bits()());
  simd::widen_panel<A>(panel.data(), quads * count, wide.data(), start);
  simd::dot_sums_tile<A>(wide.data(), at, rows, taps, products, start, sums, {step > 0 ? panel.data() : nullptr, step});
  for (index_t r = 0; r < rows; ++r)
    for (index_t c = 0; c < width; ++c) {
      auto want = static_cast<std::uint32_t>(first[c]);
      for (index_t s = 0; s < count; ++s)
        for (index_t k = 0; k < 4 * quads; ++k)
          want += static_cast<std::uint32_t>(panel[((s * quads + k / 4) * width + c) * 4 + k % 4] *
                                             x[static_cast<std::size_t>(r * room + offsets[s] + k)]);
      REQUIRE(static_cast<std::uint32_t>(sums[r * width + c]) == want);
    }
}

}  // namespace

TEST_CASE("dot_sums_tile: every height, segments and quads, with and without prefetching, nothing read beyond") {
  check::archs::for_each([]<class A>(A) {
    if constexpr (simd::sum_dot<A>::exists)
      for (index_t rows = 1; rows <= simd::sum_tile_rows; ++rows)
        for (index_t count = 0; count <= 3; ++count)
          for (const index_t quads : {0, 1, 2, 3, 4, 5, 8, 13})
            for (const index_t step : {0, 16, 64}) check_sums<A>(rows, count, quads, step);
  });
}

TEST_CASE("dot_sums_tile: sums of -128 times -128, where sums of both sides are largest") {
  check::archs::for_each([]<class A>(A) {
    if constexpr (simd::sum_dot<A>::exists) {
      using unit = typename simd::sum_dot<A>::unit;
      constexpr index_t width = simd::int_tile<A>::panel, quads = 64, zero = 0;
      const std::vector<std::int8_t> panel(4 * quads * width, -128);
      const std::vector<unit> units(4 * quads, -128);
      std::vector<unit> wide(panel.size());
      alignas(64) std::int32_t start[width] = {}, sums[width];
      const simd::tap_segments taps{&zero, 1, quads};
      const unit* const row = units.data();
      const std::int32_t products = simd::unit_products<A>(row, taps);
      simd::widen_panel<A>(panel.data(), quads, wide.data(), start);
      simd::dot_sums_tile<A>(wide.data(), &row, 1, taps, &products, start, sums);
      for (const std::int32_t s : sums) REQUIRE(s == 4 * quads * 128 * 128);
    }
  });
}
