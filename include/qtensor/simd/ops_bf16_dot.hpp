// Pairs of bf16 numbers in 32-bit lanes: how they are made, and their dot product.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <bit>
#include <cstring>
#include <qtensor/simd/ops.hpp>

// A lane holds two bf16 numbers of one column, and a row gives its two to all lanes. Products are exact in f32; how
// often and in which order sums are rounded depends on the CPU, and so does whether subnormal numbers count as 0.
namespace qtensor::inline QTENSOR_ABI::simd {

namespace detail {

struct no_pair_dot {
  static constexpr bool exists = false;
};

template <class A>
QTENSOR_INLINE words<A> bf16_pairs(any_isa, const floats<A>& low, const floats<A>& high) {
  return bf16_bits(any_isa{}, low) | (bf16_bits(any_isa{}, high) << 16);
}
template <class A>
QTENSOR_INLINE halves<A> swap_middles(any_isa, const halves<A>& v) {
  buffer<std::uint16_t, A> b(v);
  for (index_t i = 0; i < b.size; i += 4) {
    const std::uint16_t second = b[i + 1];
    b[i + 1] = b[i + 2];
    b[i + 2] = second;
  }
  return b.batch();
}

template <class Isa, class A>
struct bf16_table16 {
  explicit bf16_table16(const std::uint16_t* table) : table_(table) {}
  words<A> operator()(const words<A>& index) const {
    buffer<std::uint16_t, A> v(bits_as<std::uint16_t>(Isa{}, index));
    for (index_t i = 0; i < v.size; ++i) v[i] = table_[v[i] & 15];
    return bits_as<std::uint32_t>(Isa{}, v.batch());
  }
  const std::uint16_t* table_;
};

#if QTENSOR_LEVEL_X86 >= 4
QTENSOR_INLINE halves<avx512_arch> swap_middles(avx512_isa, const halves<avx512_arch>& v) {
  return _mm512_shufflehi_epi16(_mm512_shufflelo_epi16(v.data, 0xd8), 0xd8);
}
template <>
struct bf16_table16<avx512_isa, avx512_arch> {
  explicit bf16_table16(const std::uint16_t* table)
      : table_(_mm512_broadcast_i64x4(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(table)))) {}
  QTENSOR_INLINE words<avx512_arch> operator()(const words<avx512_arch>& index) const {
    return _mm512_permutexvar_epi16(index.data, table_);
  }
  __m512i table_;
};
#endif

#if QTENSOR_LEVEL_X86 >= 4 && defined(__AVX512BF16__)
struct avx512_pair_dot {
  static constexpr bool exists = true;
  using weights = __m512i;
  using row = __m512i;
  static QTENSOR_INLINE weights load(const std::uint32_t* pairs) {
    __m512i v = _mm512_loadu_si512(pairs);
    asm("" : "+v"(v));  // g++ 12 otherwise repeats the load for every row
    return v;
  }
  static QTENSOR_INLINE weights of(const words<avx512_arch>& pairs) { return pairs.data; }
  static QTENSOR_INLINE row broadcast(const std::uint16_t* two) {
    std::int32_t both;
    std::memcpy(&both, two, sizeof both);
    return _mm512_set1_epi32(both);
  }
  static QTENSOR_INLINE floats<avx512_arch> dot(const floats<avx512_arch>& sum, const weights& w, const row& x) {
    return _mm512_dpbf16_ps(sum.data, std::bit_cast<__m512bh>(x), std::bit_cast<__m512bh>(w));
  }
};
QTENSOR_INLINE words<avx512_arch> bf16_pairs(avx512_isa, const floats<avx512_arch>& low,
                                             const floats<avx512_arch>& high) {
  const __m512i in_turn =
      _mm512_setr_epi32(0x100000, 0x110001, 0x120002, 0x130003, 0x140004, 0x150005, 0x160006, 0x170007, 0x180008,
                        0x190009, 0x1a000a, 0x1b000b, 0x1c000c, 0x1d000d, 0x1e000e, 0x1f000f);
  return _mm512_permutexvar_epi16(in_turn, std::bit_cast<__m512i>(_mm512_cvtne2ps_pbh(high.data, low.data)));
}
#endif

#if QTENSOR_LEVEL_NEON && defined(__ARM_FEATURE_BF16_VECTOR_ARITHMETIC)
struct neon_pair_dot {
  static constexpr bool exists = true;
  using weights = bfloat16x8_t;
  using row = bfloat16x8_t;
  static QTENSOR_INLINE weights load(const std::uint32_t* pairs) { return vreinterpretq_bf16_u32(vld1q_u32(pairs)); }
  static QTENSOR_INLINE weights of(const words<neon_arch>& pairs) { return vreinterpretq_bf16_u32(pairs.data); }
  static QTENSOR_INLINE row broadcast(const std::uint16_t* two) {
    std::uint32_t both;
    std::memcpy(&both, two, sizeof both);
    return vreinterpretq_bf16_u32(vdupq_n_u32(both));
  }
  static QTENSOR_INLINE floats<neon_arch> dot(const floats<neon_arch>& sum, const weights& w, const row& x) {
    return vbfdotq_f32(sum.data, w, x);
  }
};
#endif

template <class A>
constexpr auto bf16_dot_of() {
#if QTENSOR_LEVEL_X86 >= 4 && defined(__AVX512BF16__)
  if constexpr (std::same_as<A, avx512_arch>) return avx512_pair_dot{};
#endif
#if QTENSOR_LEVEL_NEON && defined(__ARM_FEATURE_BF16_VECTOR_ARITHMETIC)
  if constexpr (std::same_as<A, neon_arch>) return neon_pair_dot{};
#endif
  constexpr bool has_instruction =
      (features::bf16 && std::same_as<A, avx512_arch>) || (features::bf16 && std::same_as<A, neon_arch>);
  if constexpr (!has_instruction) return no_pair_dot{};
}

}  // namespace detail

