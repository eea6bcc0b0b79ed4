// Native bodies of the vector operations on AVX-512, with VBMI where present. ops.hpp says what they mean.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <qtensor/simd/ops_generic.hpp>
#include <qtensor/simd/ops_x86.hpp>

#if QTENSOR_LEVEL_X86 >= 4
namespace qtensor::inline QTENSOR_ABI::simd::detail {

using floats512 = floats<avx512_arch>;
using ints512 = ints<avx512_arch>;
using words512 = words<avx512_arch>;
using halves512 = halves<avx512_arch>;
using bytes512 = bytes<avx512_arch>;

// Not xsimd's: version 8.1 does not compile for integers without optimisation (a macro casts its arguments).
template <class T>
QTENSOR_INLINE xsimd::batch<T, avx512_arch> select(avx512_isa, const xsimd::batch_bool<T, avx512_arch>& m,
                                                   const xsimd::batch<T, avx512_arch>& a,
                                                   const xsimd::batch<T, avx512_arch>& b) {
  static_assert(sizeof(T) <= 4);
  if constexpr (std::same_as<T, float>) {
    return _mm512_mask_blend_ps(m.data, b.data, a.data);
  } else if constexpr (sizeof(T) == 4) {
    return _mm512_mask_blend_epi32(m.data, b.data, a.data);
  } else if constexpr (sizeof(T) == 2) {
    return _mm512_mask_blend_epi16(m.data, b.data, a.data);
  } else {
    return _mm512_mask_blend_epi8(m.data, b.data, a.data);
  }
}

template <class To, class From>
QTENSOR_INLINE xsimd::batch_bool<To, avx512_arch> mask_as(avx512_isa, const xsimd::batch_bool<From, avx512_arch>& m) {
  return m.data;
}
QTENSOR_INLINE std::uint32_t mask_bits(avx512_isa, const xsimd::batch_bool<std::uint32_t, avx512_arch>& m) {
  return m.data;
}
QTENSOR_INLINE floats512 min(avx512_isa, const floats512& a, const floats512& b) {
  return _mm512_min_ps(a.data, b.data);
}
QTENSOR_INLINE floats512 max(avx512_isa, const floats512& a, const floats512& b) {
  return _mm512_max_ps(a.data, b.data);
}

QTENSOR_INLINE bytes512 add_saturated(avx512_isa, const bytes512& a, const bytes512& b) {
  return _mm512_adds_epu8(a.data, b.data);
}
QTENSOR_INLINE bytes512 sub_saturated(avx512_isa, const bytes512& a, const bytes512& b) {
  return _mm512_subs_epu8(a.data, b.data);
}

QTENSOR_INLINE std::uint32_t reduce_max(avx512_isa, const words512& v) {
  return reduce_max(avx2_isa{},
                    words256(_mm256_max_epu32(_mm512_castsi512_si256(v.data), _mm512_extracti64x4_epi64(v.data, 1))));
}
QTENSOR_INLINE std::uint32_t reduce_add(avx512_isa, const words512& v) {
  return reduce_add(avx2_isa{},
                    words256(_mm256_add_epi32(_mm512_castsi512_si256(v.data), _mm512_extracti64x4_epi64(v.data, 1))));
}
QTENSOR_INLINE __m512i of_both(lane_max, __m512i a, __m512i b) { return _mm512_max_epu32(a, b); }
QTENSOR_INLINE __m512i of_both(lane_sum, __m512i a, __m512i b) { return _mm512_add_epi32(a, b); }
template <class Op>
QTENSOR_INLINE __m512i of_pairs32(Op op, __m512i a, __m512i b) {
  return of_both(op, _mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b));
}
template <class Op>
QTENSOR_INLINE __m512i of_pairs64(Op op, __m512i a, __m512i b) {
  return of_both(op, _mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b));
}
template <class Op>
QTENSOR_INLINE __m512i of_pairs128(Op op, __m512i a, __m512i b) {
  return of_both(op, _mm512_shuffle_i32x4(a, b, 0x88), _mm512_shuffle_i32x4(a, b, 0xdd));
}
template <class A, class Op, class Row>
QTENSOR_INLINE words512 reduce_each(avx512_isa, Op op, Row row) {
  const auto two = [&](index_t b) QTENSOR_INLINE_LAMBDA {
    const __m512i r0 = row(b).data, r1 = row(b + 1).data;
    keep_order();
    return of_pairs32(op, r0, r1);
  };
  const auto four = [&](index_t b) QTENSOR_INLINE_LAMBDA {
    const __m512i r01 = two(b), r23 = two(b + 2);
    return of_pairs64(op, r01, r23);
  };
  const auto eight = [&](index_t b) QTENSOR_INLINE_LAMBDA {
    const __m512i r0123 = four(b), r4567 = four(b + 4);
    return of_pairs128(op, r0123, r4567);
  };
  const __m512i low = eight(0), high = eight(8);
  return of_pairs128(op, low, high);
}

