// Native bodies of the vector operations on x86: SSE4.2, AVX2 with FMA. ops.hpp says what they mean.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <qtensor/simd/ops_generic.hpp>

#if QTENSOR_LEVEL_X86 >= 2
namespace qtensor::inline QTENSOR_ABI::simd::detail {

// ---- SSE4.2 --------------------------------------------------------------------------------------------------------

using floats128 = floats<sse42_arch>;
using ints128 = ints<sse42_arch>;
using words128 = words<sse42_arch>;
using halves128 = halves<sse42_arch>;
using bytes128 = bytes<sse42_arch>;

template <class To, class From>
QTENSOR_INLINE xsimd::batch_bool<To, sse42_arch> mask_as(sse42_isa, const xsimd::batch_bool<From, sse42_arch>& m) {
  if constexpr (std::same_as<To, float>) {
    return _mm_castsi128_ps(m.data);
  } else if constexpr (std::same_as<From, float>) {
    return _mm_castps_si128(m.data);
  } else {
    return m.data;
  }
}
QTENSOR_INLINE std::uint32_t mask_bits(sse42_isa, const xsimd::batch_bool<std::uint32_t, sse42_arch>& m) {
  return static_cast<std::uint32_t>(_mm_movemask_ps(_mm_castsi128_ps(m.data)));
}
QTENSOR_INLINE floats128 min(sse42_isa, const floats128& a, const floats128& b) { return _mm_min_ps(a.data, b.data); }
QTENSOR_INLINE floats128 max(sse42_isa, const floats128& a, const floats128& b) { return _mm_max_ps(a.data, b.data); }

QTENSOR_INLINE bytes128 add_saturated(sse42_isa, const bytes128& a, const bytes128& b) {
  return _mm_adds_epu8(a.data, b.data);
}
QTENSOR_INLINE bytes128 sub_saturated(sse42_isa, const bytes128& a, const bytes128& b) {
  return _mm_subs_epu8(a.data, b.data);
}

QTENSOR_INLINE std::uint32_t reduce_max(sse42_isa, const words128& v) {
  const __m128i pair = _mm_max_epu32(v.data, _mm_shuffle_epi32(v.data, 0x4e));
  return static_cast<std::uint32_t>(_mm_cvtsi128_si32(_mm_max_epu32(pair, _mm_shuffle_epi32(pair, 0xb1))));
}
QTENSOR_INLINE std::uint32_t reduce_add(sse42_isa, const words128& v) {
  const __m128i pair = _mm_add_epi32(v.data, _mm_shuffle_epi32(v.data, 0x4e));
  return static_cast<std::uint32_t>(_mm_cvtsi128_si32(_mm_add_epi32(pair, _mm_shuffle_epi32(pair, 0xb1))));
}
QTENSOR_INLINE __m128i of_both(lane_max, __m128i a, __m128i b) { return _mm_max_epu32(a, b); }
QTENSOR_INLINE __m128i of_both(lane_sum, __m128i a, __m128i b) { return _mm_add_epi32(a, b); }
// Each step halves the rows: unpacking puts the partners of two rows side by side.
template <class Op>
QTENSOR_INLINE __m128i of_pairs32(Op op, __m128i a, __m128i b) {
  return of_both(op, _mm_unpacklo_epi32(a, b), _mm_unpackhi_epi32(a, b));
}
template <class Op>
QTENSOR_INLINE __m128i of_pairs64(Op op, __m128i a, __m128i b) {
  return of_both(op, _mm_unpacklo_epi64(a, b), _mm_unpackhi_epi64(a, b));
}
template <class A, class Op, class Row>
QTENSOR_INLINE words128 reduce_each(sse42_isa, Op op, Row row) {
  const __m128i r01 = of_pairs32(op, row(index_t{0}).data, row(index_t{1}).data);
  const __m128i r23 = of_pairs32(op, row(index_t{2}).data, row(index_t{3}).data);
  return of_pairs64(op, r01, r23);
}

// Maxima of words next to each other, of doublewords and of quadwords; lane i of the arguments becomes lanes 2 * i.
QTENSOR_INLINE __m128i max_halves16(__m128i a, __m128i b) {
  return _mm_max_epu16(_mm_unpacklo_epi16(a, b), _mm_unpackhi_epi16(a, b));
}
QTENSOR_INLINE __m128i max_halves32(__m128i a, __m128i b) {
  return _mm_max_epu16(_mm_unpacklo_epi32(a, b), _mm_unpackhi_epi32(a, b));
}
template <class A, int BlocksOfRow, class Row>
requires(BlocksOfRow == 1) QTENSOR_INLINE words128 reduce_max_each_half(sse42_isa, Row row) {
  const __m128i r01 = max_halves16(row(index_t{0}).data, row(index_t{1}).data);
  const __m128i r = max_halves32(r01, max_halves16(row(index_t{2}).data, row(index_t{3}).data));
  return _mm_cvtepu16_epi32(_mm_max_epu16(r, _mm_unpackhi_epi64(r, r)));
}

QTENSOR_INLINE floats128 rounded(sse42_isa, floats128 x) {
  asm("" : "+x"(x.data));
  return x;
}

// Two lanes of fma_in_double (ops_generic.hpp).
QTENSOR_INLINE __m128d fma_in_double(__m128d a, __m128d b, __m128d c) {
  const __m128d product = _mm_mul_pd(a, b), sum = _mm_add_pd(product, c), zero = _mm_setzero_pd();
  const __m128d kept = _mm_sub_pd(sum, product);
  const __m128d lost = _mm_add_pd(_mm_sub_pd(product, _mm_sub_pd(sum, kept)), _mm_sub_pd(c, kept));
  const __m128i word = _mm_castpd_si128(sum), one = _mm_set1_epi64x(1);
  const __m128i up = _mm_castpd_si128(_mm_cmpgt_pd(lost, zero)), down = _mm_castpd_si128(_mm_cmplt_pd(lost, zero));
  const __m128i positive = _mm_castpd_si128(_mm_cmpgt_pd(sum, zero));
  // +1 where lost has the sign of sum, -1 where it has the other, 0 where nothing was lost or the last bit is 1.
  const __m128i away = _mm_xor_si128(positive, down);  // all ones: grow the magnitude
  const __m128i step = _mm_or_si128(_mm_andnot_si128(away, _mm_set1_epi64x(-1)), one);
  const __m128i even = _mm_cmpeq_epi64(_mm_and_si128(word, one), _mm_setzero_si128());
  return _mm_castsi128_pd(_mm_add_epi64(word, _mm_and_si128(_mm_and_si128(step, even), _mm_or_si128(up, down))));
}
QTENSOR_INLINE floats128 fma(sse42_isa, const floats128& a, const floats128& b, const floats128& c) {
  const auto high = [](__m128 v) { return _mm_cvtps_pd(_mm_movehl_ps(v, v)); };
  const __m128d r0 = fma_in_double(_mm_cvtps_pd(a.data), _mm_cvtps_pd(b.data), _mm_cvtps_pd(c.data));
  const __m128d r1 = fma_in_double(high(a.data), high(b.data), high(c.data));
  return _mm_movelh_ps(_mm_cvtpd_ps(r0), _mm_cvtpd_ps(r1));
}

QTENSOR_INLINE ints128 round_to_int(sse42_isa, const floats128& x) { return _mm_cvtps_epi32(x.data); }
QTENSOR_INLINE ints128 round_to_int_checked(sse42_isa, const floats128& x) { return _mm_cvtps_epi32(x.data); }
QTENSOR_INLINE ints128 truncate_to_int(sse42_isa, const floats128& x) { return _mm_cvttps_epi32(x.data); }
QTENSOR_INLINE floats128 to_float(sse42_isa, const ints128& x) { return _mm_cvtepi32_ps(x.data); }
QTENSOR_INLINE floats128 nearest(sse42_isa, const floats128& x) { return _mm_round_ps(x.data, 8); }
QTENSOR_INLINE floats128 floor(sse42_isa, const floats128& x) { return _mm_round_ps(x.data, 9); }
QTENSOR_INLINE floats128 truncate(sse42_isa, const floats128& x) { return _mm_round_ps(x.data, 11); }

QTENSOR_INLINE std::array<words128, 2> multiply_wide(sse42_isa, const words128& a, std::uint32_t b) {
  const __m128i m = _mm_set1_epi32(static_cast<int>(b));
  const __m128i even = _mm_mul_epu32(a.data, m), odd = _mm_mul_epu32(_mm_srli_epi64(a.data, 32), m);
  return {words128(_mm_blend_epi16(even, _mm_slli_epi64(odd, 32), 0xcc)),
          words128(_mm_blend_epi16(_mm_srli_epi64(even, 32), odd, 0xcc))};
}

QTENSOR_INLINE __m128i load32(const void* from) {
  std::int32_t v;
  std::memcpy(&v, from, sizeof v);
  return _mm_cvtsi32_si128(v);
}
template <class A, class Wide>
QTENSOR_INLINE words128 widen(sse42_isa, const std::uint8_t* from) {
  return _mm_cvtepu8_epi32(load32(from));
}
template <class A, class Wide>
QTENSOR_INLINE ints128 widen(sse42_isa, const std::int8_t* from) {
  return _mm_cvtepi8_epi32(load32(from));
}
template <class A, class Wide>
QTENSOR_INLINE words128 widen(sse42_isa, const std::uint16_t* from) {
  return _mm_cvtepu16_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from)));
}
template <class A, class Wide>
QTENSOR_INLINE ints128 widen(sse42_isa, const std::int16_t* from) {
  return _mm_cvtepi16_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from)));
}

