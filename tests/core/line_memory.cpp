// Mirrors include/qtensor/core/line_memory.hpp.
// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <cstring>
#include <qtensor/core/line_memory.hpp>
#include <utility>
#include <vector>

using qtensor::detail::line_memory;

TEST_CASE("line_memory: begins on a cache line, holds its bytes, moves, and may be none") {
  CHECK(line_memory().data() == nullptr);
  std::vector<line_memory> some;
  for (std::size_t bytes = 0; bytes < 300; bytes += 7) {
    line_memory& m = some.emplace_back(bytes);
    REQUIRE(m.data() != nullptr);
    CHECK(reinterpret_cast<std::uintptr_t>(m.data()) % line_memory::line == 0);
    std::memset(m.data(), static_cast<int>(bytes), bytes);
  }
  std::size_t bytes = 0;
  for (line_memory& m : some) {
    const std::byte* const at = m.data();
    const line_memory moved = std::move(m);
    CHECK(moved.data() == at);
    CHECK(m.data() == nullptr);
    for (std::size_t i = 0; i < bytes; ++i) REQUIRE(at[i] == static_cast<std::byte>(bytes));
    bytes += 7;
  }
}
