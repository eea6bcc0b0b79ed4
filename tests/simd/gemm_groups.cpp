// Mirrors include/qtensor/simd/gemm_groups.hpp.
// SPDX-License-Identifier: BSD-3-Clause
#include "groups_check.hpp"

namespace simd = qtensor::simd;
using check::at;
using check::group_shape;
using qtensor::index_t;
using simd::quads_of;

namespace {

template <class A, quads_of Q>
void check_tile(const group_shape& s) {
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
  const auto weight = [&](index_t g, index_t k, index_t c) -> std::int32_t {
    const std::uint8_t* quad = codes.data() + (g * s.quads + k / 4) * quad_bytes + k % 4;
    if (ready) return quad[4 * c];
    if (bytes) return static_cast<std::int8_t>(quad[4 * c]);
    const int nibble = quad[4 * (c % half)] >> (c < half ? 0 : 4) & 15;
    return Q == quads_of::nibbles ? nibble : table[nibble];
  };
  check::group_case<A> product{s, cols};
  if (simd::group_shares<A, Q>)
    for (std::size_t i = 0; i < product.starts.size(); ++i) product.second[i] = 17 * product.starts[i];
  // Signed codes, and the units that pack_units makes of them where they are wider.
  const index_t stride = product.stride;
  std::vector<unit> units(product.signed_codes.size());
  for (index_t r = 0; r < s.rows; ++r)
    if constexpr (sizeof(unit) == 1)
      for (index_t k = 0; k < 4 * all; ++k)
        units[static_cast<std::size_t>(r * stride + k)] = at(product.signed_codes, r * stride + k);
    else
      simd::pack_units<A>(reinterpret_cast<const std::uint8_t*>(product.signed_codes.data()) + r * stride, 4 * all,
                          simd::code_sign::is_signed, units.data() + r * stride);
  const auto x = product.rows(units.data(), stride);
  const auto w = product.columns(codes.data(), quad_bytes, table);
  // In two goes, the second from where `from` says.
  const index_t part = s.wide ? 0 : s.groups / 2;
  const simd::group_sums place = product.place();
  if constexpr (Q == quads_of::bytes)
    if (s.wide) simd::dot_groups_wide<A>(w, x, s.rows, s.groups, s.quads, place);
  if (part > 0) simd::dot_groups<A, Q>(w, x, s.rows, part, s.quads, place.without_end());
  if (!s.wide)
    simd::dot_groups<A, Q>(w.from(part, s.quads), x.from(0, part, 4 * s.quads), s.rows, s.groups - part, s.quads,
                           part > 0 ? place.behind() : place);
  product.require_sums([&](index_t g, index_t k, index_t c) { return weight(g, k, c) + simd::group_bias<A, Q>; },
                       [&](index_t i, index_t c) {
                         const bool second = c % (2 * simd::lanes<A>) >= simd::lanes<A> && !simd::group_shares<A, Q>;
                         return at(second ? product.second : product.starts, i);
                       });
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
            for (int round = 0; round < 8; ++round, i += 11) {
              group_shape s = check::numbered_shape(rows, groups, quads, i);
              check_tile<A, Q>(s);
              s.wide = Q == quads_of::bytes && rows <= tile::wide_rows;
              if (s.wide) check_tile<A, Q>(s);
            }
    }
  });
}

template <class A, quads_of Q>
void check_ready(bool side_by_side, std::int32_t less) {
  constexpr index_t size = 4 * simd::lanes<A>, quads = 5;
  constexpr bool bytes = Q == quads_of::bytes;
  const index_t quad_bytes = (bytes ? 2 : 1) * size + 32;
  check::fenced<std::uint8_t> codes(quads * quad_bytes - 32), ready(quads * 2 * size);
  for (index_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<std::uint8_t>(check::random_bits()());
  std::uint8_t table[16];
  for (auto& t : table) t = static_cast<std::uint8_t>(check::random_below(128));
  const index_t step = side_by_side ? 2 * size : size, apart = side_by_side ? size : quads * size;
  simd::make_ready<A, Q>(codes.data(), quad_bytes, table, quads, {ready.data(), step, apart}, less);
  for (index_t q = 0; q < quads; ++q)
    for (index_t b = 0; b < 2 * size; ++b) {
      const std::uint8_t* const quad = codes.data() + q * quad_bytes;
      const int nibble = quad[b % size] >> (b < size ? 0 : 4) & 15;
      const int want = bytes ? quad[b] ^ 0x80 : Q == quads_of::nibbles ? nibble : table[nibble];
      REQUIRE(int{ready[q * step + b / size * apart + b % size]} == ((want - less) & 255));
    }
}
template <quads_of Q>
void check_ready() {
  check::on_every_arch([](auto arch) {
    using A = decltype(arch);
    if constexpr (simd::takes_ready_bytes<A>) {
      check_ready<A, Q>(true, 0);
      check_ready<A, Q>(false, 8);
      check_ready<A, Q>(false, 128);
    }
  });
}

}  // namespace

TEST_CASE("dot_groups: nibbles as they are") { check_tiles<quads_of::nibbles>(); }
TEST_CASE("dot_groups: nibbles by table") { check_tiles<quads_of::nibble_table>(); }
TEST_CASE("dot_groups: nibbles by a table of larger numbers") { check_tiles<quads_of::wide_nibble_table>(); }
TEST_CASE("dot_groups: bytes, one panel and two side by side") { check_tiles<quads_of::bytes>(); }
TEST_CASE("dot_groups: ready bytes") { check_tiles<quads_of::ready_bytes>(); }
TEST_CASE("make_ready: what each word of either vector weighs, unsigned or less a number") {
  check_ready<quads_of::nibbles>();
  check_ready<quads_of::nibble_table>();
  check_ready<quads_of::bytes>();
}