QTENSOR_INLINE bytes128 narrow_i8(sse42_isa, const ints128& a, const ints128& b, const ints128& c, const ints128& d) {
  return _mm_packs_epi16(_mm_packs_epi32(a.data, b.data), _mm_packs_epi32(c.data, d.data));
}
QTENSOR_INLINE bytes128 narrow_u8(sse42_isa, const ints128& a, const ints128& b, const ints128& c, const ints128& d) {
  return _mm_packus_epi16(_mm_packs_epi32(a.data, b.data), _mm_packs_epi32(c.data, d.data));
}
QTENSOR_INLINE bytes128 low_bytes(sse42_isa isa, const words128& a, const words128& b, const words128& c,
                                  const words128& d) {
  const __m128i low = _mm_set1_epi32(0xff);
  return narrow_u8(isa, ints128(_mm_and_si128(a.data, low)), ints128(_mm_and_si128(b.data, low)),
                   ints128(_mm_and_si128(c.data, low)), ints128(_mm_and_si128(d.data, low)));
}
QTENSOR_INLINE halves128 low_halves(sse42_isa, const words128& a, const words128& b) {
  const __m128i low = _mm_set1_epi32(0xffff);
  return _mm_packus_epi32(_mm_and_si128(a.data, low), _mm_and_si128(b.data, low));
}
QTENSOR_INLINE halves128 upper_halves(sse42_isa, const words128& a, const words128& b) {
  return _mm_packus_epi32(_mm_srli_epi32(a.data, 16), _mm_srli_epi32(b.data, 16));
}
template <bool Signed>
QTENSOR_INLINE std::array<ints128, 2> widen_pairs(sse42_isa, const std::uint8_t* from) {
  const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(from));
  if constexpr (Signed) {
    const __m128i both = _mm_cvtepi8_epi16(bytes);
    return {ints128(_mm_srai_epi32(_mm_slli_epi32(both, 16), 16)), ints128(_mm_srai_epi32(both, 16))};
  } else {
    const __m128i both = _mm_cvtepu8_epi16(bytes);
    return {ints128(_mm_blend_epi16(both, _mm_setzero_si128(), 0xaa)), ints128(_mm_srli_epi32(both, 16))};
  }
}
// Half an ulp is added to all; those that were halfway, whose lower bits are gone then, go down to an even one.
template <bool Untied>
QTENSOR_INLINE halves128 narrow_bf16_pairs(sse42_isa, const floats128& even, const floats128& odd) {
  const __m128i half = _mm_set1_epi32(0x8000);
  const __m128i a = _mm_add_epi32(_mm_castps_si128(even.data), half),
                b = _mm_add_epi32(_mm_castps_si128(odd.data), half);
  const __m128i upper = _mm_blend_epi16(_mm_srli_epi32(a, 16), b, 0xaa);
  if constexpr (Untied) return upper;
  const __m128i lower = _mm_blend_epi16(a, _mm_slli_epi32(b, 16), 0xaa);
  const __m128i tied = _mm_cmpeq_epi16(lower, _mm_setzero_si128());
  return _mm_andnot_si128(_mm_srli_epi16(tied, 15), upper);
}

