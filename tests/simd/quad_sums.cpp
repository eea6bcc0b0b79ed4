// Mirrors include/qtensor/simd/quad_sums.hpp.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/simd/quad_sums.hpp>
#include <vector>

#include "check.hpp"

namespace simd = qtensor::simd;
using qtensor::index_t;

namespace {

using sums = std::vector<std::int32_t>;

/// What the definition gives: number(byte) of each byte of a column, or of its lower and of its upper half.
template <class Number>
sums expected(const std::uint8_t* codes, index_t quad_bytes, index_t quads, bool halves, const Number& number) {
  const index_t words = quad_bytes / 4;
  sums all(static_cast<std::size_t>(halves ? 2 * words : words));
  for (index_t q = 0; q < quads; ++q)
    for (index_t b = 0; b < quad_bytes; ++b) {
      const std::uint8_t byte = codes[q * quad_bytes + b];
      const auto c = static_cast<std::size_t>(b / 4);
      all[c] += number(halves ? byte & 15 : byte);
      if (halves) all[c + static_cast<std::size_t>(words)] += number(byte >> 4);
    }
  return all;
}

template <class A>
void every_depth() {
  std::uint8_t table[16];
  for (auto& entry : table) entry = static_cast<std::uint8_t>(check::random_below(128));
  table[3] = 127;
  for (const index_t quad_bytes : {4 * simd::lanes<A>, 8 * simd::lanes<A>})
    for (const index_t quads : {0, 1, 2, 7, 16, 17, 18, 34, 35, 300}) {
      CAPTURE(quad_bytes);
      CAPTURE(quads);
      std::vector<std::uint8_t> codes = check::random_codes<std::uint8_t>(quads * quad_bytes);
      if (quads == 300) std::fill(codes.begin(), codes.end(), std::uint8_t{0xff});
      if (quads == 35) std::fill(codes.begin(), codes.end(), std::uint8_t{0x80});
      check::fenced<std::uint8_t> all(codes);
      const auto with = [&](bool halves, const auto& sum, const auto& number) {
        const sums want = expected(all.data(), quad_bytes, quads, halves, number);
        check::fenced<std::int32_t> to(static_cast<index_t>(want.size()));
        sum(to.data());
        REQUIRE(std::equal(want.begin(), want.end(), to.data()));
      };
      with(
          false, [&](std::int32_t* to) { simd::sum_byte_quads<A>(all.data(), quad_bytes, quads, to); },
          [](int byte) { return int{static_cast<std::int8_t>(byte)}; });
      with(
          true, [&](std::int32_t* to) { simd::sum_nibble_quads<A>(all.data(), quad_bytes, quads, to); },
          [](int nibble) { return nibble; });
      with(
          true, [&](std::int32_t* to) { simd::sum_nibble_quads<A>(all.data(), quad_bytes, quads, table, to); },
          [&](int nibble) { return int{table[nibble]}; });
    }
}

}  // namespace

TEST_CASE("sums of packed quads: bytes, nibbles, entries of a table, on every architecture that is compiled for") {
  check::on_every_arch([](auto arch) { every_depth<decltype(arch)>(); });
}
