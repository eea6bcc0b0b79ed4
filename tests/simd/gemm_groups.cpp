// Mirrors include/qtensor/simd/gemm_groups.hpp.
// SPDX-License-Identifier: BSD-3-Clause
#include <cmath>
#include <qtensor/simd/gemm_groups.hpp>
#include <vector>

#include "check.hpp"

namespace simd = qtensor::simd;
using qtensor::index_t;
using simd::quads_of;

namespace {

std::vector<float> numbers(index_t n) {
  std::vector<float> v(static_cast<std::size_t>(n));
  for (float& x : v) x = static_cast<float>(static_cast<int>(check::random_bits()())) * 0x1p-31f;
  return v;
}
std::vector<std::int32_t> integers(index_t n, std::int32_t low, std::int32_t high) {
  std::vector<std::int32_t> v(static_cast<std::size_t>(n));
  for (auto& x : v)
    x = low + static_cast<std::int32_t>(check::random_below(static_cast<std::uint32_t>(high - low + 1)));
  return v;
}
template <class T>
T at(const std::vector<T>& v, index_t i) {
  return v[static_cast<std::size_t>(i)];
}

struct shape {
  index_t rows, groups, quads;
  bool row_zeros, zeros, offsets, scales, first, row_scales, last, wide;
};

template <class A, quads_of Q>
void check_tile(const shape& s) {
  using unit = simd::group_unit<A, Q>;
  constexpr bool ready = Q == quads_of::ready_bytes, bytes = Q == quads_of::bytes || ready;
  const index_t cols = (s.wide ? 2 : 1) * simd::group_tile<A>::columns, half = cols / 2;
  const index_t quad_bytes = ready   ? 4 * cols
                             : bytes ? 4 * cols + 64 * (s.rows % 2)
                                     : 2 * cols,
                all = s.groups * s.quads;
  check::fenced<std::uint8_t> codes(quad_bytes * (all - 1) + (bytes ? 4 : 2) * cols);
  for (index_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<std::uint8_t>(check::random_bits()());
  std::uint8_t table[16];
  for (auto& t : table) t = static_cast<std::uint8_t>(check::random_below(Q == quads_of::wide_nibble_table ? 128 : 32));
  const auto weight = [&](index_t g, index_t k, index_t c) -> std::int64_t {
    const std::uint8_t* quad = codes.data() + (g * s.quads + k / 4) * quad_bytes + k % 4;
    if (ready) return quad[4 * c];
    if (bytes) return static_cast<std::int8_t>(quad[4 * c]);
    const int nibble = quad[4 * (c % half)] >> (c < half ? 0 : 4) & 15;
    return Q == quads_of::nibbles ? nibble : table[nibble];
  };
  // Signed codes, and the units that pack_units makes of them where they are wider.
  const index_t stride = 4 * all + 3, entries = s.rows + 2;
  const auto signed_codes = check::random_codes<std::int8_t>(s.rows * stride);
  std::vector<unit> units(signed_codes.size());
  for (index_t r = 0; r < s.rows; ++r)
    if constexpr (sizeof(unit) == 1)
      for (index_t k = 0; k < 4 * all; ++k)
        units[static_cast<std::size_t>(r * stride + k)] = at(signed_codes, r * stride + k);
    else
      simd::pack_units<A>(reinterpret_cast<const std::uint8_t*>(signed_codes.data()) + r * stride, 4 * all,
                          simd::code_sign::is_signed, units.data() + r * stride);
  const index_t n = s.groups * entries, m = s.groups * cols;
  auto starts = integers(n, -1000, 1000);
  auto second = simd::group_shares<A, Q> ? starts : integers(n, -1000, 1000);
  if (simd::group_shares<A, Q>)
    for (auto& v : second) v *= 17;
  const auto sums = integers(n, -4000, 4000), row_zeros = integers(n, -255, 255);
  const auto zeros = integers(m, -255, 255), column_sums = integers(m, -9000, 9000);
  const auto scales = numbers(n), terms = numbers(n), column_scales = numbers(m), offsets = numbers(m);
  const auto factored = [](std::vector<std::int32_t> v, bool small) {
    for (auto& f : v) f = small ? simd::small_factor<A>(f) : simd::large_factor<A>(f);
    return v;
  };
  const auto sum_factors = factored(sums, false), row_zero_factors = factored(row_zeros, true),
             zero_factors = factored(zeros, true), column_sum_factors = factored(column_sums, false);
  const simd::group_rows<unit> x{units.data(),
                                 stride,
                                 entries,
                                 {starts.data(), second.data()},
                                 sum_factors.data(),
                                 s.row_zeros ? row_zero_factors.data() : nullptr,
                                 s.scales ? scales.data() : nullptr,
                                 terms.data()};
  const simd::group_columns w{codes.data(),
                              quad_bytes,
                              cols,
                              table,
                              column_scales.data(),
                              s.offsets ? offsets.data() : nullptr,
                              s.zeros ? zero_factors.data() : nullptr,
                              column_sum_factors.data(),
                              4096};
  const index_t sums_stride = cols + 16;
  auto y = numbers(s.rows * sums_stride);
  const auto before = y;
  // In two goes, the second from where `from` says.
  const index_t part = s.wide ? 0 : s.groups / 2;
  const auto row_scales = numbers(s.rows), last = numbers(1);
  simd::group_sums place{s.first ? nullptr : before.data(), sums_stride, y.data(), sums_stride};
  if (s.row_scales) place.row_scales = row_scales.data();
  if (s.last) place.last = at(last, 0);
  if constexpr (Q == quads_of::bytes)
    if (s.wide) simd::dot_groups_wide<A>(w, x, s.groups, s.quads, place);
  if (part > 0) simd::dot_groups<A, Q>(w, x, s.rows, part, s.quads, place.without_end());
  if (!s.wide)
    simd::dot_groups<A, Q>(w.from(part, s.quads), x.from(0, part, 4 * s.quads), s.rows, s.groups - part, s.quads,
                           part > 0 ? place.behind() : place);
  for (index_t r = 0; r < s.rows; ++r)
    for (index_t c = 0; c < sums_stride; ++c) {
      float want = at(before, r * sums_stride + c);
      if (c < cols && s.first) want = 0.f;
      for (index_t g = 0; g < s.groups && c < cols; ++g) {
        const index_t i = g * entries + r, j = g * cols + c;
        std::int64_t dot =
            at(c % (2 * simd::lanes<A>) < simd::lanes<A> || simd::group_shares<A, Q> ? starts : second, i);
        for (index_t k = 0; k < 4 * s.quads; ++k)
          dot += (weight(g, k, c) + simd::group_bias<A, Q>)*at(signed_codes, r * stride + g * 4 * s.quads + k);
        if (s.zeros) dot += std::int64_t{at(sums, i)} * at(zeros, j);
        if (s.row_zeros) dot += std::int64_t{at(row_zeros, i)} * at(column_sums, j);
        const float p = s.scales ? qtensor::rounded(at(column_scales, j) * at(scales, i)) : at(column_scales, j);
        want = std::fma(static_cast<float>(dot), p, want);
        if (s.offsets) want = std::fma(at(terms, i), at(offsets, j), want);
      }
      if (c < cols && s.row_scales) want = qtensor::rounded(want * at(row_scales, r));
      if (c < cols && s.last) want = qtensor::rounded(want * at(last, 0));
      REQUIRE(at(y, r * sums_stride + c) == want);
    }
}

template <quads_of Q>
void check_tiles() {
  check::on_every_arch([](auto arch) {
    using A = decltype(arch);
    using tile = simd::group_tile<A>;
    constexpr bool ready = Q == quads_of::ready_bytes;
    if constexpr (!ready || simd::takes_ready_bytes<A>) {
      int i = 0;
      for (index_t rows = ready ? tile::ready_rows - 1 : 1; rows <= (ready ? tile::ready_rows : tile::max_rows); ++rows)
        for (const index_t groups : {1, 2, 5})
          for (const index_t quads : {1, 2, 3, 4, 8, 9, 20})
            for (int round = 0; round < 8; ++round, i += 11)
              check_tile<A, Q>({rows, groups, quads, i % 2 != 0, i / 2 % 2 != 0, i / 4 % 2 != 0, i / 8 % 2 != 0,
                                i / 16 % 2 != 0, i / 32 % 2 != 0, i / 64 % 2 != 0,
                                Q == quads_of::bytes && rows == 1 && i / 8 % 2 != 0});
    }
  });
}

template <quads_of Q>
void check_ready() {
  check::on_every_arch([](auto arch) {
    using A = decltype(arch);
    if constexpr (simd::takes_ready_bytes<A>) {
      constexpr index_t columns = simd::group_tile<A>::columns, size = 4 * simd::lanes<A>;
      constexpr bool bytes = Q == quads_of::bytes;
      const index_t quads = 5, quad_bytes = (bytes ? 2 : 1) * size + 32;
      check::fenced<std::uint8_t> codes(quads * quad_bytes - 32), ready(quads * 4 * columns);
      for (index_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<std::uint8_t>(check::random_bits()());
      std::uint8_t table[16];
      for (auto& t : table) t = static_cast<std::uint8_t>(check::random_below(128));
      simd::make_ready<A, Q>(codes.data(), quad_bytes, table, quads, ready.data());
      for (index_t q = 0; q < quads; ++q)
        for (index_t b = 0; b < 2 * size; ++b) {
          const std::uint8_t* const quad = codes.data() + q * quad_bytes;
          const int nibble = quad[b % size] >> (b < size ? 0 : 4) & 15;
          const int want = bytes ? quad[b] ^ 0x80 : Q == quads_of::nibbles ? nibble : table[nibble];
          REQUIRE(int{ready[q * 2 * size + b]} == want);
        }
    }
  });
}

}  // namespace

TEST_CASE("dot_groups: nibbles as they are") { check_tiles<quads_of::nibbles>(); }
TEST_CASE("dot_groups: nibbles by table") { check_tiles<quads_of::nibble_table>(); }
TEST_CASE("dot_groups: nibbles by a table of larger numbers") { check_tiles<quads_of::wide_nibble_table>(); }
TEST_CASE("dot_groups: bytes, one panel and two side by side") { check_tiles<quads_of::bytes>(); }
TEST_CASE("dot_groups: ready bytes") { check_tiles<quads_of::ready_bytes>(); }
TEST_CASE("make_ready: what each word of either vector weighs, unsigned") {
  check_ready<quads_of::nibbles>();
  check_ready<quads_of::nibble_table>();
  check_ready<quads_of::bytes>();
}