// Any number of entries from 16-entry shuffles, which give 0 where the top bit of an index is set. Up to 128: of chunks
// as differences to the one before, all up to that of the index are joined. More: an index outside a chunk gets its top
// bit set.
template <int Entries>
struct byte_table<sse42_isa, sse42_arch, Entries> {
  explicit byte_table(const std::uint8_t* table) {
    for (int k = 0; k < Entries / 16; ++k) chunk_[k] = _mm_loadu_si128(reinterpret_cast<const __m128i*>(table) + k);
    if constexpr (Entries <= 128)
      for (int k = Entries / 16 - 1; k > 0; --k) chunk_[k] = _mm_xor_si128(chunk_[k], chunk_[k - 1]);
  }
  QTENSOR_INLINE bytes128 operator()(const bytes128& index) const {
    __m128i from = index.data;
    if constexpr (Entries <= 128) {
      __m128i r = _mm_shuffle_epi8(chunk_[0], from);
#pragma GCC unroll 8
      for (int k = 1; k < Entries / 16; ++k) {
        from = _mm_sub_epi8(from, _mm_set1_epi8(16));
        r = _mm_xor_si128(r, _mm_shuffle_epi8(chunk_[k], from));
      }
      return r;
    } else {
      __m128i r = _mm_setzero_si128();
#pragma GCC unroll 16
      for (int k = 0; k < Entries / 16; ++k) {
        r = _mm_or_si128(r, _mm_shuffle_epi8(chunk_[k], _mm_adds_epu8(from, _mm_set1_epi8(0x70))));
        from = _mm_sub_epi8(from, _mm_set1_epi8(16));
      }
      return r;
    }
  }
  __m128i chunk_[Entries / 16];
};

QTENSOR_INLINE std::array<halves128, 2> halves_from_planes(sse42_isa, const bytes128& high, const bytes128& low) {
  return {halves128(_mm_unpacklo_epi8(low.data, high.data)), halves128(_mm_unpackhi_epi8(low.data, high.data))};
}
QTENSOR_INLINE bytes128 pack_signed(sse42_isa, const halves128& a, const halves128& b) {
  return _mm_packs_epi16(a.data, b.data);
}
QTENSOR_INLINE bytes128 pack_unsigned(sse42_isa, const halves128& a, const halves128& b) {
  return _mm_packus_epi16(a.data, b.data);
}
QTENSOR_INLINE halves128 join_low_halves(sse42_isa, const words128& even, const words128& odd) {
  return _mm_blend_epi16(even.data, _mm_slli_epi32(odd.data, 16), 0xaa);
}
QTENSOR_INLINE bool any_top_bit(sse42_isa, const bytes128& v) { return _mm_movemask_epi8(v.data) != 0; }
QTENSOR_INLINE bool any_half_above(sse42_isa, const halves128& v, std::uint16_t limit) {
  return _mm_movemask_epi8(_mm_cmpgt_epi16(v.data, _mm_set1_epi16(static_cast<short>(limit)))) != 0;
}
template <class A>
QTENSOR_INLINE bytes<A> binade_codes(sse42_isa isa, const std::array<floats<A>, 4>& q, const binade_steps& steps) {
  const auto upper = [&](std::size_t k) QTENSOR_INLINE_LAMBDA {
    return upper_halves(isa, bits_as<std::uint32_t>(isa, q[k]), bits_as<std::uint32_t>(isa, q[k + 1]));
  };
  return packed_binade_codes<sse42_arch>(isa, upper(0), upper(2), steps);
}
QTENSOR_INLINE bytes128 interleave_pairs(sse42_isa, const bytes128& v) {
  return _mm_shuffle_epi8(v.data, _mm_setr_epi8(0, 4, 1, 5, 2, 6, 3, 7, 8, 12, 9, 13, 10, 14, 11, 15));
}
QTENSOR_INLINE std::array<floats128, 4> floats_from_planes(sse42_isa, const bytes128& high, const bytes128& low) {
  const __m128i zero = _mm_setzero_si128();
  const __m128i a = _mm_unpacklo_epi8(low.data, high.data), b = _mm_unpackhi_epi8(low.data, high.data);
  return {floats128(_mm_castsi128_ps(_mm_unpacklo_epi16(zero, a))),
          floats128(_mm_castsi128_ps(_mm_unpackhi_epi16(zero, a))),
          floats128(_mm_castsi128_ps(_mm_unpacklo_epi16(zero, b))),
          floats128(_mm_castsi128_ps(_mm_unpackhi_epi16(zero, b)))};
}

