// Dot products of packed nibbles: unsigned numbers of 4-bit codes, or of bytes, against signed bytes, exact in 32 bits.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <qtensor/simd/ops_dot.hpp>

namespace qtensor::inline QTENSOR_ABI::simd {

namespace detail {

/// Any architecture: lane by lane.
template <class A>
struct portable_nibble_dot {
  using codes = buffer<std::uint8_t, A>;
  using table = const std::uint8_t*;
  using row = std::array<std::int8_t, 4>;
  static constexpr bool takes_bytes = false;
  static constexpr int quads_at_once = 1;
  static constexpr int largest(int) { return 127; }

  static codes load(const std::uint8_t* quads) { return codes(xsimd::batch<std::uint8_t, A>::load_unaligned(quads)); }
  static codes low(const codes& c) {
    return each(c, [](std::uint8_t b) { return b & 15; });
  }
  static codes high(const codes& c) {
    return each(c, [](std::uint8_t b) { return b >> 4; });
  }
  static table table_of(const std::uint8_t* entries) { return entries; }
  static codes low(const codes& c, table t) {
    return each(c, [t](std::uint8_t b) { return t[b & 15]; });
  }
  static codes high(const codes& c, table t) {
    return each(c, [t](std::uint8_t b) { return t[b >> 4]; });
  }
  static row broadcast(const std::int8_t* four) { return {four[0], four[1], four[2], four[3]}; }
  template <std::size_t N>
  static ints<A> dot(const ints<A>& sum, const codes (&w)[N], const row (&x)[N]) {
    buffer<std::int32_t, A> out(sum);
    for (index_t i = 0; i < out.size; ++i)
      for (std::size_t q = 0; q < N; ++q)
        for (std::size_t k = 0; k < 4; ++k) out[i] += w[q].lane[4 * static_cast<std::size_t>(i) + k] * x[q][k];
    return out.batch();
  }
  static ints<A> quad_sums(const std::int8_t* from) {
    buffer<std::int32_t, A> out;
    for (index_t i = 0; i < out.size; ++i) out[i] = from[4 * i] + from[4 * i + 1] + from[4 * i + 2] + from[4 * i + 3];
    return out.batch();
  }

 private:
  template <class Step>
  static codes each(const codes& c, Step step) {
    codes out;
    for (std::size_t i = 0; i < std::size(c.lane); ++i) out.lane[i] = static_cast<std::uint8_t>(step(c.lane[i]));
    return out;
  }
};

#if defined(__x86_64__) && QTENSOR_LEVEL_X86 >= 2
// Without a dot product of its own: bytes are multiplied in pairs to 16 bits, several quads are added there.
template <class A, class Bits>
struct paired_nibble_dot {
  using codes = typename Bits::type;
  using table = codes;
  using row = codes;
  static constexpr bool takes_bytes = false;
  static constexpr int quads_at_once = 4;
  static constexpr int largest(int quads) { return 32767 / (2 * 128 * quads); }

