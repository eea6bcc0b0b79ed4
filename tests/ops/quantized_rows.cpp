// Mirrors include/qtensor/ops/quantized_rows.hpp.
// SPDX-License-Identifier: BSD-3-Clause
#include <numeric>
#include <qtensor/ops/quantized_rows.hpp>

#include "../simd/check.hpp"
#include "check.hpp"

using namespace qtensor;

TEST_CASE("quantize_row_groups: codes and scales of int8_group, whatever the group") {
  using S = scheme<int8, group<dynamic>>;
  for (const bool awkward : {false, true})
    for (const index_t n : {1, 31, 64, 333, 1024})
      for (const index_t size : {1, 3, 16, 32, 64, 192, 1024}) {
        auto x = check::numbers(n, static_cast<unsigned>(n + 5000 * size), awkward);
        if (n > 300) x[static_cast<std::size_t>(n / 2)] = awkward ? infinity : 0.f;
        const auto want = check::expected<S, row_major>(x, matrix_extents(1, n), group<dynamic>(size));
        const index_t groups = divide_up(n, size);
        check::fenced<float> values(x);
        check::fenced<float> scales(groups);
        check::fenced<std::int8_t> codes(n);
        std::vector<std::uint32_t> amax(static_cast<std::size_t>(groups));
        ops::quantize_row_groups<ops::row_scheme>(values.data(), n, size, amax.data(), scales.data(), codes.data());
        for (index_t g = 0; g < groups; ++g)
          REQUIRE(check::same_or_nan(scales[g], want.scales()[static_cast<std::size_t>(g)]));
        for (index_t k = 0; k < n; ++k) REQUIRE(codes[k] == want.codes()[static_cast<std::size_t>(k)]);
      }
}

namespace {

void check_rows(index_t n, index_t step) {
  constexpr index_t rows = 37;
  auto x = check::numbers(rows * n, static_cast<unsigned>(n));
  x[static_cast<std::size_t>(20 * n)] = quiet_nan;
  const auto want = check::expected<int8_per_channel<0>, row_major>(x, matrix_extents(rows, n));
  check::fenced<float> apart((rows - 1) * step + n);
  std::vector<float> scales(static_cast<std::size_t>(rows));
  for (index_t r = 0; r < rows; ++r) std::copy_n(x.data() + r * n, n, apart.data() + r * step);
  check::fenced<std::int8_t> codes(n), room(n);
  index_t seen = 0;
  ops::quantize_rows(apart.data(), step, rows, n, scales.data(), [&](index_t r, const auto& of_row) {
    REQUIRE(r == seen++);
    of_row.write(codes.data());
    REQUIRE(std::equal(codes.data(), codes.data() + n, of_row.read(room.data())));
    REQUIRE(check::same_or_nan(scales[static_cast<std::size_t>(r)], want.scales()[static_cast<std::size_t>(r)]));
    for (index_t k = 0; k < n; ++k) REQUIRE(codes[k] == want.codes()[static_cast<std::size_t>(r * n + k)]);
  });
  CHECK(seen == rows);
}

}  // namespace

TEST_CASE("quantize_rows: codes and scales of int8_per_channel, rows of NaN among others, side by side or with gaps") {
  std::vector<index_t> sizes(70);
  std::iota(sizes.begin(), sizes.end(), 1);
  for (const index_t n : {512, 1000, 1024, 1025, 3000}) sizes.push_back(n);
  for (const index_t n : sizes)
    for (const index_t step : {n, n + 2}) check_rows(n, step);
}