template <class A, int BlocksOfRow, class Row>
QTENSOR_INLINE words512 reduce_max_each_half(avx512_isa, Row row) {
  const auto two = [&](index_t b) QTENSOR_INLINE_LAMBDA {
    const __m512i x = row(b).data, y = row(b + 1).data;
    return _mm512_max_epu16(_mm512_unpacklo_epi16(x, y), _mm512_unpackhi_epi16(x, y));
  };
  const auto four = [&](index_t b) QTENSOR_INLINE_LAMBDA {
    const __m512i x = two(b), y = two(b + 2);
    return _mm512_max_epu16(_mm512_unpacklo_epi32(x, y), _mm512_unpackhi_epi32(x, y));
  };
  const auto eight = [&](index_t b) QTENSOR_INLINE_LAMBDA {  // one word a row in each quarter
    const __m512i x = four(b), y = four(b + 4);
    return _mm512_max_epu16(_mm512_unpacklo_epi64(x, y), _mm512_unpackhi_epi64(x, y));
  };
  const auto with_neighbour = [](__m512i x) QTENSOR_INLINE_LAMBDA {
    return _mm512_max_epu16(x, _mm512_shuffle_i32x4(x, x, 0xb1));
  };
  if constexpr (BlocksOfRow == 2) {
    const __m512i r = with_neighbour(eight(0));
    const __m128i even = _mm512_castsi512_si128(r), odd = _mm512_extracti32x4_epi32(r, 2);
    return _mm512_cvtepu16_epi32(_mm256_set_m128i(_mm_unpackhi_epi16(even, odd), _mm_unpacklo_epi16(even, odd)));
  } else {
    const __m512i x = eight(0), y = eight(8);
    const __m512i r =
        with_neighbour(_mm512_max_epu16(_mm512_shuffle_i32x4(x, y, 0x88), _mm512_shuffle_i32x4(x, y, 0xdd)));
    return _mm512_cvtepu16_epi32(_mm512_castsi512_si256(_mm512_shuffle_i32x4(r, r, 0x08)));
  }
}

QTENSOR_INLINE floats512 rounded(avx512_isa, floats512 x) {
  asm("" : "+v"(x.data));
  return x;
}
QTENSOR_INLINE floats512 fma(avx512_isa, const floats512& a, const floats512& b, const floats512& c) {
  return _mm512_fmadd_ps(a.data, b.data, c.data);
}

QTENSOR_INLINE ints512 round_to_int(avx512_isa, const floats512& x) { return _mm512_cvtps_epi32(x.data); }
QTENSOR_INLINE ints512 round_to_int_checked(avx512_isa, const floats512& x) { return _mm512_cvtps_epi32(x.data); }
QTENSOR_INLINE ints512 truncate_to_int(avx512_isa, const floats512& x) { return _mm512_cvttps_epi32(x.data); }
QTENSOR_INLINE floats512 to_float(avx512_isa, const ints512& x) { return _mm512_cvtepi32_ps(x.data); }
QTENSOR_INLINE floats512 nearest(avx512_isa, const floats512& x) { return _mm512_roundscale_ps(x.data, 8); }
QTENSOR_INLINE floats512 floor(avx512_isa, const floats512& x) { return _mm512_roundscale_ps(x.data, 9); }
QTENSOR_INLINE floats512 truncate(avx512_isa, const floats512& x) { return _mm512_roundscale_ps(x.data, 11); }