// Words of (1, 16): first + 16 * second in one multiply-add.
inline constexpr int nibble_weights = 0x1001;
QTENSOR_INLINE bytes128 join_nibbles(sse42_isa, const bytes128& a, const bytes128& b) {
  const __m128i low = _mm_set1_epi8(15), weights = _mm_set1_epi16(nibble_weights);
  return _mm_packus_epi16(_mm_maddubs_epi16(_mm_and_si128(a.data, low), weights),
                          _mm_maddubs_epi16(_mm_and_si128(b.data, low), weights));
}
QTENSOR_INLINE __m128i in_halves(__m128i low, __m128i high) {
  const __m128i mask = _mm_set1_epi8(15);
  return _mm_or_si128(_mm_and_si128(low, mask), _mm_andnot_si128(mask, _mm_slli_epi16(high, 4)));
}
template <int Half>
QTENSOR_INLINE bytes128 join_halves(sse42_isa, const bytes128& a, const bytes128& b) {
  if constexpr (Half == 16) return in_halves(a.data, b.data);
  return in_halves(_mm_unpacklo_epi64(a.data, b.data), _mm_unpackhi_epi64(a.data, b.data));
}
QTENSOR_INLINE void put_nibbles(sse42_isa isa, std::uint8_t* to, const bytes128& v, bool past_caches) {
  const __m128i pairs = join_nibbles(isa, v, v).data;
  if (past_caches) [[unlikely]]
    _mm_stream_si64(reinterpret_cast<long long*>(to), _mm_cvtsi128_si64(pairs));
  else
    _mm_storel_epi64(reinterpret_cast<__m128i*>(to), pairs);
}
QTENSOR_INLINE std::array<bytes128, 2> split_nibbles(sse42_isa, const bytes128& v) {
  const __m128i mask = _mm_set1_epi8(15), low = _mm_and_si128(v.data, mask);
  const __m128i high = _mm_and_si128(_mm_srli_epi16(v.data, 4), mask);
  return {bytes128(_mm_unpacklo_epi8(low, high)), bytes128(_mm_unpackhi_epi8(low, high))};
}

template <class T>
QTENSOR_INLINE void stream(sse42_isa, T* to, const xsimd::batch<T, sse42_arch>& v) {
  _mm_stream_si128(reinterpret_cast<__m128i*>(to), std::bit_cast<__m128i>(v.data));
}
QTENSOR_INLINE void stream_fence(sse42_isa) { _mm_sfence(); }

#if QTENSOR_LEVEL_X86 >= 3
// ---- AVX2 with FMA -------------------------------------------------------------------------------------------------

using floats256 = floats<avx2_arch>;
using ints256 = ints<avx2_arch>;
using words256 = words<avx2_arch>;
using halves256 = halves<avx2_arch>;
using bytes256 = bytes<avx2_arch>;

template <class To, class From>
QTENSOR_INLINE xsimd::batch_bool<To, avx2_arch> mask_as(avx2_isa, const xsimd::batch_bool<From, avx2_arch>& m) {
  if constexpr (std::same_as<To, float>) {
    return _mm256_castsi256_ps(m.data);
  } else if constexpr (std::same_as<From, float>) {
    return _mm256_castps_si256(m.data);
  } else {
    return m.data;
  }
}
QTENSOR_INLINE std::uint32_t mask_bits(avx2_isa, const xsimd::batch_bool<std::uint32_t, avx2_arch>& m) {
  return static_cast<std::uint32_t>(_mm256_movemask_ps(_mm256_castsi256_ps(m.data)));
}
QTENSOR_INLINE floats256 min(avx2_isa, const floats256& a, const floats256& b) { return _mm256_min_ps(a.data, b.data); }
QTENSOR_INLINE floats256 max(avx2_isa, const floats256& a, const floats256& b) { return _mm256_max_ps(a.data, b.data); }

QTENSOR_INLINE bytes256 add_saturated(avx2_isa, const bytes256& a, const bytes256& b) {
  return _mm256_adds_epu8(a.data, b.data);
}
QTENSOR_INLINE bytes256 sub_saturated(avx2_isa, const bytes256& a, const bytes256& b) {
  return _mm256_subs_epu8(a.data, b.data);
}

QTENSOR_INLINE std::uint32_t reduce_max(avx2_isa, const words256& v) {
  return reduce_max(sse42_isa{},
                    words128(_mm_max_epu32(_mm256_castsi256_si128(v.data), _mm256_extracti128_si256(v.data, 1))));
}
QTENSOR_INLINE std::uint32_t reduce_add(avx2_isa, const words256& v) {
  return reduce_add(sse42_isa{},
                    words128(_mm_add_epi32(_mm256_castsi256_si128(v.data), _mm256_extracti128_si256(v.data, 1))));
}
QTENSOR_INLINE __m256i of_both(lane_max, __m256i a, __m256i b) { return _mm256_max_epu32(a, b); }
QTENSOR_INLINE __m256i of_both(lane_sum, __m256i a, __m256i b) { return _mm256_add_epi32(a, b); }
template <class Op>
QTENSOR_INLINE __m256i of_pairs32(Op op, __m256i a, __m256i b) {
  return of_both(op, _mm256_unpacklo_epi32(a, b), _mm256_unpackhi_epi32(a, b));
}
template <class Op>
QTENSOR_INLINE __m256i of_pairs64(Op op, __m256i a, __m256i b) {
  return of_both(op, _mm256_unpacklo_epi64(a, b), _mm256_unpackhi_epi64(a, b));
}
template <class A, class Op, class Row>
QTENSOR_INLINE words256 reduce_each(avx2_isa, Op op, Row row) {
  const auto two = [&](index_t b) QTENSOR_INLINE_LAMBDA {
    const __m256i r0 = row(b).data, r1 = row(b + 1).data;
    keep_order();
    return of_pairs32(op, r0, r1);
  };
  const auto four = [&](index_t b) QTENSOR_INLINE_LAMBDA {
    const __m256i r01 = two(b), r23 = two(b + 2);
    return of_pairs64(op, r01, r23);
  };
  const __m256i a = four(0), b = four(4);
  return of_both(op, _mm256_permute2x128_si256(a, b, 0x20), _mm256_permute2x128_si256(a, b, 0x31));
}

