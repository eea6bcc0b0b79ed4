// Sums of the codes of packed quads, column by column: what zero points of the other operand are multiplied by.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <qtensor/simd/gemm_int8.hpp>
#include <qtensor/simd/ops_nibble_dot.hpp>

// Quads are as in decode_quads.hpp: words of four codes, `quad_bytes` from one quad to the next, a multiple of a
// register. Sums fit 32 bits.
namespace qtensor::inline QTENSOR_ABI::simd {

/// sums[c] = the signed bytes of column c in `quads` quads, together; c < quad_bytes / 4.
template <usable_arch A>
void sum_byte_quads(const std::uint8_t* codes, index_t quad_bytes, index_t quads, std::int32_t* sums) {
  using dot = quad_dot<A>;
  const typename dot::unit ones[4] = {1, 1, 1, 1};
  const auto one = dot::broadcast(ones);
  for (index_t c = 0; c < quad_bytes / 4; c += lanes<A>) {
    const auto add = [&](const ints<A>& sum, index_t q) QTENSOR_INLINE_LAMBDA {
      return dot::dot(sum, dot::load(reinterpret_cast<const std::int8_t*>(codes + q * quad_bytes + 4 * c)), one);
    };
    ints<A> first(0), second(0), third(0), fourth(0);  // one alone would wait for itself
    index_t q = 0;
    for (; q + 4 <= quads; q += 4)
      first = add(first, q), second = add(second, q + 1), third = add(third, q + 2), fourth = add(fourth, q + 3);
    for (; q < quads; ++q) first = add(first, q);
    simd::store(sums + c, (first + second) + (third + fourth));
  }
}

/// The same of nibbles: the lower ones are those of columns [0, quad_bytes / 4), the upper ones those behind them.
template <usable_arch A>
void sum_nibble_quads(const std::uint8_t* codes, index_t quad_bytes, index_t quads, std::int32_t* sums) {
  constexpr index_t most = 255 / 15;  // numbers whose sum is a byte
  const bytes<A> low(std::uint8_t{15});
  const words<A> even(0x00ff00ffu), lower(0xffffu);
  const index_t half = quad_bytes / 4;
  for (index_t c = 0; c < half; c += lanes<A>) {
    words<A> all[2] = {words<A>(0u), words<A>(0u)};
    for (index_t first = 0; first < quads; first += most) {
      bytes<A> some[2] = {bytes<A>(std::uint8_t{0}), bytes<A>(std::uint8_t{0})};
      for (index_t q = first; q < std::min(quads, first + most); ++q) {
        const bytes<A> v = simd::load<A>(codes + q * quad_bytes + 4 * c);
        some[0] = some[0] + (v & low);
        some[1] = some[1] + (simd::bits_as<std::uint8_t>(simd::bits_as<std::uint32_t>(v) >> 4) & low);
      }
#pragma GCC unroll 2
      for (int i = 0; i < 2; ++i) {
        const words<A> v = simd::bits_as<std::uint32_t>(some[i]), pairs = (v & even) + ((v >> 8) & even);
        all[i] = all[i] + (pairs & lower) + (pairs >> 16);
      }
    }
    simd::store(sums + c, simd::bits_as<std::int32_t>(all[0]));
    simd::store(sums + half + c, simd::bits_as<std::int32_t>(all[1]));
  }
}
/// The same of what nibbles are in a table of 16 numbers, each at most 127.
template <usable_arch A>
void sum_nibble_quads(const std::uint8_t* codes, index_t quad_bytes, index_t quads, const std::uint8_t* table,
                      std::int32_t* sums) {
  using dot = nibble_dot<A>;
  static constexpr std::int8_t ones[4] = {1, 1, 1, 1};
  const typename dot::row one[1] = {dot::broadcast(ones)};
  const auto entries = dot::table_of(table);
  const index_t half = quad_bytes / 4;
  for (index_t c = 0; c < half; c += lanes<A>) {
    ints<A> low(0), high(0);
    for (index_t q = 0; q < quads; ++q) {
      const auto v = dot::load(codes + q * quad_bytes + 4 * c);
      const typename dot::codes lower[1] = {dot::low(v, entries)}, upper[1] = {dot::high(v, entries)};
      low = dot::dot(low, lower, one), high = dot::dot(high, upper, one);
    }
    simd::store(sums + c, low);
    simd::store(sums + half + c, high);
  }
}

}  // namespace qtensor::inline QTENSOR_ABI::simd