QTENSOR_INLINE words512 shift_left(avx512_isa, const words512& v, const words512& count) {
  return _mm512_sllv_epi32(v.data, count.data);
}
QTENSOR_INLINE words512 shift_right(avx512_isa, const words512& v, const words512& count) {
  return _mm512_srlv_epi32(v.data, count.data);
}
QTENSOR_INLINE words512 sign_last(avx512_isa, const words512& v) { return _mm512_rol_epi32(v.data, 1); }
QTENSOR_INLINE words512 with_last_bit(avx512_isa, const words512& v) {
  const __mmask16 counts = _mm512_test_epi32_mask(v.data, _mm512_set1_epi32(static_cast<int>(magnitude_bits)));
  return _mm512_mask_or_epi32(v.data, counts, v.data, _mm512_set1_epi32(1));
}
QTENSOR_INLINE std::array<words512, 2> multiply_wide(avx512_isa, const words512& a, std::uint32_t b) {
  const __m512i m = _mm512_set1_epi32(static_cast<int>(b));
  const __m512i even = _mm512_mul_epu32(a.data, m), odd = _mm512_mul_epu32(_mm512_srli_epi64(a.data, 32), m);
  return {words512(_mm512_mask_blend_epi32(0xaaaa, even, _mm512_slli_epi64(odd, 32))),
          words512(_mm512_mask_blend_epi32(0xaaaa, _mm512_srli_epi64(even, 32), odd))};
}

// The first n of 16, 32 or 64 lanes; n may be all of them.
QTENSOR_INLINE std::uint64_t first_lanes_mask(index_t n) {
  return n >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << n) - 1;
}
template <class A, class T>
QTENSOR_INLINE xsimd::batch<T, avx512_arch> load_n(avx512_isa, const T* from, index_t n, T fill) {
  const std::uint64_t mask = first_lanes_mask(n);
  if constexpr (sizeof(T) == 4) {
    const __m512i rest = _mm512_set1_epi32(std::bit_cast<int>(fill));
    const __m512i v = _mm512_mask_loadu_epi32(rest, static_cast<__mmask16>(mask), from);
    return std::bit_cast<typename xsimd::batch<T, avx512_arch>::register_type>(v);
  } else if constexpr (sizeof(T) == 2) {
    return _mm512_mask_loadu_epi16(_mm512_set1_epi16(static_cast<short>(fill)), static_cast<__mmask32>(mask), from);
  } else {
    return _mm512_mask_loadu_epi8(_mm512_set1_epi8(static_cast<char>(fill)), mask, from);
  }
}
template <index_t Parts, class A>
QTENSOR_INLINE void store_parts(avx512_isa, std::uint8_t* to, index_t apart, const bytes<A>& v) {
  if constexpr (Parts == 2) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm512_castsi512_si256(v.data));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + apart), _mm512_extracti64x4_epi64(v.data, 1));
  } else {
    const auto quarter = [&](index_t i) QTENSOR_INLINE_LAMBDA { return reinterpret_cast<__m128i*>(to + i * apart); };
    _mm_storeu_si128(quarter(0), _mm512_castsi512_si128(v.data));
    _mm_storeu_si128(quarter(1), _mm512_extracti64x2_epi64(v.data, 1));
    _mm_storeu_si128(quarter(2), _mm512_extracti64x2_epi64(v.data, 2));
    _mm_storeu_si128(quarter(3), _mm512_extracti64x2_epi64(v.data, 3));
  }
}
template <class T>
QTENSOR_INLINE void store_n(avx512_isa, T* to, index_t n, const xsimd::batch<T, avx512_arch>& v) {
  const std::uint64_t mask = first_lanes_mask(n);
  if constexpr (sizeof(T) == 4) {
    _mm512_mask_storeu_epi32(to, static_cast<__mmask16>(mask), std::bit_cast<__m512i>(v.data));
  } else if constexpr (sizeof(T) == 2) {
    _mm512_mask_storeu_epi16(to, static_cast<__mmask32>(mask), v.data);
  } else {
    _mm512_mask_storeu_epi8(to, mask, v.data);
  }
}
template <class A>
QTENSOR_INLINE bytes512 load_quarters(avx512_isa, const std::uint8_t* from, index_t apart) {
  const auto quarter = [&](index_t i) QTENSOR_INLINE_LAMBDA {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i * apart));
  };
  const __m512i two = _mm512_inserti64x2(_mm512_castsi128_si512(quarter(0)), quarter(1), 1);
  return _mm512_inserti64x2(_mm512_inserti64x2(two, quarter(2), 2), quarter(3), 3);
}

