// Mirrors include/qtensor/simd/gemm_group_lines.hpp.
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
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
/// memory does. The last group misses some steps.
template <class A, quads_of Q, index_t Words>
void check_lines(const group_shape& s, index_t count, index_t gap, index_t missing, bool asks) {
  constexpr index_t lanes = simd::lanes<A>, per_byte = Q == quads_of::bytes ? 1 : 2, step = simd::line_step<A, Q>;
  const index_t deep = qtensor::round_up(4 * s.groups * s.quads, step) - missing * step;
  const index_t bytes = deep / per_byte, stride = bytes + gap;
  check::fenced<std::uint8_t> codes((count - 1) * stride + bytes);
  for (index_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<std::uint8_t>(check::random_bits()());
  std::uint8_t table[16];
  for (auto& t : table) t = static_cast<std::uint8_t>(check::random_below(Q == quads_of::wide_nibble_table ? 128 : 32));
  const auto flip = static_cast<std::uint8_t>(check::random_bits()());
  const auto weight = [&](index_t g, index_t k, index_t c) -> std::int32_t {
    const index_t element = 4 * g * s.quads + k;
    if (element >= deep) return 0;
    const int byte = codes[c * stride + element / per_byte] ^ flip;
    if (Q == quads_of::bytes) return static_cast<std::int8_t>(byte) + simd::group_bias<A, Q>;
    const int nibble = byte >> (element % 2 == 0 ? 0 : 4) & 15;
    return Q == quads_of::nibbles ? nibble : table[nibble];
  };

  check::group_case<A> product{s, lanes};
  product.counted = count;
  std::vector<std::int8_t> row(static_cast<std::size_t>(deep));
  std::vector<simd::group_unit<A, Q>> units(static_cast<std::size_t>(s.rows * deep), 77);
  for (index_t r = 0; r < s.rows; ++r) {
    std::copy_n(product.signed_codes.begin() + r * product.stride, std::min(deep, product.deep), row.begin());
    simd::part_line<A, Q>(row.data(), deep, units.data() + r * deep);
  }
  const simd::group_lines lines{codes.data(), stride, bytes, count, flip, asks ? codes.data() : nullptr};
  simd::dot_group_lines<A, Q, Words>(lines, product.columns(nullptr, 0, table), product.rows(units.data(), deep),
                                     s.rows, s.groups, s.quads, product.place());
  product.require_sums(weight, [&](index_t i, index_t) { return at(product.starts, i); });
}

/// Groups of Words words: of as many steps as given where they are whole ones.
template <quads_of Q, index_t Words>
void check_groups() {
  check::on_every_arch([](auto arch) {
    using A = decltype(arch);
    if constexpr (simd::takes_group_lines<A> && Words <= simd::lanes<A>) {
      constexpr index_t quads_of_words = Words * simd::line_step<A, Q> / simd::lanes<A> / 4;
      int i = 0;
      for (const index_t rows : {1, 2, 3})
        for (const index_t groups : {1, 2, 3, 4, 5, 8, 11})
          for (const index_t steps : {1, 2, 3})
            for (int round = 0; round < 16; ++round, i += 11) {
              if (Words < simd::lanes<A> && steps > 1) continue;
              group_shape s = check::numbered_shape(rows, groups, steps * quads_of_words, i);
              s.row_zeros = false;
              const index_t count = round % 3 == 0 ? 1 + round % simd::lanes<A> : simd::lanes<A>;
              check_lines<A, Q, Words>(s, count, round % 2 == 0 ? 0 : 5, round % steps, round % 4 < 2);
            }
    }
  });
}

template <quads_of Q>
void check_parting() {
  check::on_every_arch([](auto arch) {
    using A = decltype(arch);
    using unit = simd::group_unit<A, Q>;
    if constexpr (simd::takes_group_lines<A>) {
      constexpr index_t step = simd::line_step<A, Q>;
      for (const index_t n : {index_t{0}, step, 3 * step})
        for (const bool in_place : {false, true}) {
          const auto codes = check::random_codes<std::int8_t>(n);
          check::fenced<unit> units(n);
          auto* const parted = reinterpret_cast<std::int8_t*>(units.data());
          if (in_place) std::memcpy(parted, codes.data(), static_cast<std::size_t>(n));
          simd::part_line<A, Q>(in_place ? parted : codes.data(), n, units.data());
          for (index_t k = 0; k < n; ++k) {
            const index_t at_step = k % step, half = step / 2;
            const index_t to = Q == quads_of::bytes ? at_step : at_step % 2 * half + at_step / 2;
            REQUIRE(parted[k - at_step + to] == at(codes, k));
          }
        }
    }
  });
}

}  // namespace

TEST_CASE("dot_group_lines: nibbles, groups of some words, and of whole steps, of which the last misses some") {
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
  check_groups<quads_of::bytes, 2>();
  check_groups<quads_of::bytes, 4>();
  check_groups<quads_of::bytes, 8>();
  check_groups<quads_of::bytes, 16>();
}
TEST_CASE("part_line: even and odd elements of each step apart, where two share a byte") {
  check_parting<quads_of::nibbles>();
  check_parting<quads_of::nibble_table>();
  check_parting<quads_of::bytes>();
}