  static QTENSOR_INLINE codes load(const std::uint8_t* quads) { return Bits::load(quads); }
  static QTENSOR_INLINE codes low(codes c) { return Bits::both(c, Bits::bytes(15)); }
  static QTENSOR_INLINE codes high(codes c) { return Bits::both(Bits::shift_4(c), Bits::bytes(15)); }
  static QTENSOR_INLINE table table_of(const std::uint8_t* entries) { return Bits::repeat_16(entries); }
  static QTENSOR_INLINE codes low(codes c, table t) { return Bits::shuffle(t, low(c)); }
  static QTENSOR_INLINE codes high(codes c, table t) { return Bits::shuffle(t, high(c)); }
  static QTENSOR_INLINE row broadcast(const std::int8_t* four) {
    std::int32_t all;
    std::memcpy(&all, four, sizeof all);
    return Bits::words(all);
  }
  template <std::size_t N>
  static QTENSOR_INLINE ints<A> dot(const ints<A>& sum, const codes (&w)[N], const row (&x)[N]) {
    codes pairs = Bits::multiply_bytes(w[0], x[0]);
    if constexpr (N > 1) {
#pragma GCC unroll 8
      for (std::size_t q = 1; q < N; ++q) pairs = Bits::add_16(pairs, Bits::multiply_bytes(w[q], x[q]));
    }
    return Bits::add_32(sum.data, Bits::multiply_pairs(pairs, Bits::halves(1)));
  }
  static QTENSOR_INLINE ints<A> quad_sums(const std::int8_t* from) {
    const codes x = Bits::load(reinterpret_cast<const std::uint8_t*>(from));
    return Bits::multiply_pairs(Bits::multiply_bytes(Bits::bytes(1), x), Bits::halves(1));
  }
};
struct bits_128 {
  using type = __m128i;
  static QTENSOR_INLINE type load(const void* p) { return _mm_loadu_si128(static_cast<const __m128i*>(p)); }
  static QTENSOR_INLINE type repeat_16(const void* p) { return load(p); }
  static QTENSOR_INLINE type bytes(int v) { return _mm_set1_epi8(static_cast<char>(v)); }
  static QTENSOR_INLINE type halves(int v) { return _mm_set1_epi16(static_cast<short>(v)); }
  static QTENSOR_INLINE type words(int v) { return _mm_set1_epi32(v); }
  static QTENSOR_INLINE type both(type a, type b) { return _mm_and_si128(a, b); }
  static QTENSOR_INLINE type flipped(type a) { return _mm_xor_si128(a, bytes(0x80)); }
  static QTENSOR_INLINE type shift_4(type a) { return _mm_srli_epi16(a, 4); }
  static QTENSOR_INLINE type shuffle(type t, type index) { return _mm_shuffle_epi8(t, index); }
  static QTENSOR_INLINE type multiply_bytes(type w, type x) { return _mm_maddubs_epi16(w, x); }
  static QTENSOR_INLINE type multiply_pairs(type a, type b) { return _mm_madd_epi16(a, b); }
  static QTENSOR_INLINE type add_16(type a, type b) { return _mm_add_epi16(a, b); }
  static QTENSOR_INLINE type add_32(type a, type b) { return _mm_add_epi32(a, b); }
};
struct sse42_nibble_dot : paired_nibble_dot<sse42_arch, bits_128> {};
#endif

#if QTENSOR_LEVEL_X86 >= 3
struct bits_256 {
  using type = __m256i;
  static QTENSOR_INLINE type load(const void* p) { return _mm256_loadu_si256(static_cast<const __m256i*>(p)); }
  static QTENSOR_INLINE type repeat_16(const void* p) {
    return _mm256_broadcastsi128_si256(_mm_loadu_si128(static_cast<const __m128i*>(p)));
  }
  static QTENSOR_INLINE type bytes(int v) { return _mm256_set1_epi8(static_cast<char>(v)); }
  static QTENSOR_INLINE type halves(int v) { return _mm256_set1_epi16(static_cast<short>(v)); }
  static QTENSOR_INLINE type words(int v) { return _mm256_set1_epi32(v); }
  static QTENSOR_INLINE type both(type a, type b) { return _mm256_and_si256(a, b); }
  static QTENSOR_INLINE type flipped(type a) { return _mm256_xor_si256(a, bytes(0x80)); }
  static QTENSOR_INLINE type shift_4(type a) { return _mm256_srli_epi16(a, 4); }
  static QTENSOR_INLINE type shuffle(type t, type index) { return _mm256_shuffle_epi8(t, index); }
  static QTENSOR_INLINE type multiply_bytes(type w, type x) { return _mm256_maddubs_epi16(w, x); }
  static QTENSOR_INLINE type multiply_pairs(type a, type b) { return _mm256_madd_epi16(a, b); }
  static QTENSOR_INLINE type add_16(type a, type b) { return _mm256_add_epi16(a, b); }
  static QTENSOR_INLINE type add_32(type a, type b) { return _mm256_add_epi32(a, b); }
};
struct avx2_nibble_dot : paired_nibble_dot<avx2_arch, bits_256> {};
#endif

// With one: any byte may be a weight.
#if defined(__AVXVNNI__) || defined(__AVX512VNNI__)
template <class A, class Bits>
struct vnni_nibble_dot : paired_nibble_dot<A, Bits> {
  using codes = typename Bits::type;
  using row = codes;
  static constexpr bool takes_bytes = true;
  static constexpr int quads_at_once = 1;
  static constexpr int largest(int) { return 255; }