QTENSOR_INLINE __m128i first_bytes(const void* from, index_t n) {
  return _mm_maskz_loadu_epi8(static_cast<__mmask16>(first_lanes_mask(n)), from);
}
QTENSOR_INLINE __m256i first_halves(const void* from, index_t n) {
  return _mm256_maskz_loadu_epi16(static_cast<__mmask16>(first_lanes_mask(n)), from);
}
QTENSOR_INLINE __m128i all_bytes(const void* from) { return _mm_loadu_si128(static_cast<const __m128i*>(from)); }
QTENSOR_INLINE __m256i all_halves(const void* from) { return _mm256_loadu_si256(static_cast<const __m256i*>(from)); }

template <class A, class Wide>
QTENSOR_INLINE words512 widen(avx512_isa, const std::uint8_t* from) {
  return _mm512_cvtepu8_epi32(all_bytes(from));
}
template <class A, class Wide>
QTENSOR_INLINE ints512 widen(avx512_isa, const std::int8_t* from) {
  return _mm512_cvtepi8_epi32(all_bytes(from));
}
template <class A, class Wide>
QTENSOR_INLINE words512 widen(avx512_isa, const std::uint16_t* from) {
  return _mm512_cvtepu16_epi32(all_halves(from));
}
template <class A, class Wide>
QTENSOR_INLINE ints512 widen(avx512_isa, const std::int16_t* from) {
  return _mm512_cvtepi16_epi32(all_halves(from));
}
template <class A, class Wide>
QTENSOR_INLINE words512 widen_n(avx512_isa, const std::uint8_t* from, index_t n) {
  return _mm512_cvtepu8_epi32(first_bytes(from, n));
}
template <class A, class Wide>
QTENSOR_INLINE ints512 widen_n(avx512_isa, const std::int8_t* from, index_t n) {
  return _mm512_cvtepi8_epi32(first_bytes(from, n));
}
template <class A, class Wide>
QTENSOR_INLINE words512 widen_n(avx512_isa, const std::uint16_t* from, index_t n) {
  return _mm512_cvtepu16_epi32(first_halves(from, n));
}
template <class A, class Wide>
QTENSOR_INLINE ints512 widen_n(avx512_isa, const std::int16_t* from, index_t n) {
  return _mm512_cvtepi16_epi32(first_halves(from, n));
}

QTENSOR_INLINE floats512 widen_f16(avx512_isa, const words512& h) {
  return widened(_mm512_cvtph_ps(_mm512_cvtepi32_epi16(h.data)));
}
template <class A>
QTENSOR_INLINE floats512 load_f16(avx512_isa, const std::uint16_t* from) {
  return widened(_mm512_cvtph_ps(all_halves(from)));
}
QTENSOR_INLINE floats512 rounded_to_f16(avx512_isa, const floats512& x) {
  return _mm512_cvtph_ps(_mm512_cvtps_ph(x.data, 0));
}
QTENSOR_INLINE halves512 narrow_f16(avx512_isa, const floats512& a, const floats512& b) {
  return _mm512_inserti64x4(_mm512_castsi256_si512(_mm512_cvtps_ph(a.data, 0)), _mm512_cvtps_ph(b.data, 0), 1);
}

#if defined(__AVX512BF16__)
// The instruction takes subnormal numbers for zeros; everything else it rounds as it should.
QTENSOR_INLINE halves512 narrow_bf16_plain(avx512_isa, const floats512& a, const floats512& b) {
  return std::bit_cast<__m512i>(_mm512_cvtne2ps_pbh(b.data, a.data));
}
QTENSOR_INLINE halves512 narrow_bf16(avx512_isa, const floats512& a, const floats512& b) {
  constexpr int subnormal = 0x20;
  if ((_mm512_fpclass_ps_mask(a.data, subnormal) | _mm512_fpclass_ps_mask(b.data, subnormal)) != 0) [[unlikely]]
    return narrow_bf16(any_isa{}, a, b);
  return narrow_bf16_plain(avx512_isa{}, a, b);
}
#endif

