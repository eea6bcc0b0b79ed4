// Mirrors include/qtensor/ops/requantize.hpp.
// SPDX-License-Identifier: BSD-3-Clause
#include <cmath>
#include <limits>
#include <qtensor/ops/requantize.hpp>
#include <vector>

#include "../simd/check.hpp"

namespace simd = qtensor::simd;
using namespace qtensor;

namespace {

std::vector<float> some_floats(index_t n, bool may_be_special) {
  std::vector<float> out(static_cast<std::size_t>(n));
  for (float& x : out) {
    x = static_cast<float>(1 + check::random_below(4096)) * 0x1p-12f;
    if (may_be_special && check::random_below(4) == 0) x = check::hard_float();
  }
  return out;
}
std::int32_t some_sum() {
  const auto bits = static_cast<std::int32_t>(check::random_bits()());
  return check::random_below(3) == 0 ? 0 : bits >> check::random_below(32);
}

/// Tiles as engines make them, of one row of vectors or two, into memory that ends with the last code.
template <class Y, class A>
void check_tiles(index_t stride, bool row_scales, bool column_scales, bool shifted, bool special) {
  constexpr index_t most_rows = 5, col = 8;
  for (index_t rows = 1; rows <= most_rows; ++rows)
    for (index_t cols = 1; cols <= stride; ++cols) {
      const index_t outputs = col + cols;
      const auto by_row = some_floats(row_scales ? rows : 1, special),
                 by_column = some_floats(column_scales ? outputs : 1, special),
                 shifts = some_floats(shifted ? outputs : 0, special);
      const float divisor = some_floats(1, false)[0] * (special ? 1e-30f : 4.f);
      const auto zero = static_cast<Y>(check::random_bits()());
      check::fenced<std::int32_t> sums(rows * stride);
      for (index_t i = 0; i < sums.size(); ++i) sums[i] = some_sum();
      check::fenced<Y> y(rows * outputs);
      std::fill_n(y.data(), y.size(), Y{77});
      const ops::requantization<Y, A> how(by_row, by_column, divisor, shifts, zero, outputs);
      ops::store_requantized<Y, A>{
          how, {y.data(), rows, outputs, outputs, 1}}(integer_tile{0, col, rows, cols, sums.data(), stride});
      const auto at = [](const std::vector<float>& list, index_t i, float none) {
        return list.empty() ? none : list[list.size() == 1 ? 0 : static_cast<std::size_t>(i)];
      };
      for (index_t r = 0; r < rows; ++r)
        for (index_t c = 0; c < outputs; ++c) {
          const Y got = y[r * outputs + c];
          if (c < col) {
            REQUIRE(got == 77);
            continue;
          }
          const float f = rounded(rounded(at(by_row, r, 1.f) * at(by_column, c, 1.f)) / divisor);
          const float sum = static_cast<float>(sums[r * stride + c - col]);
          const float moved = shifted ? rounded(sum + at(shifts, c, 0.f)) : sum;
          const float q = std::nearbyint(rounded(moved * f)) + static_cast<float>(zero);
          constexpr float low = std::numeric_limits<Y>::min(), high = std::numeric_limits<Y>::max();
          const Y want = q != q ? Y{0} : static_cast<Y>(q < low ? low : q > high ? high : q);
          CAPTURE(sum);
          CAPTURE(f);
          CAPTURE(moved);
          REQUIRE(got == want);
        }
    }
}

}  // namespace

TEST_CASE_TEMPLATE("store_requantized: every size of tile, scales and shifts of any kind, NaN gives 0", Y, std::int8_t,
                   std::uint8_t) {
  check::archs::for_each([&](auto arch) {
    using A = decltype(arch);
    for (const index_t stride : {2 * simd::lanes<A>, 4 * simd::lanes<A>})
      for (int choice = 0; choice < 16; ++choice)
        check_tiles<Y, A>(stride, (choice & 1) != 0, (choice & 2) != 0, (choice & 4) != 0, (choice & 8) != 0);
  });
}
TEST_CASE("requantization: no rows or no columns need no scales") {
  const float one[] = {1.f};
  const ops::requantization<std::int8_t> none({}, one, 1.f, {}, 0, 5), empty(one, {}, 1.f, {}, 0, 0);
  CHECK(none.has_row_scales());
  CHECK_FALSE(empty.has_row_scales());
}
