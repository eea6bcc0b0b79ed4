// Mirrors include/qtensor/ops/quantized_rows.hpp.
// SPDX-License-Identifier: BSD-3-Clause
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

TEST_CASE("quantize_rows: codes and scales of int8_per_channel, rows of NaN among others") {
  for (const index_t n : {1, 33, 512, 3000}) {
    const index_t rows = 37, step = n + 2;
    auto x = check::numbers(rows * n, static_cast<unsigned>(n));
    x[static_cast<std::size_t>(20 * n)] = quiet_nan;
    const auto want = check::expected<int8_per_channel<0>, row_major>(x, matrix_extents(rows, n));
    std::vector<float> apart(static_cast<std::size_t>(rows * step)), scales(static_cast<std::size_t>(rows));
    for (index_t r = 0; r < rows; ++r) std::copy_n(x.data() + r * n, n, apart.data() + r * step);
    std::vector<std::int8_t> codes(static_cast<std::size_t>(n));
    index_t seen = 0;
    ops::quantize_rows(apart.data(), step, rows, n, scales.data(), [&](index_t r, const auto& encode) {
      REQUIRE(r == seen++);
      encode(codes.data());
      REQUIRE(check::same_or_nan(scales[static_cast<std::size_t>(r)], want.scales()[static_cast<std::size_t>(r)]));
      for (index_t k = 0; k < n; ++k)
        REQUIRE(codes[static_cast<std::size_t>(k)] == want.codes()[static_cast<std::size_t>(r * n + k)]);
    });
    CHECK(seen == rows);
  }
}