// Packing works within 128 bits: this puts the groups of four back in order.
QTENSOR_INLINE __m512i packed_in_order(__m512i v) {
  return _mm512_permutexvar_epi32(_mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15), v);
}
QTENSOR_INLINE bytes512 narrow_i8(avx512_isa, const ints512& a, const ints512& b, const ints512& c, const ints512& d) {
  return packed_in_order(_mm512_packs_epi16(_mm512_packs_epi32(a.data, b.data), _mm512_packs_epi32(c.data, d.data)));
}
QTENSOR_INLINE bytes512 narrow_u8(avx512_isa, const ints512& a, const ints512& b, const ints512& c, const ints512& d) {
  return packed_in_order(_mm512_packus_epi16(_mm512_packs_epi32(a.data, b.data), _mm512_packs_epi32(c.data, d.data)));
}

template <int Lanes, int Step, int First>
struct ascending {
  alignas(64) std::array<std::conditional_t<Lanes == 64, std::uint8_t, std::uint16_t>, Lanes> at;
  constexpr ascending() : at{} {
    for (int i = 0; i < Lanes; ++i)
      at[static_cast<std::size_t>(i)] = static_cast<typename decltype(at)::value_type>(First + Step * i);
  }
};
template <int Lanes, int Step, int First = 0>
inline constexpr ascending<Lanes, Step, First> ascending_index{};

QTENSOR_INLINE halves512 low_halves(avx512_isa, const words512& a, const words512& b) {
  return _mm512_permutex2var_epi16(a.data, _mm512_load_si512(ascending_index<32, 2>.at.data()), b.data);
}
QTENSOR_INLINE halves512 upper_halves(avx512_isa, const words512& a, const words512& b) {
  return _mm512_permutex2var_epi16(a.data, _mm512_load_si512(ascending_index<32, 2, 1>.at.data()), b.data);
}
#if defined(__AVX512VBMI__)
/// Where the bytes of four batches lie after packing two registers of halves, each with a batch in its even lanes and
/// one in its odd lanes.
struct paired_batches_index {
  alignas(64) std::array<std::uint8_t, 64> at;
  constexpr paired_batches_index() : at{} {
    for (int batch = 0; batch < 4; ++batch)
      for (int i = 0; i < 16; ++i)
        at[static_cast<std::size_t>(16 * batch + i)] =
            static_cast<std::uint8_t>(i / 4 * 16 + batch / 2 * 8 + 2 * (i % 4) + batch % 2);
  }
};
inline constexpr paired_batches_index paired_batches_at{};
#endif

template <class A>
QTENSOR_INLINE bytes<A> packed_binade_codes(avx512_isa, const halves<A>& a, const halves<A>& b,
                                            const binade_steps& steps) {
  constexpr __mmask64 low_bytes = 0x5555555555555555u;
  const auto entry = [&](const std::array<std::uint8_t, 64>& t, __m512i index) QTENSOR_INLINE_LAMBDA {
#if defined(__AVX512VBMI__)
    return _mm512_maskz_permutexvar_epi8(low_bytes, index, _mm512_load_si512(t.data()));
#else
    const auto half = [&](int i) QTENSOR_INLINE_LAMBDA {
      return _mm512_cvtepu8_epi16(_mm256_load_si256(reinterpret_cast<const __m256i*>(t.data()) + i));
    };
    return _mm512_permutex2var_epi16(half(0), index, half(1));
#endif
  };
  const auto code = [&](__m512i v) QTENSOR_INLINE_LAMBDA {
    __m512i m = _mm512_and_si512(v, _mm512_set1_epi16(0x7fff));
    m = _mm512_min_epu16(m, _mm512_set1_epi16(static_cast<short>(steps.high)));
    m = _mm512_max_epu16(m, _mm512_set1_epi16(static_cast<short>(steps.low)));
    m = _mm512_add_epi16(m, entry(steps.half, _mm512_srli_epi16(m, 7)));
    const __m512i e = _mm512_srli_epi16(m, 7);
    return _mm512_maskz_add_epi8(low_bytes, _mm512_srlv_epi16(m, entry(steps.shift, e)), entry(steps.base, e));
  };
  const __m512i magnitudes = _mm512_packus_epi16(code(a.data), code(b.data)),
                signs = _mm512_packs_epi16(a.data, b.data);
  return _mm512_maskz_mov_epi8(
      _mm512_test_epi8_mask(magnitudes, magnitudes),
      _mm512_ternarylogic_epi32(magnitudes, signs, _mm512_set1_epi8(-128), 0xf8));  // a | (b & c), zero without a sign
}
// Two batches share a register: the upper halves of one lie in their places, those of the other below them.
template <class A>
QTENSOR_INLINE bytes<A> binade_codes(avx512_isa isa, const std::array<floats<A>, 4>& q, const binade_steps& steps) {
  const auto halves_of = [](const floats512& below, const floats512& above) QTENSOR_INLINE_LAMBDA -> halves512 {
    return _mm512_mask_blend_epi16(0xaaaaaaaau, _mm512_srli_epi32(_mm512_castps_si512(below.data), 16),
                                   _mm512_castps_si512(above.data));
  };
  const __m512i codes = packed_binade_codes<A>(isa, halves_of(q[0], q[1]), halves_of(q[2], q[3]), steps).data;
#if defined(__AVX512VBMI__)
  return _mm512_permutexvar_epi8(_mm512_load_si512(paired_batches_at.at.data()), codes);
#else
  const __m512i batch_by_batch =
      _mm512_broadcast_i32x4(_mm_setr_epi8(0, 2, 4, 6, 1, 3, 5, 7, 8, 10, 12, 14, 9, 11, 13, 15));
  return packed_in_order(_mm512_shuffle_epi8(codes, batch_by_batch));
#endif
}
QTENSOR_INLINE bytes512 low_bytes(avx512_isa isa, const words512& a, const words512& b, const words512& c,
                                  const words512& d) {
#if defined(__AVX512VBMI__)
  const __m512i ab = low_halves(isa, a, b).data, cd = low_halves(isa, c, d).data;
  return _mm512_permutex2var_epi8(ab, _mm512_load_si512(ascending_index<64, 2>.at.data()), cd);
#else
  const __m512i low = _mm512_set1_epi32(0xff);
  return narrow_u8(isa, ints512(_mm512_and_si512(a.data, low)), ints512(_mm512_and_si512(b.data, low)),
                   ints512(_mm512_and_si512(c.data, low)), ints512(_mm512_and_si512(d.data, low)));
#endif
}