template <class A, int BlocksOfRow, class Row>
requires(BlocksOfRow == 1) QTENSOR_INLINE words256 reduce_max_each_half(avx2_isa, Row row) {
  const auto two = [&](index_t b) QTENSOR_INLINE_LAMBDA {
    const __m256i x = row(b).data, y = row(b + 1).data;
    return _mm256_max_epu16(_mm256_unpacklo_epi16(x, y), _mm256_unpackhi_epi16(x, y));
  };
  const auto four = [&](index_t b) QTENSOR_INLINE_LAMBDA {
    const __m256i x = two(b), y = two(b + 2);
    return _mm256_max_epu16(_mm256_unpacklo_epi32(x, y), _mm256_unpackhi_epi32(x, y));
  };
  const __m256i x = four(0), y = four(4);
  const __m256i r = _mm256_max_epu16(_mm256_unpacklo_epi64(x, y), _mm256_unpackhi_epi64(x, y));
  return _mm256_cvtepu16_epi32(_mm_max_epu16(_mm256_castsi256_si128(r), _mm256_extracti128_si256(r, 1)));
}

QTENSOR_INLINE floats256 rounded(avx2_isa, floats256 x) {
  asm("" : "+x"(x.data));
  return x;
}
QTENSOR_INLINE floats256 fma(avx2_isa, const floats256& a, const floats256& b, const floats256& c) {
  return _mm256_fmadd_ps(a.data, b.data, c.data);
}

QTENSOR_INLINE bool any_nan(avx2_isa, const floats256& a, const floats256& b, const floats256& c, const floats256& d) {
  return _mm256_movemask_ps(_mm256_or_ps(_mm256_cmp_ps(a.data, b.data, _CMP_UNORD_Q),
                                         _mm256_cmp_ps(c.data, d.data, _CMP_UNORD_Q))) != 0;
}

QTENSOR_INLINE ints256 round_to_int(avx2_isa, const floats256& x) { return _mm256_cvtps_epi32(x.data); }
QTENSOR_INLINE ints256 round_to_int_checked(avx2_isa, const floats256& x) { return _mm256_cvtps_epi32(x.data); }
QTENSOR_INLINE ints256 truncate_to_int(avx2_isa, const floats256& x) { return _mm256_cvttps_epi32(x.data); }
QTENSOR_INLINE floats256 to_float(avx2_isa, const ints256& x) { return _mm256_cvtepi32_ps(x.data); }
QTENSOR_INLINE floats256 nearest(avx2_isa, const floats256& x) { return _mm256_round_ps(x.data, 8); }
QTENSOR_INLINE floats256 floor(avx2_isa, const floats256& x) { return _mm256_round_ps(x.data, 9); }
QTENSOR_INLINE floats256 truncate(avx2_isa, const floats256& x) { return _mm256_round_ps(x.data, 11); }

QTENSOR_INLINE words256 shift_left(avx2_isa, const words256& v, const words256& count) {
  return _mm256_sllv_epi32(v.data, count.data);
}
QTENSOR_INLINE words256 shift_right(avx2_isa, const words256& v, const words256& count) {
  return _mm256_srlv_epi32(v.data, count.data);
}

QTENSOR_INLINE std::array<words256, 2> multiply_wide(avx2_isa, const words256& a, std::uint32_t b) {
  const __m256i m = _mm256_set1_epi32(static_cast<int>(b));
  const __m256i even = _mm256_mul_epu32(a.data, m), odd = _mm256_mul_epu32(_mm256_srli_epi64(a.data, 32), m);
  return {words256(_mm256_blend_epi32(even, _mm256_slli_epi64(odd, 32), 0xaa)),
          words256(_mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xaa))};
}

