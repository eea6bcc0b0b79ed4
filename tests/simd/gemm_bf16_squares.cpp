// Mirrors include/qtensor/simd/gemm_bf16_squares.hpp.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/simd/gemm_bf16_squares.hpp>
#include <vector>

#include "check.hpp"

namespace simd = qtensor::simd;
using qtensor::float_of;
using qtensor::index_t;

namespace {

// Unused where no level has squares.
/// Integers, whose sums are exact in any order.
[[maybe_unused]] float integer() { return static_cast<float>(static_cast<int>(check::random_below(255)) - 127); }
[[maybe_unused]] std::uint32_t bits_of_bf16(float x) { return qtensor::bits_of(x) >> 16; }

template <class A>
void check_sum(index_t rows, index_t vectors, index_t pairs) {
  using squares = simd::bf16_squares<A>;
  constexpr index_t width = simd::float_tile<A>::panel;
  const index_t cols = vectors * simd::lanes<A>, high = qtensor::round_up(rows, squares::row_step),
                deep = qtensor::round_up(pairs, squares::pair_step), panel_stride = cols + vectors % 2,
                x_stride = 2 * deep + 4;
  check::fenced<std::uint32_t> panel(deep == 0 ? 0 : (deep - 1) * panel_stride + cols);
  check::fenced<std::uint16_t> x(high == 0 || deep == 0 ? 0 : (high - 1) * x_stride + 2 * deep);
  for (index_t i = 0; i < panel.size(); ++i)
    panel[i] = i / panel_stride < pairs ? bits_of_bf16(integer()) | bits_of_bf16(integer()) << 16 : 0;
  for (index_t i = 0; i < x.size(); ++i) x[i] = static_cast<std::uint16_t>(bits_of_bf16(integer()));
  std::vector<float> sums(static_cast<std::size_t>(high * width), 7.f);
  const index_t part = pairs / 2 / squares::pair_step * squares::pair_step;
  const auto add = [&](index_t from, index_t count, bool first) {
    squares::sum(panel.data() + from * panel_stride, panel_stride, vectors, {x.data() + 2 * from, x_stride}, rows,
                 count, sums.data(), first);
  };
  add(0, part, true);
  add(part, pairs - part, false);
  for (index_t r = 0; r < high; ++r)
    for (index_t c = 0; c < width; ++c) {
      float want = c < cols ? 0.f : 7.f;
      for (index_t i = 0; i < pairs && c < cols; ++i) {
        const std::uint32_t two = panel[i * panel_stride + c];
        want += float_of(std::uint32_t{x[r * x_stride + 2 * i]} << 16) * float_of(two << 16) +
                float_of(std::uint32_t{x[r * x_stride + 2 * i + 1]} << 16) * float_of(two & 0xffff0000u);
      }
      if (r < rows) REQUIRE(sums[static_cast<std::size_t>(r * width + c)] == want);
    }
}

template <class A>
void check_sums() {
  if constexpr (simd::square_unit<A>::exists) {
    if (!simd::uses_squares<A>()) return;
    for (const index_t rows : {1, 15, 16, 17, 32, 33, 48, 63})
      for (index_t vectors = 1; vectors <= simd::float_tile<A>::panel_vectors; ++vectors)
        for (const index_t pairs : {1, 7, 16, 32, 70}) check_sum<A>(rows, vectors, pairs);
  }
}

}  // namespace

TEST_CASE("bf16_squares: every tile is the sum of its products, in one go or continued, and nothing beyond is read") {
  check::on_every_arch([](auto arch) { check_sums<decltype(arch)>(); });
}

TEST_CASE("bf16_squares: at most as many rows at a time as are left, in whole squares but for the last") {
  using squares = simd::bf16_squares<simd::best_arch>;
  for (index_t left = 1; left < 500; ++left) {
    const index_t rows = squares::rows(left);
    CHECK((rows == left || (rows < left && rows % squares::row_step == 0)));
  }
}