QTENSOR_INLINE bool any_nan(avx512_isa, const floats512& a, const floats512& b, const floats512& c,
                            const floats512& d) {
  return _kortestz_mask16_u8(_mm512_cmp_ps_mask(a.data, b.data, _CMP_UNORD_Q),
                             _mm512_cmp_ps_mask(c.data, d.data, _CMP_UNORD_Q)) == 0;
}

template <>
struct float_table16<avx512_isa, avx512_arch> {
  explicit float_table16(const float* table) : table_(_mm512_loadu_ps(table)) {}
  QTENSOR_INLINE floats512 operator()(const words512& index) const { return _mm512_permutexvar_ps(index.data, table_); }
  __m512 table_;
};

#if defined(__AVX512VBMI__)
template <int Entries>
struct byte_table<avx512_isa, avx512_arch, Entries> {
  static constexpr int registers = Entries <= 64 ? 1 : Entries / 64;
  explicit byte_table(const std::uint8_t* table) {
    if constexpr (Entries == 16) {
      part_[0] = _mm512_broadcast_i32x4(_mm_loadu_si128(reinterpret_cast<const __m128i*>(table)));
    } else if constexpr (Entries == 32) {
      part_[0] = _mm512_broadcast_i64x4(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(table)));
    } else {
      for (int k = 0; k < registers; ++k) part_[k] = _mm512_loadu_si512(table + 64 * k);
    }
  }
  QTENSOR_INLINE bytes512 operator()(const bytes512& index) const {
    if constexpr (Entries == 16) {
      return _mm512_shuffle_epi8(part_[0], index.data);
    } else if constexpr (Entries <= 64) {
      return _mm512_permutexvar_epi8(index.data, part_[0]);
    } else {
      const __m512i low = _mm512_permutex2var_epi8(part_[0], index.data, part_[1]);
      if constexpr (Entries == 128) {
        return low;
      } else {
        const __m512i high = _mm512_permutex2var_epi8(part_[2], index.data, part_[3]);
        return _mm512_mask_blend_epi8(_mm512_movepi8_mask(index.data), low, high);
      }
    }
  }
  __m512i part_[registers];
};
#else
template <int Entries>
struct byte_table<avx512_isa, avx512_arch, Entries> {
  explicit byte_table(const std::uint8_t* table) {
    for (int k = 0; k < Entries / 16; ++k)
      chunk_[k] = _mm512_broadcast_i32x4(_mm_loadu_si128(reinterpret_cast<const __m128i*>(table) + k));
  }
  QTENSOR_INLINE bytes512 operator()(const bytes512& index) const {
    if constexpr (Entries == 16) {
      return _mm512_shuffle_epi8(chunk_[0], index.data);
    } else {
      __m512i r = _mm512_setzero_si512(), from = index.data;
#pragma GCC unroll 16
      for (int k = 0; k < Entries / 16; ++k) {
        r = _mm512_or_si512(r, _mm512_shuffle_epi8(chunk_[k], _mm512_adds_epu8(from, _mm512_set1_epi8(0x70))));
        from = _mm512_sub_epi8(from, _mm512_set1_epi8(16));
      }
      return r;
    }
  }
  __m512i chunk_[Entries / 16];
};
#endif
QTENSOR_INLINE floats512 lookup(avx512_isa, const float* table, const words512& index) {
  return _mm512_i32gather_ps(index.data, table, 4);
}