// The first n of 8 lanes.
QTENSOR_INLINE __m256i first_lanes(index_t n) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(n)), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
template <class A, class T>
requires(sizeof(T) == 4) QTENSOR_INLINE xsimd::batch<T, avx2_arch> load_n(avx2_isa, const T* from, index_t n, T fill) {
  const __m256i mask = first_lanes(n), rest = _mm256_set1_epi32(std::bit_cast<int>(fill));
  const __m256i got = _mm256_maskload_epi32(reinterpret_cast<const int*>(from), mask);
  const __m256i all = _mm256_blendv_epi8(rest, got, mask);
  return std::bit_cast<typename xsimd::batch<T, avx2_arch>::register_type>(all);
}
template <class T>
requires(sizeof(T) == 4) QTENSOR_INLINE void store_n(avx2_isa, T* to, index_t n, const xsimd::batch<T, avx2_arch>& v) {
  _mm256_maskstore_epi32(reinterpret_cast<int*>(to), first_lanes(n), std::bit_cast<__m256i>(v.data));
}
template <index_t Parts, class A>
QTENSOR_INLINE void store_parts(avx2_isa, std::uint8_t* to, index_t apart, const bytes<A>& v) {
  const __m128i low = _mm256_castsi256_si128(v.data), high = _mm256_extracti128_si256(v.data, 1);
  if constexpr (Parts == 2) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), low);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + apart), high);
  } else {
    const auto quarter = [&](index_t i) QTENSOR_INLINE_LAMBDA { return to + i * apart; };
    _mm_storeu_si64(quarter(0), low);
    _mm_storeu_si64(quarter(1), _mm_unpackhi_epi64(low, low));
    _mm_storeu_si64(quarter(2), high);
    _mm_storeu_si64(quarter(3), _mm_unpackhi_epi64(high, high));
  }
}
template <class A>
QTENSOR_INLINE bytes256 load_quarters(avx2_isa, const std::uint8_t* from, index_t apart) {
  return _mm256_loadu2_m128i(reinterpret_cast<const __m128i*>(from + apart), reinterpret_cast<const __m128i*>(from));
}

template <class A, class Wide>
QTENSOR_INLINE words256 widen(avx2_isa, const std::uint8_t* from) {
  return _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from)));
}
template <class A, class Wide>
QTENSOR_INLINE ints256 widen(avx2_isa, const std::int8_t* from) {
  return _mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from)));
}
template <class A, class Wide>
QTENSOR_INLINE words256 widen(avx2_isa, const std::uint16_t* from) {
  return _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
}
template <class A, class Wide>
QTENSOR_INLINE ints256 widen(avx2_isa, const std::int16_t* from) {
  return _mm256_cvtepi16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
}
#if defined(__F16C__)
// Keeps what is done with floats from being done with the halves they come from, which clang does one by one.
template <class Register>
QTENSOR_INLINE Register widened(Register v) {
#if defined(__clang__)
  asm("" : "+x"(v));
#endif
  return v;
}
QTENSOR_INLINE floats256 widen_f16(avx2_isa, const words256& h) {
  const __m256i low = _mm256_and_si256(h.data, _mm256_set1_epi32(0xffff));
  const __m256i packed = _mm256_permute4x64_epi64(_mm256_packus_epi32(low, low), 0xd8);
  return widened(_mm256_cvtph_ps(_mm256_castsi256_si128(packed)));
}
template <class A>
QTENSOR_INLINE floats256 load_f16(avx2_isa, const std::uint16_t* from) {
  return widened(_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from))));
}
QTENSOR_INLINE floats256 rounded_to_f16(avx2_isa, const floats256& x) {
  return _mm256_cvtph_ps(_mm256_cvtps_ph(x.data, 0));
}
QTENSOR_INLINE halves256 narrow_f16(avx2_isa, const floats256& a, const floats256& b) {
  return _mm256_set_m128i(_mm256_cvtps_ph(b.data, 0), _mm256_cvtps_ph(a.data, 0));
}
#endif