  static QTENSOR_INLINE codes load(const std::uint8_t* quads) {
    codes c = Bits::load(quads);
    asm("" : "+x"(c));  // g++ 12 otherwise repeats the load for every row
    return c;
  }
  static QTENSOR_INLINE codes flipped(codes c) { return Bits::flipped(c); }
  template <std::size_t N>
  static QTENSOR_INLINE ints<A> dot(const ints<A>& sum, const codes (&w)[N], const row (&x)[N]) {
    codes all = sum.data;
#pragma GCC unroll 8
    for (std::size_t q = 0; q < N; ++q) all = Bits::dot(all, w[q], x[q]);
    return all;
  }
  static QTENSOR_INLINE ints<A> quad_sums(const std::int8_t* from) {
    return Bits::dot(Bits::bytes(0), Bits::bytes(1), Bits::load(from));
  }
};
#endif
#if defined(__AVXVNNI__)
struct vnni_256 : bits_256 {
  static QTENSOR_INLINE type dot(type sum, type w, type x) { return _mm256_dpbusd_avx_epi32(sum, w, x); }
};
struct avxvnni_nibble_dot : vnni_nibble_dot<avx2_arch, vnni_256> {};
#endif

#if QTENSOR_LEVEL_X86 >= 4
struct bits_512 {
  using type = __m512i;
  static QTENSOR_INLINE type load(const void* p) { return _mm512_loadu_si512(p); }
#if defined(__AVX512VBMI__)
  static QTENSOR_INLINE type shuffle(type t, type index) { return _mm512_permutexvar_epi8(index, t); }
#else
  static QTENSOR_INLINE type shuffle(type t, type index) { return _mm512_shuffle_epi8(t, index); }
#endif
  static QTENSOR_INLINE type repeat_16(const void* p) {
    return _mm512_broadcast_i32x4(_mm_loadu_si128(static_cast<const __m128i*>(p)));
  }
  static QTENSOR_INLINE type bytes(int v) { return _mm512_set1_epi8(static_cast<char>(v)); }
  static QTENSOR_INLINE type halves(int v) { return _mm512_set1_epi16(static_cast<short>(v)); }
  static QTENSOR_INLINE type words(int v) { return _mm512_set1_epi32(v); }
  static QTENSOR_INLINE type both(type a, type b) { return _mm512_and_si512(a, b); }
  static QTENSOR_INLINE type flipped(type a) { return _mm512_xor_si512(a, bytes(0x80)); }
  static QTENSOR_INLINE type shift_4(type a) { return _mm512_srli_epi16(a, 4); }
  static QTENSOR_INLINE type multiply_bytes(type w, type x) { return _mm512_maddubs_epi16(w, x); }
  static QTENSOR_INLINE type multiply_pairs(type a, type b) { return _mm512_madd_epi16(a, b); }
  static QTENSOR_INLINE type add_16(type a, type b) { return _mm512_add_epi16(a, b); }
  static QTENSOR_INLINE type add_32(type a, type b) { return _mm512_add_epi32(a, b); }
};
#if defined(__AVX512VNNI__)
struct vnni_512 : bits_512 {
  static QTENSOR_INLINE type dot(type sum, type w, type x) { return _mm512_dpbusd_epi32(sum, w, x); }
};
struct avx512_nibble_dot : vnni_nibble_dot<avx512_arch, vnni_512> {
  static QTENSOR_INLINE codes load(const std::uint8_t* quads) {
    codes c = _mm512_loadu_si512(quads);
    asm("" : "+v"(c));
    return c;
  }
#if defined(__AVX512VBMI__)
  // The 16 entries repeat in the register, so the bits above a nibble do not matter.
  static QTENSOR_INLINE codes low(codes c, table t) { return _mm512_permutexvar_epi8(c, t); }
  static QTENSOR_INLINE codes high(codes c, table t) { return _mm512_permutexvar_epi8(_mm512_srli_epi16(c, 4), t); }
  using vnni_nibble_dot::high;
  using vnni_nibble_dot::low;
#endif
};
#else
struct avx512_nibble_dot : paired_nibble_dot<avx512_arch, bits_512> {};
#endif
#endif

#if QTENSOR_LEVEL_NEON
struct neon_nibble_dot {
  using codes = uint8x16_t;
  using table = uint8x16_t;
  using row = int8x16_t;
  static constexpr bool takes_bytes = false;
  static constexpr int quads_at_once = 1;
  static constexpr int largest(int) { return 127; }

