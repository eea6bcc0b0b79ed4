// Mirrors include/qtensor/simd/reduce.hpp. Built once per architecture level.
// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <qtensor/simd/reduce.hpp>
#include <vector>

using namespace qtensor;
using byte_list = std::vector<std::uint8_t>;

namespace {

/// Bytes with no pattern, every value among the first 256.
byte_list some_bytes(index_t n) {
  byte_list x(static_cast<std::size_t>(n));
  std::uint32_t state = 12345;
  for (std::size_t i = 0; i < x.size(); ++i) {
    state = state * 1664525u + 1013904223u;
    x[i] = i < 256 ? static_cast<std::uint8_t>(i * 89) : static_cast<std::uint8_t>(state >> 24);
  }
  return x;
}

template <class A>
void check_rows(const std::uint8_t* x, index_t n, std::uint8_t flip) {
  std::uint64_t sum = 0;
  std::uint8_t high = 0, low = 0xff;
  for (index_t i = 0; i < n; ++i) {
    const auto v = static_cast<std::uint8_t>(x[i] ^ flip);
    sum += v;
    high = std::max(high, v);
    low = std::min(low, v);
  }
  INFO(simd::arch_name<A>, " n=", n, " flip=", int{flip});
  REQUIRE(simd::sum_bytes<A>(x, n, flip) == sum);
  REQUIRE(simd::extreme_bytes<simd::largest, A>(x, n, flip) == high);
  REQUIRE(simd::extreme_bytes<simd::smallest, A>(x, n, flip) == low);
}

template <class A>
void check_columns(const byte_list& x, index_t rows, index_t stride, index_t cols, std::uint8_t flip) {
  INFO(simd::arch_name<A>, " rows=", rows, " cols=", cols, " flip=", int{flip});
  const auto n = static_cast<std::size_t>(cols);
  std::vector<std::uint32_t> sums(n + 1, 7), expected(n + 1, 7);
  byte_list high(n + 1, 3), low(n + 1, 250), want_high = high, want_low = low;
  for (index_t r = 0; r < rows; ++r)
    for (std::size_t c = 0; c < n; ++c) {
      const auto v = static_cast<std::uint8_t>(x[static_cast<std::size_t>(r * stride) + c] ^ flip);
      expected[c] += v;
      want_high[c] = std::max(want_high[c], v);
      want_low[c] = std::min(want_low[c], v);
    }
  simd::add_columns<A>(x.data(), rows, stride, cols, flip, sums.data());
  simd::extreme_columns<simd::largest, A>(x.data(), rows, stride, cols, flip, high.data());
  simd::extreme_columns<simd::smallest, A>(x.data(), rows, stride, cols, flip, low.data());
  REQUIRE(sums == expected);
  REQUIRE(high == want_high);
  REQUIRE(low == want_low);
}

}  // namespace

TEST_CASE("sums and extremes of bytes: every length up to 9 batches, and lengths that empty the 16-bit sums") {
  const byte_list x = some_bytes(140000);
  simd::archs::for_each([&]<class A>(A) {
    for (index_t n = 0; n <= 9 * 4 * simd::lanes<A> + 3; ++n)
      for (std::uint8_t flip : {0, 0x80}) check_rows<A>(x.data() + n % 7, n, flip);
    for (index_t n : {70000, 131072, 139999}) check_rows<A>(x.data(), n, 0x80);
  });
}

TEST_CASE("sums of bytes do not overflow: nothing but 255") {
  const byte_list x(200000, 0xff);
  simd::archs::for_each([&]<class A>(A) {
    check_rows<A>(x.data(), 200000, 0);
    check_columns<A>(x, 1000, 200, 200, 0);
  });
}

TEST_CASE("columns: every width up to 3 batches, rows around the run and the depth of 16-bit sums, several panels") {
  const byte_list x = some_bytes(700 * 230 + 8300 * 9);
  simd::archs::for_each([&]<class A>(A) {
    for (index_t cols = 0; cols <= 3 * 4 * simd::lanes<A> + 2; ++cols) check_columns<A>(x, 11, cols + 5, cols, 0x80);
    for (index_t rows : {0, 1, 7, 8, 9, 255, 256, 257, 520}) check_columns<A>(x, rows, 201, 200, 0);
    check_columns<A>(x, 9, 8300, 8250, 0x80);
  });
}

TEST_CASE("sums of rows as ints: every length up to 5 batches, a slope and a base; sums of a sliding window") {
  const byte_list x = some_bytes(2000);
  simd::archs::for_each([&]<class A>(A) {
    for (index_t n = 0; n <= 5 * simd::lanes<A> + 3; ++n)
      for (index_t count : {0, 1, 3, 9}) {
        std::vector<const std::uint8_t*> rows;
        for (index_t r = 0; r < count; ++r) rows.push_back(x.data() + 130 * r);
        std::vector<std::int32_t> out(static_cast<std::size_t>(n) + 1, 77), slid = out;
        simd::sum_rows<A>(rows.data(), count, n, 0x80, -3, 11, out.data());
        const index_t slides = std::max<index_t>(n - 6, 0);
        simd::slide_sums<A>(out.data(), slides, 3, 3, 5, slid.data());
        INFO(simd::arch_name<A>, " n=", n, " count=", count);
        for (index_t c = 0; c < n; ++c) {
          std::int32_t sum = 0;
          for (const std::uint8_t* row : rows) sum += row[c] ^ 0x80;
          REQUIRE(out[static_cast<std::size_t>(c)] == -3 * sum + 11);
        }
        for (std::size_t c = 0; c < static_cast<std::size_t>(slides); ++c)
          REQUIRE(slid[c] == 5 + out[c] + out[c + 3] + out[c + 6]);
        REQUIRE(out.back() == 77);
        REQUIRE(slid[static_cast<std::size_t>(slides)] == 77);
      }
  });
}