// Packing works within 128 bits: this puts the groups of four back in order.
QTENSOR_INLINE __m256i packed_in_order(__m256i v) {
  return _mm256_permutevar8x32_epi32(v, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}
QTENSOR_INLINE bytes256 narrow_i8(avx2_isa, const ints256& a, const ints256& b, const ints256& c, const ints256& d) {
  return packed_in_order(_mm256_packs_epi16(_mm256_packs_epi32(a.data, b.data), _mm256_packs_epi32(c.data, d.data)));
}
QTENSOR_INLINE bytes256 narrow_u8(avx2_isa, const ints256& a, const ints256& b, const ints256& c, const ints256& d) {
  return packed_in_order(_mm256_packus_epi16(_mm256_packs_epi32(a.data, b.data), _mm256_packs_epi32(c.data, d.data)));
}
QTENSOR_INLINE bytes256 low_bytes(avx2_isa isa, const words256& a, const words256& b, const words256& c,
                                  const words256& d) {
  const __m256i low = _mm256_set1_epi32(0xff);
  return narrow_u8(isa, ints256(_mm256_and_si256(a.data, low)), ints256(_mm256_and_si256(b.data, low)),
                   ints256(_mm256_and_si256(c.data, low)), ints256(_mm256_and_si256(d.data, low)));
}
QTENSOR_INLINE halves256 low_halves(avx2_isa, const words256& a, const words256& b) {
  const __m256i low = _mm256_set1_epi32(0xffff);
  return _mm256_permute4x64_epi64(_mm256_packus_epi32(_mm256_and_si256(a.data, low), _mm256_and_si256(b.data, low)),
                                  0xd8);
}
QTENSOR_INLINE halves256 upper_halves(avx2_isa, const words256& a, const words256& b) {
  return _mm256_permute4x64_epi64(_mm256_packus_epi32(_mm256_srli_epi32(a.data, 16), _mm256_srli_epi32(b.data, 16)),
                                  0xd8);
}
template <bool Signed>
QTENSOR_INLINE std::array<ints256, 2> widen_pairs(avx2_isa, const std::uint8_t* from) {
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
  if constexpr (Signed) {
    const __m256i both = _mm256_cvtepi8_epi16(bytes);
    return {ints256(_mm256_srai_epi32(_mm256_slli_epi32(both, 16), 16)), ints256(_mm256_srai_epi32(both, 16))};
  } else {
    const __m256i both = _mm256_cvtepu8_epi16(bytes);
    return {ints256(_mm256_blend_epi16(both, _mm256_setzero_si256(), 0xaa)), ints256(_mm256_srli_epi32(both, 16))};
  }
}
// Half an ulp is added to all; those that were halfway, whose lower bits are gone then, go down to an even one.
template <bool Untied>
QTENSOR_INLINE halves256 narrow_bf16_pairs(avx2_isa, const floats256& even, const floats256& odd) {
  const __m256i half = _mm256_set1_epi32(0x8000);
  const __m256i a = _mm256_add_epi32(_mm256_castps_si256(even.data), half),
                b = _mm256_add_epi32(_mm256_castps_si256(odd.data), half);
  const __m256i upper = _mm256_blend_epi16(_mm256_srli_epi32(a, 16), b, 0xaa);
  if constexpr (Untied) return upper;
  const __m256i lower = _mm256_blend_epi16(a, _mm256_slli_epi32(b, 16), 0xaa);
  const __m256i tied = _mm256_cmpeq_epi16(lower, _mm256_setzero_si256());
  return _mm256_andnot_si256(_mm256_srli_epi16(tied, 15), upper);
}

template <>
struct float_table16<avx2_isa, avx2_arch> {
  explicit float_table16(const float* table) : low_(_mm256_loadu_ps(table)), high_(_mm256_loadu_ps(table + 8)) {}
  QTENSOR_INLINE floats256 operator()(const words256& index) const {
    const __m256 bit3_on_top = _mm256_castsi256_ps(_mm256_slli_epi32(index.data, 28));
    return _mm256_blendv_ps(_mm256_permutevar8x32_ps(low_, index.data), _mm256_permutevar8x32_ps(high_, index.data),
                            bit3_on_top);
  }
  __m256 low_, high_;
};
// The lower bytes of the numbers in the lower 128 bits, the upper bytes in the upper ones: one shuffle by codes that
// stand in both finds whole numbers.
template <>
struct half_table16<avx2_isa, avx2_arch> {
  explicit half_table16(const halves256& numbers) : planes_(apart(numbers.data)) {}
  QTENSOR_INLINE halves256 operator()(const bytes256& codes) const {
    const __m256i both = _mm256_permute4x64_epi64(_mm256_shuffle_epi8(planes_, codes.data), 0xd8);
    const __m128i pairs = _mm_setr_epi8(0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15);
    return _mm256_shuffle_epi8(both, _mm256_broadcastsi128_si256(pairs));
  }

 private:
  static QTENSOR_INLINE __m256i apart(__m256i v) {
    const __m128i planes = _mm_setr_epi8(0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15);
    return _mm256_permute4x64_epi64(_mm256_shuffle_epi8(v, _mm256_broadcastsi128_si256(planes)), 0xd8);
  }
  __m256i planes_;
};
QTENSOR_INLINE std::array<bytes256, 2> nibbles_for_tables(avx2_isa, const std::uint8_t* from) {
  const __m256i both = _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
  const __m256i mask = _mm256_set1_epi8(15);
  const __m256i low = _mm256_and_si256(both, mask), high = _mm256_and_si256(_mm256_srli_epi16(both, 4), mask);
  return {bytes256(_mm256_unpacklo_epi8(low, high)), bytes256(_mm256_unpackhi_epi8(low, high))};
}

template <int Entries>
struct byte_table<avx2_isa, avx2_arch, Entries> {
  explicit byte_table(const std::uint8_t* table) {
    for (int k = 0; k < Entries / 16; ++k)
      chunk_[k] = _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(table) + k));
    if constexpr (Entries <= 128)
      for (int k = Entries / 16 - 1; k > 0; --k) chunk_[k] = _mm256_xor_si256(chunk_[k], chunk_[k - 1]);
  }
  QTENSOR_INLINE bytes256 operator()(const bytes256& index) const {
    __m256i from = index.data;
    if constexpr (Entries <= 128) {
      __m256i r = _mm256_shuffle_epi8(chunk_[0], from);
#pragma GCC unroll 8
      for (int k = 1; k < Entries / 16; ++k) {
        from = _mm256_sub_epi8(from, _mm256_set1_epi8(16));
        r = _mm256_xor_si256(r, _mm256_shuffle_epi8(chunk_[k], from));
      }
      return r;
    } else {
      __m256i r = _mm256_setzero_si256();
#pragma GCC unroll 16
      for (int k = 0; k < Entries / 16; ++k) {
        r = _mm256_or_si256(r, _mm256_shuffle_epi8(chunk_[k], _mm256_adds_epu8(from, _mm256_set1_epi8(0x70))));
        from = _mm256_sub_epi8(from, _mm256_set1_epi8(16));
      }
      return r;
    }
  }
  __m256i chunk_[Entries / 16];
};
QTENSOR_INLINE floats256 lookup(avx2_isa, const float* table, const words256& index) {
  return _mm256_i32gather_ps(table, index.data, 4);
}

