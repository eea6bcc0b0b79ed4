// Mirrors include/qtensor/simd/gemm_bf16.hpp.
// SPDX-License-Identifier: BSD-3-Clause
#include <cmath>
#include <qtensor/simd/gemm_bf16.hpp>
#include <vector>

#include "check.hpp"

namespace simd = qtensor::simd;
using qtensor::bits_of;
using qtensor::float_of;
using qtensor::index_t;

namespace {

float number_of(std::uint16_t unit) { return float_of(static_cast<std::uint32_t>(unit) << 16); }

/// The element of a quad that unit i of it holds.
constexpr index_t order[] = {0, 2, 1, 3};

}  // namespace

TEST_CASE("pack_bf16_units: every length, in the order of quads, padded with zeros, and nothing beyond") {
  check::on_every_arch([](auto arch) {
    using A = decltype(arch);
    for (index_t n = 0; n <= 5 * simd::lanes<A> + 7; ++n) {
      check::fenced<float> x(n);
      for (index_t i = 0; i < n; ++i) x[i] = check::hard_float();
      check::fenced<std::uint16_t> units(qtensor::round_up(n, 4));
      simd::pack_bf16_units<A>(x.data(), n, units.data());
      for (index_t i = 0; i < units.size(); ++i) {
        const index_t k = i / 4 * 4 + order[i % 4];
        const float got = number_of(units[i]), from = k < n ? x[k] : 0.f;
        if (std::isnan(from)) {
          REQUIRE(std::isnan(got));
        } else {
          const std::uint32_t bits = bits_of(from);
          REQUIRE((bits_of(got) >> 16) == (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
        }
      }
    }
  });
}

TEST_CASE("bf16_tile: every tile is the sum of its products, in one go or continued") {
  check::on_every_arch([](auto arch) {
    using A = decltype(arch);
    if constexpr (simd::bf16_dot<A>::exists) {
      using tile = simd::float_tile<A>;
      for (const index_t rows : {1, 2, 4, 6})
        for (index_t vectors = 1; vectors <= tile::panel_vectors && rows <= tile::max_rows; ++vectors)
          for (const index_t pairs : {0, 1, 2, 5, 16}) {
            const index_t cols = vectors * simd::lanes<A>, stride = cols + pairs % 3, x_stride = 2 * pairs + 2;
            check::fenced<std::uint32_t> panel(pairs == 0 ? 0 : (pairs - 1) * stride + cols);
            check::fenced<std::uint16_t> x(rows * x_stride);
            // Integers: all sums are exact in any order.
            const auto integer = [] { return static_cast<float>(static_cast<int>(check::random_below(255)) - 127); };
            for (index_t i = 0; i < panel.size(); ++i)
              panel[i] = bits_of(integer()) >> 16 | (bits_of(integer()) & 0xffff0000u);
            for (index_t i = 0; i < x.size(); ++i) x[i] = static_cast<std::uint16_t>(bits_of(integer()) >> 16);
            std::vector<float> sums(static_cast<std::size_t>(rows * tile::panel), 7.f);
            const index_t part = pairs / 2;
            simd::bf16_tile<A>(panel.data(), stride, vectors, {x.data(), x_stride}, rows, part, sums.data(), true);
            simd::bf16_tile<A>(panel.data() + part * stride, stride, vectors, {x.data() + 2 * part, x_stride}, rows,
                               pairs - part, sums.data(), false);
            for (index_t r = 0; r < rows; ++r)
              for (index_t c = 0; c < tile::panel; ++c) {
                float want = c < cols ? 0.f : 7.f;
                for (index_t i = 0; i < pairs && c < cols; ++i) {
                  const std::uint32_t two = panel[i * stride + c];
                  want += number_of(x[r * x_stride + 2 * i]) * float_of(two << 16) +
                          number_of(x[r * x_stride + 2 * i + 1]) * float_of(two & 0xffff0000u);
                }
                REQUIRE(sums[static_cast<std::size_t>(r * tile::panel + c)] == want);
              }
          }
    }
  });
}
