// Mirrors include/qtensor/ops/line_array.hpp.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/ops/line_array.hpp>

#include "../simd/check.hpp"

using namespace qtensor;

TEST_CASE("line_array: begins on a cache line, holds zeros, and moves with its memory") {
  for (const index_t n : {0, 1, 15, 16, 17, 1000}) {
    ops::line_array<std::int32_t> some(n);
    CHECK(some.size() == n);
    CHECK(reinterpret_cast<std::uintptr_t>(some.data()) % 64 == 0);
    for (index_t i = 0; i < n; ++i) REQUIRE(some[i] == 0);
    const auto* const at = some.data();
    const ops::line_array<std::int32_t> moved = std::move(some);
    CHECK(moved.data() == at);
    auto other = ops::line_array<std::int32_t>::for_overwrite(n);
    for (index_t i = 0; i < n; ++i) other[i] = 7;
    CHECK(reinterpret_cast<std::uintptr_t>(other.data()) % 64 == 0);
  }
}

TEST_CASE("line_parts: arrays of one allocation, each from a line on, none where it has no elements") {
  using ops::line_parts;
  line_parts all(line_parts::room<std::uint8_t>(70) + line_parts::room<float>(3) + line_parts::room<float>(0));
  std::uint8_t* const bytes = all.take<std::uint8_t>(70);
  float* const floats = all.take<float>(3);
  CHECK(reinterpret_cast<std::uintptr_t>(bytes) % 64 == 0);
  CHECK(reinterpret_cast<std::uint8_t*>(floats) == bytes + 128);
  CHECK(all.take<float>(0) == nullptr);
}