QTENSOR_INLINE bytes512 order_for_floats(avx512_isa, const bytes512& v) {
  return _mm512_permutexvar_epi32(_mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15), v.data);
}
QTENSOR_INLINE bytes512 order_for_halves(avx512_isa, const bytes512& v) {
  return _mm512_permutexvar_epi64(_mm512_setr_epi64(0, 4, 1, 5, 2, 6, 3, 7), v.data);
}
template <class A>
QTENSOR_INLINE halves<A> each_half(avx512_isa, std::uint16_t v) {
  __m512i all = _mm512_set1_epi16(static_cast<short>(v));
  asm("" : "+v"(all));  // g++ 12 otherwise makes it anew, from an integer, behind branches
  return all;
}
QTENSOR_INLINE bytes512 pack_signed(avx512_isa, const halves512& a, const halves512& b) {
  return _mm512_packs_epi16(a.data, b.data);
}
QTENSOR_INLINE bytes512 pack_unsigned(avx512_isa, const halves512& a, const halves512& b) {
  return _mm512_packus_epi16(a.data, b.data);
}
QTENSOR_INLINE bytes512 packed_halves_in_order(avx512_isa, const bytes512& v) {
  return _mm512_permutexvar_epi64(_mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7), v.data);
}
QTENSOR_INLINE halves512 join_low_halves(avx512_isa, const words512& even, const words512& odd) {
  return _mm512_mask_blend_epi16(0xaaaaaaaau, even.data, _mm512_slli_epi32(odd.data, 16));
}
QTENSOR_INLINE bool any_top_bit(avx512_isa, const bytes512& v) { return _mm512_movepi8_mask(v.data) != 0; }
QTENSOR_INLINE bool any_half_above(avx512_isa, const halves512& v, std::uint16_t limit) {
  return _mm512_cmpgt_epu16_mask(v.data, each_half<avx512_arch>(avx512_isa{}, limit).data) != 0;
}
// Not xsimd's: version 8.1 does not compile for signed integers without optimisation, like select.
template <int Bits, class A>
QTENSOR_INLINE halves512 shift_signed(avx512_isa, const halves<A>& v) {
  return _mm512_srai_epi16(v.data, Bits);
}
template <int Bit, class A>
QTENSOR_INLINE halves512 add_bit(avx512_isa isa, const halves<A>& v, const halves<A>& a) {
  const __mmask32 is_set = _mm512_test_epi16_mask(a.data, each_half<A>(isa, 1 << Bit).data);
  return _mm512_mask_add_epi16(v.data, is_set, v.data, each_half<A>(isa, 1).data);
}
QTENSOR_INLINE std::array<halves512, 2> halves_from_planes(avx512_isa, const bytes512& high, const bytes512& low) {
  return {halves512(_mm512_unpacklo_epi8(low.data, high.data)), halves512(_mm512_unpackhi_epi8(low.data, high.data))};
}
QTENSOR_INLINE bytes512 interleave_pairs(avx512_isa, const bytes512& v) {
#if defined(__AVX512VBMI__)
  alignas(64) static constexpr auto order = [] {
    std::array<std::uint8_t, 64> at{};
    for (std::size_t i = 0; i < 64; ++i) at[i] = static_cast<std::uint8_t>(i / 32 * 32 + i % 2 * 16 + i % 32 / 2);
    return at;
  }();
  return _mm512_permutexvar_epi8(_mm512_load_si512(order.data()), v.data);
#else
  const __m512i eights = _mm512_permutexvar_epi64(_mm512_setr_epi64(0, 2, 1, 3, 4, 6, 5, 7), v.data);
  const __m128i order = _mm_setr_epi8(0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15);
  return _mm512_shuffle_epi8(eights, _mm512_broadcast_i32x4(order));
#endif
}
QTENSOR_INLINE std::array<floats512, 4> floats_from_planes(avx512_isa, const bytes512& high, const bytes512& low) {
  const __m512i zero = _mm512_setzero_si512();
  const __m512i a = _mm512_unpacklo_epi8(low.data, high.data), b = _mm512_unpackhi_epi8(low.data, high.data);
  return {floats512(_mm512_castsi512_ps(_mm512_unpacklo_epi16(zero, a))),
          floats512(_mm512_castsi512_ps(_mm512_unpackhi_epi16(zero, a))),
          floats512(_mm512_castsi512_ps(_mm512_unpacklo_epi16(zero, b))),
          floats512(_mm512_castsi512_ps(_mm512_unpackhi_epi16(zero, b)))};
}

