// Mirrors include/qtensor/simd/entry_pattern.hpp: every element of a tensor against its place along each dimension.
// SPDX-License-Identifier: BSD-3-Clause
#include <cstdint>
#include <qtensor/simd/entry_pattern.hpp>
#include <vector>

#include "check.hpp"

using namespace qtensor;

namespace {

struct dimension {
  index_t extent, run;
};

/// A list of numbers that differ, entry by entry; from the innermost dimension outwards.
std::vector<index_t> entries_of(const std::vector<dimension>& dims) {
  index_t count = 1;
  for (const auto& d : dims) count *= d.extent;
  std::vector<index_t> out(static_cast<std::size_t>(count), 0);
  for (index_t i = 0; i < count; ++i) {
    index_t at = i, step = 1;
    for (std::size_t d = dims.size(); d-- > 0; at /= dims[d].extent) {
      out[static_cast<std::size_t>(i)] += at % dims[d].extent / dims[d].run * step;
      step *= dims[d].extent / dims[d].run;
    }
  }
  return out;
}

template <class T>
void check_spread(const std::vector<dimension>& dims) {
  simd::entry_pattern pattern;
  for (const auto& d : dims) pattern.append(d.extent, d.run);
  const std::vector<index_t> expected = entries_of(dims);
  const auto count = static_cast<index_t>(expected.size());
  constexpr index_t room = simd::entry_pattern::longest + simd::lanes<simd::best_arch>;
  for (index_t at = 0; at < count; at += 1 + at / 3)
    for (const index_t longest : {index_t{1}, index_t{2}, index_t{7}, index_t{64}, index_t{500}, index_t{1024}}) {
      const index_t n = std::min(longest, count - at);
      check::fenced<T> to(room);
      index_t last = -1;
      pattern.spread(pattern.find(at), at, n, to.data(), [&](index_t first, index_t some, T* list) {
        for (index_t i = 0; i < some; ++i) list[i] = static_cast<T>(first + i);
        last = std::max(last, first + some - 1);
      });
      const auto [entry, alike, in_order] = pattern.find(at);
      bool ok = entry == expected[static_cast<std::size_t>(at)], one = true;
      index_t greatest = 0;
      for (index_t i = 0; i < n; ++i) {
        const index_t e = expected[static_cast<std::size_t>(at + i)];
        ok = ok && to[i] == static_cast<T>(e);
        one = one && e == expected[static_cast<std::size_t>(at)];
        greatest = std::max(greatest, e);
      }
      INFO("at ", at, " n ", n);
      CHECK((alike >= n) <= one);
      for (index_t i = 0; i < std::min(n, in_order); ++i)
        ok = ok && expected[static_cast<std::size_t>(at + i)] ==
                       expected[static_cast<std::size_t>(at)] + (at % pattern.run() + i) / pattern.run();
      CHECK(ok);
      CHECK(last == greatest);
    }
}

}  // namespace

TEST_CASE("entry_pattern: runs, lines and their copies, wherever a stretch begins") {
  const std::vector<dimension> patterns[] = {
      {},
      {{1500, 1500}},
      {{1500, 1}},
      {{1500, 3}},
      {{300, 1}, {5, 5}},
      {{300, 300}, {5, 1}},
      {{300, 1}, {5, 1}},
      {{40, 40}, {3, 1}, {12, 12}},
      {{5, 1}, {30, 30}, {10, 2}},
      {{6, 2}, {1, 1}, {4, 4}, {50, 1}},
      {{6, 6}, {4, 2}, {6, 3}, {5, 5}, {2, 1}},
      {{3, 1}, {700, 1}},
      {{2, 1}, {2, 2}, {400, 200}},
      {{1, 1}, {1300, 650}},
  };
  for (const auto& dims : patterns) {
    check_spread<float>(dims);
    check_spread<std::int32_t>(dims);
  }
}

TEST_CASE("entry_pattern: stretches of one entry are known") {
  simd::entry_pattern rows;
  rows.append(4, 1);
  rows.append(10, 10);
  CHECK(rows.find(10).alike == 10);
  CHECK(rows.find(19).alike == 1);
  CHECK(rows.find(10).in_order == 30);
  CHECK(rows.find(39).entry == 3);
  CHECK(rows.run() == 10);
  CHECK(simd::entry_pattern{}.find(7).alike > 1 << 20);
}
