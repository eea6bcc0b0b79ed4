// Codes narrower than a byte: one per byte <-> packed, the first code in the lowest bits.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <qtensor/core/support.hpp>
#include <qtensor/simd/arch.hpp>
#include <qtensor/simd/memory.hpp>
#include <qtensor/simd/ops.hpp>
#include <qtensor/simd/ops_columns.hpp>
#include <qtensor/simd/ops_packed.hpp>

namespace qtensor::inline QTENSOR_ABI::simd {

/// Bytes that n packed codes of `Bits` bits fill: a row ends at a whole byte.
template <int Bits>
constexpr index_t packed_bytes(index_t n) {
  return divide_up(n * Bits, 8);
}

/// Codes in the smallest group that fills whole bytes (4-bit: 2 in 1 byte; 5-bit: 8 in 5; 6-bit: 4 in 3; 2-bit: 4 in 1;
/// 8-bit: 1; 3- and 7-bit: 8 in as many bytes).
template <int Bits>
inline constexpr index_t codes_per_group = 8 / (Bits & -Bits);

namespace detail {

// One group of codes is a little-endian number: code k at bit Bits * k. Only `count` codes are read or written.
template <int Bits>
inline void pack_group(const std::uint8_t* codes, index_t count, std::uint8_t* to) {
  std::uint64_t group = 0;
  for (index_t k = 0; k < count; ++k) group |= std::uint64_t{codes[k] & low_bits(Bits)} << (Bits * k);
  for (index_t b = 0; b < packed_bytes<Bits>(count); ++b) to[b] = static_cast<std::uint8_t>(group >> (8 * b));
}
template <int Bits>
inline void unpack_group(const std::uint8_t* from, index_t count, std::uint8_t* codes) {
  std::uint64_t group = 0;
  for (index_t b = 0; b < packed_bytes<Bits>(count); ++b) group |= std::uint64_t{from[b]} << (8 * b);
  for (index_t k = 0; k < count; ++k) codes[k] = static_cast<std::uint8_t>(group >> (Bits * k) & low_bits(Bits));
}

// Eight codes at once in a 64-bit word: one per byte, then pairs, fours and all eight side by side. `Step` is 1, 2, 4:
// the codes that are together already.
template <int Bits, int Step>
inline constexpr std::uint64_t even_parts = [] {
  std::uint64_t mask = 0;
  for (int at = 0; at < 64; at += 16 * Step) mask |= ((std::uint64_t{1} << (Bits * Step)) - 1) << at;
  return mask;
}();
template <int Bits, int Step>
constexpr std::uint64_t bring_together(std::uint64_t v) {
  constexpr std::uint64_t even = even_parts<Bits, Step>;
  return (v & even) | ((v >> ((8 - Bits) * Step)) & (even << (Bits * Step)));
}
template <int Bits, int Step>
constexpr std::uint64_t take_apart(std::uint64_t v) {
  constexpr std::uint64_t even = even_parts<Bits, Step>;
  return (v & even) | ((v << ((8 - Bits) * Step)) & (even << (8 * Step)));
}
template <int Bits>
inline void pack_eight(const std::uint8_t* codes, std::uint8_t* to) {
  std::uint64_t v;
  std::memcpy(&v, codes, 8);
  v = bring_together<Bits, 4>(bring_together<Bits, 2>(bring_together<Bits, 1>(v)));
  std::memcpy(to, &v, Bits);
}
template <int Bits>
inline void unpack_eight(const std::uint8_t* from, std::uint8_t* codes) {
  std::uint64_t v = 0;
  std::memcpy(&v, from, Bits);
  v = take_apart<Bits, 1>(take_apart<Bits, 2>(take_apart<Bits, 4>(v)));
  std::memcpy(codes, &v, 8);
}

template <int Bits>
inline constexpr bool by_eights = Bits != 4 && std::endian::native == std::endian::little;

/// From this length on codes bypass the caches: neither side fits the last-level cache of a core.
inline constexpr index_t streaming_codes = index_t{32} << 20;
/// Codes that are packed or unpacked in L1 on their way past the caches.
inline constexpr index_t codes_at_once = 8192;

/// Whether codes are packed to whole registers, which can be stored past the caches.
template <class A, int Bits>
inline constexpr bool packs_registers = Bits == 4 || (Bits == 6 && has_join_sixes<A>);

/// Widths whose codes are packed one batch at a time.
template <class A, int Bits>
inline constexpr bool by_batches = packs_in_registers<A>&& Bits < 8 && Bits != 4;

/// `streams`: whole registers go past the caches; `to` is aligned to 64 bytes.
template <class A, int Bits>
void pack_run(const std::uint8_t* codes, index_t n, std::uint8_t* to, bool streams = false) {
  if constexpr (Bits == 8) return void(std::memcpy(to, codes, static_cast<std::size_t>(n)));
  constexpr index_t group = codes_per_group<Bits>, step = 4 * lanes<A>;
  index_t i = 0;
  if constexpr (Bits == 4) {
    for (; i + 2 * step <= n; i += 2 * step)
      simd::put(to + i / 2, simd::join_nibbles(load<A>(codes + i), simd::load<A>(codes + i + step)), streams);
    if (i + step <= n) {
      simd::store_n(to + i / 2, step / 2, simd::join_nibbles(load<A>(codes + i), bytes<A>(std::uint8_t{0})));
      i += step;
    }
    if (i < n)
      simd::store_n(to + i / 2, divide_up(n - i, 2),
                    simd::join_nibbles(simd::load_n<A>(codes + i, n - i), bytes<A>(std::uint8_t{0})));
    return;
  }
  if constexpr (Bits == 6 && has_join_sixes<A>)
    for (; i + 4 * step <= n; i += 4 * step) {
      const std::uint8_t* from = codes + i;
      const std::array<bytes<A>, 3> v =
          simd::join_sixes(simd::load<A>(from), simd::load<A>(from + step), simd::load<A>(from + 2 * step),
                           simd::load<A>(from + 3 * step));
#pragma GCC unroll 3
      for (int k = 0; k < 3; ++k) simd::put(to + i / 4 * 3 + k * step, v[static_cast<std::size_t>(k)], streams);
    }
  if constexpr (by_batches<A, Bits>) {
    const auto packed = [&] { return simd::packed_codes<Bits>(simd::load<A>(codes + i)); };
    // Whole batches are written, of which the first bytes count: while there is room for them.
    for (; i / 8 * Bits + step <= packed_bytes<Bits>(n); i += step) simd::store(to + i / 8 * Bits, packed());
    for (; i + step <= n; i += step) simd::store_n(to + i / 8 * Bits, step / 8 * Bits, packed());
  }
  if constexpr (by_eights<Bits>)
    for (; i + 8 <= n; i += 8) pack_eight<Bits>(codes + i, to + i / 8 * Bits);
  for (; i < n; i += group)
    pack_group<Bits>(codes + i, n - i < group ? n - i : group, to + i / group * packed_bytes<Bits>(group));
}

/// Where whole registers go past the caches, `codes` is aligned to 64 bytes. `t` is a copy: stores of bytes might
/// change what a reference refers to, which would be read again for each.
template <class A, int Bits>
void unpack_run(const std::uint8_t* from, index_t n, std::uint8_t* codes, traffic t = {}) {
  if constexpr (Bits == 8) return void(std::memcpy(codes, from, static_cast<std::size_t>(n)));
  constexpr index_t group = codes_per_group<Bits>, step = 4 * lanes<A>;
  index_t i = 0;
  if constexpr (Bits == 4) {
    for (; i + 2 * step <= n; i += 2 * step) {
      const auto both = simd::split_nibbles(load<A>(from + i / 2));
      simd::put(codes + i, both[0], t.streams);
      simd::put(codes + i + step, both[1], t.streams);
    }
  }
  if constexpr (spreads_codes<Bits, A>) {
    const auto spread = [&](auto asks) QTENSOR_INLINE_LAMBDA {  // in a cache the question would count
      for (; i + step <= n; i += step) {
        if constexpr (asks) fetch_ahead<step * Bits / 8>(from + i * Bits / 8, t);
        simd::put(codes + i, simd::spread_codes<Bits, A>(from + i * Bits / 8), t.streams);
      }
    };
    if (t.fetches == fetch::nothing)
      spread(std::false_type{});
    else
      spread(std::true_type{});
  }
  if constexpr (Bits == 4)
    if (i < n) {
      const auto both = simd::split_nibbles(simd::load_n<A>(from + i / 2, divide_up(n - i, 2)));
      return simd::store_n(codes + i, n - i, both[0]);
    }
  if constexpr (by_eights<Bits>)
    for (; i + 8 <= n; i += 8) unpack_eight<Bits>(from + i / 8 * Bits, codes + i);
  for (; i < n; i += group)
    unpack_group<Bits>(from + i / group * packed_bytes<Bits>(group), n - i < group ? n - i : group, codes + i);
}

}  // namespace detail

/// Widths of codes that pack_codes and unpack_codes know.
template <int Bits>
inline constexpr bool packs_codes = Bits >= 2 && Bits <= 8;

/// Packs a run: the low `Bits` bits of codes[0, n) to to[0, packed_bytes<Bits>(n)); upper bits are ignored, unused bits
/// of the last byte are 0. Bits is 2 to 8; codes and to may not overlap. Rows: call once for each row.
/// `past_caches`: what is packed bypasses the caches; call stream_fence<A>() after the last run.
/// Cost: 4 bits 0.05 instructions per code with AVX-512, 6 bits 0.1 with VBMI, 0.2 on AVX2; else 0.15 with AVX-512, 0.4
/// on AVX2 and 0.6.
template <usable_arch A, int Bits>
void pack_codes(const std::uint8_t* codes, index_t n, std::uint8_t* to, bool past_caches) {
  static_assert(packs_codes<Bits>, "qtensor: codes are packed with 2 to 8 bits.");
  if constexpr (Bits == 8)
    if (past_caches) return simd::stream_bytes<A>(codes, n, to);
  const bool aligned = detail::packs_registers<A, Bits> && begins_line(to);
  if (!past_caches || aligned) return detail::pack_run<A, Bits>(codes, n, to, past_caches);
  alignas(64) std::uint8_t tile[static_cast<std::size_t>(packed_bytes<Bits>(detail::codes_at_once))];
  for (index_t i = 0; i < n; i += detail::codes_at_once) {
    const index_t count = n - i < detail::codes_at_once ? n - i : detail::codes_at_once;
    detail::pack_run<A, Bits>(codes + i, count, tile);
    simd::stream_bytes<A>(tile, packed_bytes<Bits>(count), to + i * Bits / 8);
  }
}
/// The same; runs that do not fit the caches bypass them.
template <usable_arch A, int Bits>
void pack_codes(const std::uint8_t* codes, index_t n, std::uint8_t* to) {
  const bool past_caches = n >= detail::streaming_codes;
  pack_codes<A, Bits>(codes, n, to, past_caches);
  if (past_caches) simd::stream_fence<A>();
}

/// Unpacks a run: the inverse of pack_codes, each code zero-extended to a byte. Reads from[0, packed_bytes<Bits>(n))
/// and writes codes[0, n), nothing else.
template <usable_arch A, int Bits>
void unpack_codes(const std::uint8_t* from, index_t n, std::uint8_t* codes) {
  static_assert(packs_codes<Bits>, "qtensor: codes are packed with 2 to 8 bits.");
  if (n < detail::streaming_codes) return detail::unpack_run<A, Bits>(from, n, codes);
  if constexpr (spreads_codes<Bits, A>)
    if (begins_line(codes)) {
      detail::unpack_run<A, Bits>(from, n, codes, reads_once(true));
      return simd::stream_fence<A>();
    }
  alignas(64) std::uint8_t tile[static_cast<std::size_t>(detail::codes_at_once)];
  for (index_t i = 0; i < n; i += detail::codes_at_once) {
    const index_t count = n - i < detail::codes_at_once ? n - i : detail::codes_at_once;
    detail::unpack_run<A, Bits>(from + i * Bits / 8, count, tile);
    simd::stream_bytes<A>(tile, count, codes + i);
  }
  simd::stream_fence<A>();
}

/// Bytes that hold two codes each as two runs, packed as pack_codes<A, 4> packs them: the lower codes of bytes [0, n)
/// and the upper ones. `lower` may be `bytes` itself. Cost: 0.2 instructions per code with AVX-512.
template <usable_arch A>
void split_pairs(const std::uint8_t* bytes, index_t n, std::uint8_t* lower, std::uint8_t* upper) {
  constexpr index_t step = 4 * lanes<A>;
  const auto shifted = [](const simd::bytes<A>& v) QTENSOR_INLINE_LAMBDA {
    return simd::bits_as<std::uint8_t>(simd::bits_as<std::uint32_t>(v) >> 4);
  };
  const auto split = [&](index_t i, const simd::bytes<A>& a, const simd::bytes<A>& b, index_t count)
                         QTENSOR_INLINE_LAMBDA {
                           simd::store_n(lower + i / 2, count, simd::join_nibbles(a, b));
                           simd::store_n(upper + i / 2, count, simd::join_nibbles(shifted(a), shifted(b)));
                         };
  index_t i = 0;
  for (; i + 2 * step <= n; i += 2 * step) split(i, simd::load<A>(bytes + i), simd::load<A>(bytes + i + step), step);
  if (i == n) return;
  const index_t left = n - i, first = std::min(left, step);
  split(i, simd::load_n<A>(bytes + i, first), simd::load_n<A>(bytes + i + first, left - first), divide_up(left, 2));
}

/// bytes[i] ^= mask for i < n.
template <usable_arch A>
void flip_bits(std::uint8_t* bytes, index_t n, std::uint8_t mask) {
  constexpr index_t step = 4 * lanes<A>;
  const simd::bytes<A> flip(mask);
  index_t i = 0;
  for (; i + step <= n; i += step) simd::store(bytes + i, simd::load<A>(bytes + i) ^ flip);
  if (i < n) simd::store_n(bytes + i, n - i, simd::load_n<A>(bytes + i, n - i) ^ flip);
}

/// The codes of each of n bytes, `Bits` (4 or 2) each, in the opposite order; `to` may be `from`.
template <usable_arch A, int Bits>
void turn_codes(const std::uint8_t* from, index_t n, std::uint8_t* to) {
  static_assert(Bits == 4 || Bits == 2, "qtensor: codes of 4 or 2 bits are turned, two or four to a byte.");
  constexpr index_t step = 4 * lanes<A>;
  const auto turned = [](const simd::bytes<A>& codes) QTENSOR_INLINE_LAMBDA {
    words<A> v = simd::bits_as<std::uint32_t>(codes);
    if constexpr (Bits == 2) v = ((v & words<A>(0x33333333u)) << 2) | ((v >> 2) & words<A>(0x33333333u));
    return simd::bits_as<std::uint8_t>(((v & words<A>(0x0f0f0f0fu)) << 4) | ((v >> 4) & words<A>(0x0f0f0f0fu)));
  };
  index_t i = 0;
  for (; i + step <= n; i += step) simd::store(to + i, turned(simd::load<A>(from + i)));
  if (i < n) simd::store_n(to + i, n - i, turned(simd::load_n<A>(from + i, n - i)));
}

/// Two runs of codes of at most 4 bits, one a byte, as bytes that hold two: lower[i] |= upper[i] << 4 for i < n.
template <usable_arch A>
void join_nibbles(std::uint8_t* lower, const std::uint8_t* upper, index_t n) {
  constexpr index_t step = 4 * lanes<A>;
  const auto joined = [](const simd::bytes<A>& a, const simd::bytes<A>& b) QTENSOR_INLINE_LAMBDA {
    return a | simd::bits_as<std::uint8_t>(simd::bits_as<std::uint32_t>(b) << 4);
  };
  index_t i = 0;
  for (; i + step <= n; i += step) simd::store(lower + i, joined(simd::load<A>(lower + i), simd::load<A>(upper + i)));
  if (i == n) return;
  const index_t left = n - i;
  simd::store_n(lower + i, left, joined(simd::load_n<A>(lower + i, left), simd::load_n<A>(upper + i, left)));
}

/// The inverse of split_pairs: codes [0, n) of two packed runs as bytes that hold two, the lower run's in the lower
/// halves. All bytes are xored with `flip`. Cost: 0.3 instructions per code on AVX2.
template <usable_arch A>
void join_pairs(const std::uint8_t* lower, const std::uint8_t* upper, index_t n, std::uint8_t flip,
                std::uint8_t* bytes) {
  constexpr index_t step = 4 * lanes<A>;
  const simd::bytes<A> mask(flip);
  const auto join = [&](const simd::bytes<A>& a, const simd::bytes<A>& b) QTENSOR_INLINE_LAMBDA {
    return (a | simd::bits_as<std::uint8_t>(simd::bits_as<std::uint32_t>(b) << 4)) ^ mask;
  };
  for (index_t i = 0; i < n; i += 2 * step) {
    const index_t left = n - i;
    if (left >= 2 * step) {
      const auto a = simd::split_nibbles(simd::load<A>(lower + i / 2)),
                 b = simd::split_nibbles(simd::load<A>(upper + i / 2));
      simd::store(bytes + i, join(a[0], b[0]));
      simd::store(bytes + i + step, join(a[1], b[1]));
    } else {
      const index_t packed = divide_up(left, 2), first = std::min(left, step);
      const auto a = simd::split_nibbles(simd::load_n<A>(lower + i / 2, packed)),
                 b = simd::split_nibbles(simd::load_n<A>(upper + i / 2, packed));
      simd::store_n(bytes + i, first, join(a[0], b[0]));
      if (left > first) simd::store_n(bytes + i + step, left - first, join(a[1], b[1]));
    }
  }
}

/// Codes that join_pair_columns takes at a time.
inline constexpr index_t pair_columns_step = 32;

/// join_pairs of whole columns, turned: of `lanes` packed runs of n codes that lie `apart` bytes behind each other from
/// `lower` on, and as many from `upper` on, word c of quad q, at to + q * quad_bytes, is codes [4 q, 4 q + 4) of run c.
/// Runs lie on words; n <= Most is a multiple of pair_columns_step. Cost: 0.1 instructions per code with AVX-512.
template <usable_arch A, index_t Most>
void join_pair_columns(const std::uint8_t* lower, const std::uint8_t* upper, index_t apart, index_t n,
                       std::uint8_t flip, std::uint8_t* to, index_t quad_bytes) {
  constexpr index_t step = pair_columns_step, eights = step / 8;
  const simd::bytes<A> mask(flip);
  const auto columns = [&](const std::uint8_t* from, index_t i) QTENSOR_INLINE_LAMBDA {
    // Words move as floats do: nothing is computed with them.
    return simd::load_columns<A>(reinterpret_cast<const float*>(from + i / 2), apart / index_t{sizeof(float)});
  };
  // One side first, then the other: so many lines stay in the first cache wherever runs lie.
  alignas(64) float kept[Most / 8 * lanes<A>];
  for (index_t i = 0; i < n; i += step) {
    const auto words = columns(lower, i);
#pragma GCC unroll 4
    for (index_t k = 0; k < eights; ++k) simd::store(kept + (i / 8 + k) * lanes<A>, words[static_cast<std::size_t>(k)]);
  }
  for (index_t i = 0; i < n; i += step) {
    const auto words = columns(upper, i);
#pragma GCC unroll 4
    for (index_t k = 0; k < eights; ++k, to += 2 * quad_bytes) {
      const auto quads =
          simd::quads_of_nibbles(simd::bits_as<std::uint32_t>(simd::load<A>(kept + (i / 8 + k) * lanes<A>)),
                                 simd::bits_as<std::uint32_t>(words[static_cast<std::size_t>(k)]));
      simd::store(to, quads[0] ^ mask);
      simd::store(to + quad_bytes, quads[1] ^ mask);
    }
  }
}

/// Two codes per byte, the first in the low half; an odd n leaves the last upper half 0.
template <usable_arch A>
void pack_nibbles(const std::uint8_t* codes, index_t n, std::uint8_t* to) {
  pack_codes<A, 4>(codes, n, to);
}
template <usable_arch A>
void unpack_nibbles(const std::uint8_t* from, index_t n, std::uint8_t* codes) {
  unpack_codes<A, 4>(from, n, codes);
}

}  // namespace qtensor::inline QTENSOR_ABI::simd