QTENSOR_INLINE bytes512 join_nibbles(avx512_isa, const bytes512& a, const bytes512& b) {
  const __m512i low = _mm512_set1_epi8(15), weights = _mm512_set1_epi16(nibble_weights);
  const __m512i x = _mm512_maddubs_epi16(_mm512_and_si512(a.data, low), weights);
  const __m512i y = _mm512_maddubs_epi16(_mm512_and_si512(b.data, low), weights);
  return _mm512_permutexvar_epi64(_mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7), _mm512_packus_epi16(x, y));
}
template <int Half>
QTENSOR_INLINE bytes512 join_halves(avx512_isa, const bytes512& a, const bytes512& b) {
  __m512i low, high;
  if constexpr (Half == 16) {
    low = _mm512_shuffle_i32x4(a.data, b.data, 0x88), high = _mm512_shuffle_i32x4(a.data, b.data, 0xdd);
  } else {
    const __m512i even = _mm512_setr_epi64(0, 2, 4, 6, 8, 10, 12, 14),
                  odd = _mm512_setr_epi64(1, 3, 5, 7, 9, 11, 13, 15);
    low = _mm512_permutex2var_epi64(a.data, even, b.data), high = _mm512_permutex2var_epi64(a.data, odd, b.data);
  }
  return _mm512_ternarylogic_epi32(_mm512_set1_epi8(15), low, _mm512_slli_epi16(high, 4), 0xca);
}
QTENSOR_INLINE void put_nibbles(avx512_isa, std::uint8_t* to, const bytes512& v, bool past_caches) {
  const __m512i x = _mm512_and_si512(v.data, each_half<avx512_arch>(avx512_isa{}, 0x0f0f).data);
  const __m256i pairs = _mm512_cvtepi16_epi8(_mm512_maddubs_epi16(x, _mm512_set1_epi16(nibble_weights)));
  if (past_caches) [[unlikely]]
    _mm256_stream_si256(reinterpret_cast<__m256i*>(to), pairs);
  else
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), pairs);
}
QTENSOR_INLINE std::array<bytes512, 2> split_nibbles(avx512_isa isa, const bytes512& v) {
  const __m512i mask = _mm512_set1_epi8(15), ordered = order_for_halves(isa, v).data;
  const __m512i low = _mm512_and_si512(ordered, mask), high = _mm512_and_si512(_mm512_srli_epi16(ordered, 4), mask);
  return {bytes512(_mm512_unpacklo_epi8(low, high)), bytes512(_mm512_unpackhi_epi8(low, high))};
}

template <class T>
QTENSOR_INLINE void stream(avx512_isa, T* to, const xsimd::batch<T, avx512_arch>& v) {
  _mm512_stream_si512(reinterpret_cast<__m512i*>(to), std::bit_cast<__m512i>(v.data));
}
QTENSOR_INLINE void stream_fence(avx512_isa) { _mm_sfence(); }

}  // namespace qtensor::inline QTENSOR_ABI::simd::detail
#endif  // QTENSOR_LEVEL_X86 >= 4