  static QTENSOR_INLINE codes load(const std::uint8_t* quads) { return vld1q_u8(quads); }
  static QTENSOR_INLINE codes low(codes c) { return vandq_u8(c, vdupq_n_u8(15)); }
  static QTENSOR_INLINE codes high(codes c) { return vshrq_n_u8(c, 4); }
  static QTENSOR_INLINE table table_of(const std::uint8_t* entries) { return vld1q_u8(entries); }
  static QTENSOR_INLINE codes low(codes c, table t) { return vqtbl1q_u8(t, low(c)); }
  static QTENSOR_INLINE codes high(codes c, table t) { return vqtbl1q_u8(t, high(c)); }
  static QTENSOR_INLINE row broadcast(const std::int8_t* four) { return neon_dot::broadcast(four); }
  template <std::size_t N>
  static QTENSOR_INLINE ints<neon_arch> dot(const ints<neon_arch>& sum, const codes (&w)[N], const row (&x)[N]) {
    ints<neon_arch> all = sum;
    for (std::size_t q = 0; q < N; ++q) all = neon_dot::dot(all, vreinterpretq_s8_u8(w[q]), x[q]);
    return all;
  }
  static QTENSOR_INLINE ints<neon_arch> quad_sums(const std::int8_t* from) {
    return vpaddlq_s16(vpaddlq_s8(vld1q_s8(from)));
  }
};
#endif

template <class A>
constexpr auto nibble_dot_of() {
#if QTENSOR_LEVEL_X86 >= 4
  if constexpr (std::same_as<A, avx512_arch>) return avx512_nibble_dot{};
#endif
#if defined(__AVXVNNI__)
  if constexpr (std::same_as<A, avx2_arch>) return avxvnni_nibble_dot{};
#elif QTENSOR_LEVEL_X86 >= 3
  if constexpr (std::same_as<A, avx2_arch>) return avx2_nibble_dot{};
#endif
#if defined(__x86_64__) && QTENSOR_LEVEL_X86 >= 2
  if constexpr (std::same_as<A, sse42_arch>) return sse42_nibble_dot{};
#endif
#if QTENSOR_LEVEL_NEON
  if constexpr (std::same_as<A, neon_arch>) return neon_nibble_dot{};
#endif
  if constexpr (std::same_as<A, scalar_arch>) return portable_nibble_dot<A>{};
}

#if defined(__x86_64__) && QTENSOR_LEVEL_X86 >= 2
QTENSOR_INLINE __m128i multiply_add_pairs(__m128i sum, __m128i a, __m128i b) {
  return _mm_add_epi32(sum, _mm_madd_epi16(a, b));
}
#if QTENSOR_LEVEL_X86 >= 3
QTENSOR_INLINE __m256i multiply_add_pairs(__m256i sum, __m256i a, __m256i b) {
  return _mm256_add_epi32(sum, _mm256_madd_epi16(a, b));
}
#endif
#if QTENSOR_LEVEL_X86 >= 4
QTENSOR_INLINE __m512i multiply_add_pairs(__m512i sum, __m512i a, __m512i b) {
#if defined(__AVX512VNNI__)
  return _mm512_dpwssd_epi32(sum, a, b);
#else
  return _mm512_add_epi32(sum, _mm512_madd_epi16(a, b));
#endif
}
#endif
#endif

template <class A>
struct factors {
  static constexpr bool in_pairs = false;
  static QTENSOR_INLINE ints<A> multiply_add(const ints<A>& sum, const ints<A>& a, const ints<A>& b) {
    return sum + a * b;
  }
};
// x86 multiplies 32 bits slowly and pairs of 16 bits fast: a * b = a (b mod 128) + 128 a (b / 128).
#if defined(__x86_64__) && QTENSOR_LEVEL_X86 >= 2
template <class A>
requires(!std::same_as<A, scalar_arch>) struct factors<A> {
  static constexpr bool in_pairs = true;
  static QTENSOR_INLINE ints<A> multiply_add(const ints<A>& sum, const ints<A>& a, const ints<A>& b) {
    return ints<A>(multiply_add_pairs(sum.data, a.data, b.data));
  }
};
#endif

}  // namespace detail

/// Dot products of `lanes` quads of unsigned weights with a quad of signed bytes:
///   load(quads) -> codes             4 * lanes bytes: the low nibbles are weights of one column a lane, the high ones
///                                    of another, or both together are one weight (takes_bytes)
///   low(c), high(c)                  their nibbles, 0 to 15
///   low(c, t), high(c, t)            the entries of t = table_of(16 bytes) that they number
///   broadcast(four) -> row           a quad of signed bytes
///   dot(sum, w, x)                   lane i: sum + the products of N quads w[q] with x[q]; weights to largest(N)
///   quads_at_once                    the N that is best where weights are small
///   quad_sums(from)                  lane i: the sum of the signed bytes of quad i, 4 * lanes bytes from `from`
///   flipped(c)                       c xor 0x80 (where takes_bytes): signed weights plus 128
///   takes_bytes                      weights may be whole bytes, largest() is 255, a dot is one instruction
/// Cost of a dot: VNNI and NEON dot 1, other x86 2.5.
template <usable_arch A>
using nibble_dot = decltype(detail::nibble_dot_of<A>());

/// Factors of multiply_add: `small` is within [-255, 255], `large` within [-2^22, 2^22).
template <usable_arch A>
constexpr std::int32_t small_factor(std::int32_t v) {
  if constexpr (!detail::factors<A>::in_pairs) return v;
  return static_cast<std::int32_t>((static_cast<std::uint32_t>(v) & 0xffffu) | static_cast<std::uint32_t>(v) << 23);
}
/// to[i] = small_factor(-from[i]), modulo 2^32 before it is one, as all below; they do not overlap.
template <usable_arch A, class From>
[[gnu::flatten]] QTENSOR_VECTOR_LOOPS void negated_small_factors(const From* from, index_t count, std::int32_t* to) {
  for (index_t i = 0; i < count; ++i) {
    const auto negated = 0u - static_cast<std::uint32_t>(static_cast<std::int32_t>(from[i]));
    to[i] = small_factor<A>(static_cast<std::int32_t>(negated));
  }
}
template <usable_arch A>
constexpr std::int32_t large_factor(std::int32_t v) {
  if constexpr (!detail::factors<A>::in_pairs) return v;
  return static_cast<std::int32_t>((static_cast<std::uint32_t>(v) & 127u) | static_cast<std::uint32_t>(v >> 7) << 16);
}
/// to[i] = large_factor(from[i] + added), or large_factor(from[i] - n * zeros[i]); they do not overlap.
template <usable_arch A>
[[gnu::flatten]] QTENSOR_VECTOR_LOOPS void large_factors(const std::int32_t* from, index_t count, std::int32_t added,
                                                         std::int32_t* to) {
  for (index_t i = 0; i < count; ++i) {
    const auto sum = static_cast<std::uint32_t>(from[i]) + static_cast<std::uint32_t>(added);
    to[i] = large_factor<A>(static_cast<std::int32_t>(sum));
  }
}
template <usable_arch A, class Zero>
[[gnu::flatten]] QTENSOR_VECTOR_LOOPS void large_factors(const std::int32_t* from, index_t count, std::int32_t n,
                                                         const Zero* zeros, std::int32_t* to) {
  for (index_t i = 0; i < count; ++i) {
    const auto zero = static_cast<std::uint32_t>(static_cast<std::int32_t>(zeros[i]));
    const auto rest = static_cast<std::uint32_t>(from[i]) - static_cast<std::uint32_t>(n) * zero;
    to[i] = large_factor<A>(static_cast<std::int32_t>(rest));
  }
}
/// sum + a * b of a small and a large factor, modulo 2^32, lane by lane. Cost: 1 with VNNI, else 2.
template <usable_arch A>
QTENSOR_INLINE ints<A> multiply_add(const ints<A>& sum, const ints<A>& a, const ints<A>& b) {
  return detail::factors<A>::multiply_add(sum, a, b);
}

}  // namespace qtensor::inline QTENSOR_ABI::simd