/// The dot product of bf16 pairs with an architecture:
///   exists                       whether there is an instruction for it; all else only then
///   load(pairs), of(batch)       weights: `lanes` pairs, the first number of each in the lower half
///   broadcast(two) -> row        two numbers of a row
///   dot(sum, weights, row)       lane i: sum + w[i].first x[0] + w[i].second x[1]. Cost: 1
template <usable_arch A>
using bf16_dot = decltype(detail::bf16_dot_of<A>());

/// How vectors multiply bf16 numbers: by the way that is faster on this CPU, or, for tests, by one of the two. Bits of
/// bf16 products depend on it.
enum class bf16_way { fastest, dots, fma };
inline std::atomic<bf16_way> bf16_way_taken{bf16_way::fastest};

/// Whether a bf16_dot is there and taken. Intel's vector units start one in two cycles, and four fma.
template <usable_arch A>
bool takes_bf16_dots() {
  if constexpr (bf16_dot<A>::exists) {
    const bf16_way way = bf16_way_taken.load(std::memory_order_relaxed);
    if (way == bf16_way::fastest) return !(std::same_as<A, avx512_arch> && simd::is_intel());
    return way == bf16_way::dots;
  } else {
    return false;
  }
}

/// Lane i: bf16(low[i]) below bf16(high[i]), rounded to nearest, ties to even; NaN stays NaN. Subnormal numbers may
/// become 0 of their sign. Cost: 2 with AVX512-BF16, else 15.
template <usable_arch A>
QTENSOR_INLINE words<A> bf16_pairs(const floats<A>& low, const floats<A>& high) {
  return bf16_pairs(detail::isa<A>{}, low, high);
}

/// Four bf16 numbers in a quad of bytes each, as planes of upper and lower bytes, to pairs: result 0 has numbers 0 and
/// 2 of every quad, result 1 has 1 and 3. Cost: 8.
template <usable_arch A>
QTENSOR_INLINE std::array<words<A>, 2> bf16_pairs_of_planes(const bytes<A>& high, const bytes<A>& low) {
  const words<A> h = simd::bits_as<std::uint32_t>(high), l = simd::bits_as<std::uint32_t>(low), even(0x00ff00ffu);
  return {(l & even) | ((h & even) << 8), ((l >> 8) & even) | (h & ~even)};
}

/// 16 bf16 numbers looked up by the low 4 bits of both halves of words. Keeps (a copy of, or a pointer to)
/// table[0, 16): it must outlive this. Cost of a look-up: 1 with AVX-512, else loop.
template <usable_arch A>
struct bf16_table16 {
  explicit bf16_table16(const std::uint16_t* table) : body(table) {}
  QTENSOR_INLINE words<A> operator()(const words<A>& index) const { return body(index); }
  detail::bf16_table16<detail::isa<A>, A> body;
};

/// Elements 0, 2, 1, 3 of every four. Cost: 2 with AVX-512, else loop.
template <usable_arch A>
QTENSOR_INLINE halves<A> swap_middles(const halves<A>& v) {
  return swap_middles(detail::isa<A>{}, v);
}

}  // namespace qtensor::inline QTENSOR_ABI::simd
