// Mirrors include/qtensor/simd/gemm_group_lines.hpp.
// SPDX-License-Identifier: BSD-3-Clause
#include <cstring>
#include <qtensor/simd/gemm_group_lines.hpp>

#include "groups_check.hpp"

namespace simd = qtensor::simd;
using check::at;
using check::group_shape;
using qtensor::index_t;
using simd::quads_of;

namespace {

/// Lines of codes side by side or with gaps, of as many columns as there are or fewer, of which the last ends where
/// memory does.
template <class A, quads_of Q, index_t Words>
void check_lines(const group_shape& s, index_t count, index_t gap, bool asks) {
  constexpr index_t lanes = simd::lanes<A>, per_byte = Q == quads_of::bytes ? 1 : 2, step = simd::line_step<A, Q>;
  const index_t deep = 4 * s.groups * s.quads, bytes = deep / per_byte, stride = bytes + gap;
  check::fenced<std::uint8_t> codes((count - 1) * stride + bytes);
  for (index_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<std::uint8_t>(check::random_bits()());
  std::uint8_t table[16];
  for (auto& t : table) t = static_cast<std::uint8_t>(check::random_below(Q == quads_of::wide_nibble_table ? 128 : 32));
  const auto flip = static_cast<std::uint8_t>(check::random_bits()());
  const auto weight = [&](index_t g, index_t k, index_t c) -> std::int32_t {
    const index_t element = 4 * g * s.quads + k;
    const int byte = codes[c * stride + element / per_byte] ^ flip;
    if (Q == quads_of::bytes) return byte;
    const int nibble = byte >> (element % 2 == 0 ? 0 : 4) & 15;
    return Q == quads_of::nibbles ? nibble : table[nibble];
  };

  check::group_case<A> product{s, lanes};
  product.counted = count;
  const index_t whole = qtensor::round_up(deep, step);
  std::vector<std::int8_t> units(static_cast<std::size_t>(s.rows * whole), 0);
  for (index_t r = 0; r < s.rows; ++r) {
    std::memcpy(units.data() + r * whole, product.signed_codes.data() + r * product.stride,
                static_cast<std::size_t>(deep));
    simd::part_line<A, Q>(units.data() + r * whole, whole);
  }
  const simd::group_lines lines{codes.data(), stride, bytes, count, flip, asks ? codes.data() : nullptr};
  simd::dot_group_lines<A, Q, Words>(lines, product.columns(nullptr, 0, table), product.rows(units.data(), whole),
                                     s.rows, s.groups, s.quads, product.place());
  product.require_sums(weight, [&](index_t i, index_t) { return at(product.starts, i); });
}

/// Groups of Words words: of as many steps as given where they are whole ones.
template <quads_of Q, index_t Words>
void check_groups() {
  check::on_every_arch([](auto arch) {
    using A = decltype(arch);
    if constexpr (simd::takes_group_lines<A, Q> && Words <= simd::lanes<A>) {
      constexpr index_t quads_of_words = Words * (Q == quads_of::bytes ? 1 : 2);
      int i = 0;
      for (const index_t rows : {1, 2, 3})
        for (const index_t groups : {1, 2, 3, 4, 5, 8, 11})
          for (const index_t steps : {1, 2, 3})
            for (int round = 0; round < 16; ++round, i += 11) {
              if (Words < simd::lanes<A> && steps > 1) continue;
              group_shape s = check::numbered_shape(rows, groups, steps * quads_of_words, i);
              s.row_zeros = false;
              const index_t count = round % 3 == 0 ? 1 + round % simd::lanes<A> : simd::lanes<A>;
              check_lines<A, Q, Words>(s, count, round % 2 == 0 ? 0 : 5, round % 4 < 2);
            }
    }
  });
}

/// One group of any length.
template <quads_of Q>
void check_one_group() {
  check::on_every_arch([](auto arch) {
    using A = decltype(arch);
    if constexpr (simd::takes_group_lines<A, Q>)
      for (index_t quads = 1, i = 0; quads < 70; ++quads, i += 5) {
        group_shape s = check::numbered_shape(1 + quads % 2, 1, quads, static_cast<int>(i));
        s.row_zeros = false;
        check_lines<A, Q, simd::lanes<A>>(s, simd::lanes<A>, 0, false);
      }
  });
}

template <quads_of Q>
void check_parting() {
  check::on_every_arch([](auto arch) {
    using A = decltype(arch);
    if constexpr (simd::takes_group_lines<A, Q>) {
      constexpr index_t step = simd::line_step<A, Q>, n = 3 * step;
      const auto codes = check::random_codes<std::int8_t>(n);
      auto parted = codes;
      simd::part_line<A, Q>(parted.data(), n);
      for (index_t k = 0; k < n; ++k) {
        const index_t in_step = k % step, to = Q == quads_of::bytes ? in_step : in_step % 2 * (step / 2) + in_step / 2;
        REQUIRE(at(parted, k / step * step + to) == at(codes, k));
      }
    }
  });
}

}  // namespace

TEST_CASE("dot_group_lines: nibbles, groups of half a quarter of a step, a quarter, a half, and whole steps") {
  check_groups<quads_of::nibbles, 2>();
  check_groups<quads_of::nibbles, 4>();
  check_groups<quads_of::nibbles, 8>();
  check_groups<quads_of::nibbles, 16>();
}
TEST_CASE("dot_group_lines: nibbles by tables") {
  check_groups<quads_of::nibble_table, 4>();
  check_groups<quads_of::wide_nibble_table, 2>();
  check_groups<quads_of::wide_nibble_table, 16>();
}
TEST_CASE("dot_group_lines: bytes") {
  check_groups<quads_of::bytes, 4>();
  check_groups<quads_of::bytes, 8>();
  check_groups<quads_of::bytes, 16>();
}
TEST_CASE("dot_group_lines: one group of any length") {
  check_one_group<quads_of::nibbles>();
  check_one_group<quads_of::bytes>();
}
TEST_CASE("part_line: even and odd elements of each step apart, where two share a byte") {
  check_parting<quads_of::nibbles>();
  check_parting<quads_of::nibble_table>();
  check_parting<quads_of::bytes>();
}