QTENSOR_INLINE bytes256 order_for_floats(avx2_isa, const bytes256& v) {
  return _mm256_permutevar8x32_epi32(v.data, _mm256_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7));
}
QTENSOR_INLINE bytes256 order_for_halves(avx2_isa, const bytes256& v) { return _mm256_permute4x64_epi64(v.data, 0xd8); }
QTENSOR_INLINE std::array<halves256, 2> halves_from_planes(avx2_isa, const bytes256& high, const bytes256& low) {
  return {halves256(_mm256_unpacklo_epi8(low.data, high.data)), halves256(_mm256_unpackhi_epi8(low.data, high.data))};
}
template <class A>
QTENSOR_INLINE halves<A> each_half(avx2_isa, std::uint16_t v) {
  __m256i all = _mm256_set1_epi16(static_cast<short>(v));
  asm("" : "+x"(all));  // g++ 12 otherwise makes it anew, from an integer, where registers are few
  return all;
}
QTENSOR_INLINE bytes256 pack_signed(avx2_isa, const halves256& a, const halves256& b) {
  return _mm256_packs_epi16(a.data, b.data);
}
QTENSOR_INLINE bytes256 pack_unsigned(avx2_isa, const halves256& a, const halves256& b) {
  return _mm256_packus_epi16(a.data, b.data);
}
QTENSOR_INLINE bytes256 packed_halves_in_order(avx2_isa, const bytes256& v) {
  return _mm256_permute4x64_epi64(v.data, 0xd8);
}
QTENSOR_INLINE halves256 join_low_halves(avx2_isa, const words256& even, const words256& odd) {
  return _mm256_blend_epi16(even.data, _mm256_slli_epi32(odd.data, 16), 0xaa);
}
QTENSOR_INLINE bool any_top_bit(avx2_isa, const bytes256& v) { return _mm256_movemask_epi8(v.data) != 0; }
QTENSOR_INLINE bool any_half_above(avx2_isa, const halves256& v, std::uint16_t limit) {
  return _mm256_movemask_epi8(_mm256_cmpgt_epi16(v.data, _mm256_set1_epi16(static_cast<short>(limit)))) != 0;
}
template <class A>
QTENSOR_INLINE bytes<A> binade_codes(avx2_isa isa, const std::array<floats<A>, 4>& q, const binade_steps& steps) {
  const auto upper = [&](std::size_t k) QTENSOR_INLINE_LAMBDA -> halves256 {  // in the order of packed_in_order
    return _mm256_packus_epi32(_mm256_srli_epi32(_mm256_castps_si256(q[k].data), 16),
                               _mm256_srli_epi32(_mm256_castps_si256(q[k + 1].data), 16));
  };
  return packed_in_order(packed_binade_codes<avx2_arch>(isa, upper(0), upper(2), steps).data);
}
QTENSOR_INLINE bytes256 interleave_pairs(avx2_isa, const bytes256& v) {
  const __m128i order = _mm_setr_epi8(0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15);
  return _mm256_shuffle_epi8(v.data, _mm256_broadcastsi128_si256(order));
}
QTENSOR_INLINE std::array<floats256, 4> floats_from_planes(avx2_isa, const bytes256& high, const bytes256& low) {
  const __m256i zero = _mm256_setzero_si256();
  const __m256i a = _mm256_unpacklo_epi8(low.data, high.data), b = _mm256_unpackhi_epi8(low.data, high.data);
  return {floats256(_mm256_castsi256_ps(_mm256_unpacklo_epi16(zero, a))),
          floats256(_mm256_castsi256_ps(_mm256_unpackhi_epi16(zero, a))),
          floats256(_mm256_castsi256_ps(_mm256_unpacklo_epi16(zero, b))),
          floats256(_mm256_castsi256_ps(_mm256_unpackhi_epi16(zero, b)))};
}

QTENSOR_INLINE bytes256 join_nibbles(avx2_isa, const bytes256& a, const bytes256& b) {
  const __m256i low = _mm256_set1_epi8(15), weights = _mm256_set1_epi16(nibble_weights);
  const __m256i x = _mm256_maddubs_epi16(_mm256_and_si256(a.data, low), weights);
  const __m256i y = _mm256_maddubs_epi16(_mm256_and_si256(b.data, low), weights);
  return _mm256_permute4x64_epi64(_mm256_packus_epi16(x, y), 0xd8);
}
template <int Half>
QTENSOR_INLINE bytes256 join_halves(avx2_isa, const bytes256& a, const bytes256& b) {
  __m256i mask = _mm256_set1_epi8(15), low, high;
  if constexpr (Half == 16) {
    low = _mm256_permute2x128_si256(a.data, b.data, 0x20), high = _mm256_permute2x128_si256(a.data, b.data, 0x31);
  } else {
    low = _mm256_unpacklo_epi64(a.data, b.data), high = _mm256_unpackhi_epi64(a.data, b.data);
  }
  const __m256i joined =
      _mm256_or_si256(_mm256_and_si256(low, mask), _mm256_andnot_si256(mask, _mm256_slli_epi16(high, 4)));
  return Half == 16 ? joined : _mm256_permute4x64_epi64(joined, 0xd8);
}
QTENSOR_INLINE void put_nibbles(avx2_isa isa, std::uint8_t* to, const bytes256& v, bool past_caches) {
  const __m128i pairs = _mm256_castsi256_si128(join_nibbles(isa, v, v).data);
  if (past_caches) [[unlikely]]
    _mm_stream_si128(reinterpret_cast<__m128i*>(to), pairs);
  else
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), pairs);
}
QTENSOR_INLINE std::array<bytes256, 2> split_nibbles(avx2_isa, const bytes256& v) {
  const __m256i mask = _mm256_set1_epi8(15), ordered = _mm256_permute4x64_epi64(v.data, 0xd8);
  const __m256i low = _mm256_and_si256(ordered, mask), high = _mm256_and_si256(_mm256_srli_epi16(ordered, 4), mask);
  return {bytes256(_mm256_unpacklo_epi8(low, high)), bytes256(_mm256_unpackhi_epi8(low, high))};
}

template <class T>
QTENSOR_INLINE void stream(avx2_isa, T* to, const xsimd::batch<T, avx2_arch>& v) {
  _mm256_stream_si256(reinterpret_cast<__m256i*>(to), std::bit_cast<__m256i>(v.data));
}
QTENSOR_INLINE void stream_fence(avx2_isa) { _mm_sfence(); }
#endif  // QTENSOR_LEVEL_X86 >= 3

}  // namespace qtensor::inline QTENSOR_ABI::simd::detail
#endif  // QTENSOR_LEVEL_X86 >= 2
