// From numbers to codes in few instructions: minifloats over a power of two, integers with their zero points.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <qtensor/core/support.hpp>
#include <qtensor/simd/arch.hpp>
#include <qtensor/simd/ops.hpp>

namespace qtensor::inline QTENSOR_ABI::simd {

/// The grid of a minifloat times a power of two, one for each lane: x lies to it as x over that power lies to the
/// format's own grid, so nothing has to be divided.
template <usable_arch A>
struct moved_grid {
  floats<A> normal;  ///< the smallest normal number
  floats<A> bias;    ///< as bits: minus the code that the sum of moved_codes has too much, as 16 bits
};

/// Four batches of integers, saturated to 16 bits, in the CPU's own order: what narrow_i8 and narrow_u8 take, and what
/// can be looked at and added to on the way to bytes at half the cost.
template <usable_arch A>
using saturated_halves = std::array<xsimd::batch<std::int16_t, A>, 2>;

/// Which value of a grid a number between two becomes: the nearest (of two, the even one), or the one on a side.
enum class goes { nearest, toward_zero, down, up };

namespace detail {

template <minifloat_grid G>
struct moved {
  static constexpr int m = G.mantissa_bits, away = 23 - m;
  static constexpr std::uint32_t one = 127u << 23, limit = 254u << 23;
  static constexpr std::uint32_t max_code =
      ((G.largest >> 23) - (G.smallest_normal >> 23) + 1) << m | (G.largest >> away & low_bits(m));
  /// Powers whose grid and sums are normal numbers, as bits; of short codes half of the smallest step, too
  /// (bf16_codes).
  static constexpr std::uint32_t least = ((G.bits < 8 ? static_cast<std::uint32_t>(m) + 2u : 1u) << 23) +
                                         (G.smallest_normal < one ? one - G.smallest_normal : 0u),
                                 most = limit - (((G.largest >> 23) - 127u + 2u + away) << 23);
};

// On the magnitudes: a power of two is added whose ulp is the grid's spacing, as magnitude_codes does.
template <minifloat_grid G, class A>
QTENSOR_INLINE bytes<A> moved_codes(any_isa, const std::array<floats<A>, 4>& x, const std::array<moved_grid<A>, 4>& to,
                                    const std::array<floats<A>, 4>& signs_of) {
  using isa_type = isa<A>;
  constexpr int m = G.mantissa_bits, away = 23 - m;
  std::array<words<A>, 4> c;
#pragma GCC unroll 4
  for (std::size_t k = 0; k < 4; ++k) {
    const words<A> bits = bits_as<std::uint32_t>(isa_type{}, x[k]), a = bits & words<A>(magnitude_bits);
    const words<A> e = max(isa_type{}, a & words<A>(infinity_bits), bits_as<std::uint32_t>(isa_type{}, to[k].normal));
    const words<A> power = e + words<A>(static_cast<std::uint32_t>(away) << 23);
    const words<A> t =
        bits_as<std::uint32_t>(isa_type{}, bits_as<float>(isa_type{}, a) + bits_as<float>(isa_type{}, power));
    c[k] = t + (t >> away) + bits_as<std::uint32_t>(isa_type{}, to[k].bias);
  }
  const bytes<A> code = min(isa_type{}, low_bytes(isa_type{}, c[0], c[1], c[2], c[3]),
                            bytes<A>(static_cast<std::uint8_t>(moved<G>::max_code)));
  const words<A> signs = bits_as<std::uint32_t>(isa_type{}, sign_bytes<A>(signs_of));
  return code | bits_as<std::uint8_t>(isa_type{}, signs >> (8 - G.bits));
}

template <class A>
QTENSOR_INLINE saturated_halves<A> narrow_i16(any_isa, const std::array<ints<A>, 4>& r) {
  const auto half = [](std::int32_t v) { return clamped(v, -32768, 32767); };
  return {narrow_each<A, std::int16_t>(half, r[0], r[1]), narrow_each<A, std::int16_t>(half, r[2], r[3])};
}
template <class A>
QTENSOR_INLINE bytes<A> narrow_i8(any_isa, const saturated_halves<A>& h) {
  return narrow_each<A, std::uint8_t>([](std::int32_t v) { return clamped(v, -128, 127); }, h[0], h[1]);
}
template <class A>
QTENSOR_INLINE bytes<A> narrow_u8(any_isa, const saturated_halves<A>& h) {
  return narrow_each<A, std::uint8_t>([](std::int32_t v) { return clamped(v, 0, 255); }, h[0], h[1]);
}
template <class A>
QTENSOR_INLINE saturated_halves<A> add_saturated(any_isa, const saturated_halves<A>& a, const saturated_halves<A>& b) {
  const auto sum = [](const auto& x, const auto& y) {
    buffer<std::int16_t, A> r(x), with(y);
    for (index_t i = 0; i < r.size; ++i) r[i] = static_cast<std::int16_t>(clamped(r[i] + with[i], -32768, 32767));
    return r.batch();
  };
  return {sum(a[0], b[0]), sum(a[1], b[1])};
}
template <class A>
QTENSOR_INLINE bool holds_lowest(any_isa, const saturated_halves<A>& h) {
  const buffer<std::int16_t, A> a(h[0]), b(h[1]);
  const auto lowest = [](std::int16_t v) { return v == -32768; };
  return std::any_of(a.lane.begin(), a.lane.end(), lowest) || std::any_of(b.lane.begin(), b.lane.end(), lowest);
}

// How many of seven ascending limits a magnitude is above, by halves.
template <class Isa, class A>
struct seven_limits {
  QTENSOR_INLINE seven_limits(const float* limits, float factor) {
    for (std::size_t i = 0; i < 7; ++i) limit_[i] = words<A>(bits_of(limits[i] * factor));
  }
  QTENSOR_INLINE words<A> below(const words<A>& magnitude) const {
    const auto is_below = [&](const words<A>& limit)
                              QTENSOR_INLINE_LAMBDA { return detail::below(Isa{}, limit, magnitude); };
    const auto one_of = [](const auto& which, const words<A>& yes, const words<A>& no)
                            QTENSOR_INLINE_LAMBDA { return select(Isa{}, which, yes, no); };
    const auto four = is_below(limit_[3]);
    const auto two = is_below(one_of(four, limit_[5], limit_[1]));
    const auto one = is_below(one_of(two, one_of(four, limit_[6], limit_[2]), one_of(four, limit_[4], limit_[0])));
    const words<A> none(0u);
    return one_of(four, words<A>(4u), none) | one_of(two, words<A>(2u), none) | one_of(one, words<A>(1u), none);
  }
  std::array<words<A>, 7> limit_;
};

// The last of sixteen ascending bounds that a number reaches, one after the other.
template <class Isa, class A>
struct sixteen_bounds {
  explicit sixteen_bounds(const float* bounds) : bound_(bounds) {}
  QTENSOR_INLINE words<A> last(const floats<A>& x) const {
    words<A> at(0u);
#pragma GCC unroll 15
    for (std::uint32_t i = 1; i < 16; ++i)
      at = select(Isa{}, mask_as<std::uint32_t>(Isa{}, x >= floats<A>(bound_[i])), words<A>(i), at);
    return at;
  }
  const float* bound_;
};

#if QTENSOR_LEVEL_NEON
template <class A>
QTENSOR_INLINE saturated_halves<A> narrow_i16(neon_isa, const std::array<ints<A>, 4>& r) {
  return {narrow_i16(r[0], r[1]), narrow_i16(r[2], r[3])};
}
template <class A>
QTENSOR_INLINE bytes<A> narrow_i8(neon_isa, const saturated_halves<A>& h) {
  return vreinterpretq_u8_s8(vcombine_s8(vqmovn_s16(h[0].data), vqmovn_s16(h[1].data)));
}
template <class A>
QTENSOR_INLINE bytes<A> narrow_u8(neon_isa, const saturated_halves<A>& h) {
  return vcombine_u8(vqmovun_s16(h[0].data), vqmovun_s16(h[1].data));
}
template <class A>
QTENSOR_INLINE saturated_halves<A> add_saturated(neon_isa, const saturated_halves<A>& a, const saturated_halves<A>& b) {
  return {vqaddq_s16(a[0].data, b[0].data), vqaddq_s16(a[1].data, b[1].data)};
}
template <class A>
QTENSOR_INLINE bool holds_lowest(neon_isa, const saturated_halves<A>& h) {
  return vminvq_s16(vminq_s16(h[0].data, h[1].data)) == -32768;
}
#endif

#if QTENSOR_LEVEL_X86 >= 2
template <class A>
QTENSOR_INLINE saturated_halves<A> narrow_i16(sse42_isa, const std::array<ints<A>, 4>& r) {
  return {_mm_packs_epi32(r[0].data, r[1].data), _mm_packs_epi32(r[2].data, r[3].data)};
}
template <class A>
QTENSOR_INLINE bytes<A> narrow_i8(sse42_isa, const saturated_halves<A>& h) {
  return _mm_packs_epi16(h[0].data, h[1].data);
}
template <class A>
QTENSOR_INLINE bytes<A> narrow_u8(sse42_isa, const saturated_halves<A>& h) {
  return _mm_packus_epi16(h[0].data, h[1].data);
}
template <class A>
QTENSOR_INLINE saturated_halves<A> add_saturated(sse42_isa, const saturated_halves<A>& a,
                                                 const saturated_halves<A>& b) {
  return {_mm_adds_epi16(a[0].data, b[0].data), _mm_adds_epi16(a[1].data, b[1].data)};
}
template <class A>
QTENSOR_INLINE bool holds_lowest(sse42_isa, const saturated_halves<A>& h) {
  const __m128i lowest = _mm_set1_epi16(-32768);
  return _mm_movemask_epi8(_mm_cmpeq_epi16(_mm_min_epi16(h[0].data, h[1].data), lowest)) != 0;
}
#endif

#if QTENSOR_LEVEL_X86 >= 3
template <class A>
QTENSOR_INLINE saturated_halves<A> narrow_i16(avx2_isa, const std::array<ints<A>, 4>& r) {
  return {_mm256_packs_epi32(r[0].data, r[1].data), _mm256_packs_epi32(r[2].data, r[3].data)};
}
template <class A>
QTENSOR_INLINE bytes<A> narrow_i8(avx2_isa, const saturated_halves<A>& h) {
  return packed_in_order(_mm256_packs_epi16(h[0].data, h[1].data));
}
template <class A>
QTENSOR_INLINE bytes<A> narrow_u8(avx2_isa, const saturated_halves<A>& h) {
  return packed_in_order(_mm256_packus_epi16(h[0].data, h[1].data));
}
template <class A>
QTENSOR_INLINE saturated_halves<A> add_saturated(avx2_isa, const saturated_halves<A>& a, const saturated_halves<A>& b) {
  return {_mm256_adds_epi16(a[0].data, b[0].data), _mm256_adds_epi16(a[1].data, b[1].data)};
}
template <class A>
QTENSOR_INLINE bool holds_lowest(avx2_isa, const saturated_halves<A>& h) {
  const __m256i lowest = _mm256_set1_epi16(-32768);
  return _mm256_movemask_epi8(_mm256_cmpeq_epi16(_mm256_min_epi16(h[0].data, h[1].data), lowest)) != 0;
}

// A register holds all limits: the next one to look at is moved into place.
template <>
struct seven_limits<avx2_isa, avx2_arch> {
  QTENSOR_INLINE seven_limits(const float* limits, float factor)
      : limit_(_mm256_castps_si256(_mm256_mul_ps(_mm256_loadu_ps(limits), _mm256_set1_ps(factor)))),
        fourth_(_mm256_permutevar8x32_epi32(limit_, _mm256_set1_epi32(3))) {}
  QTENSOR_INLINE words256 below(const words256& magnitude) const {
    const auto is_below = [&](__m256i limit)
                              QTENSOR_INLINE_LAMBDA { return _mm256_cmpgt_epi32(magnitude.data, limit); };
    __m256i count = _mm256_and_si256(is_below(fourth_), _mm256_set1_epi32(4));
    const __m256i second = _mm256_add_epi32(count, _mm256_set1_epi32(1));
    count = _mm256_add_epi32(
        count, _mm256_and_si256(is_below(_mm256_permutevar8x32_epi32(limit_, second)), _mm256_set1_epi32(2)));
    return _mm256_sub_epi32(count, is_below(_mm256_permutevar8x32_epi32(limit_, count)));
  }
  __m256i limit_, fourth_;
};

// By halves: what comparisons give, -1 or 0, are the bits of the place so far, negative, by which a register of eight
// bounds is asked for the next one.
template <>
struct sixteen_bounds<avx2_isa, avx2_arch> {
  explicit sixteen_bounds(const float* b)
      : eighth_(_mm256_set1_ps(b[8])),
        fours_(_mm256_setr_ps(b[4], 0, 0, 0, 0, 0, 0, b[12])),
        twos_(_mm256_setr_ps(b[2], 0, 0, 0, 0, b[14], b[10], b[6])),
        ones_(_mm256_setr_ps(b[1], b[15], b[13], b[11], b[9], b[7], b[5], b[3])) {}
  QTENSOR_INLINE words256 last(const floats256& x) const {
    const auto reaches = [&](__m256 bound) QTENSOR_INLINE_LAMBDA {
      return _mm256_castps_si256(_mm256_cmp_ps(x.data, bound, _CMP_GE_OQ));
    };
    const auto next = [](__m256i place, __m256i bit)
                          QTENSOR_INLINE_LAMBDA { return _mm256_add_epi32(_mm256_add_epi32(place, place), bit); };
    __m256i place = reaches(eighth_);
    place = next(place, reaches(_mm256_permutevar8x32_ps(fours_, place)));
    place = next(place, reaches(_mm256_permutevar8x32_ps(twos_, place)));
    place = next(place, reaches(_mm256_permutevar8x32_ps(ones_, place)));
    return _mm256_sub_epi32(_mm256_setzero_si256(), place);
  }
  __m256 eighth_, fours_, twos_, ones_;
};

/// A magnitude plus the power of two whose ulp is the grid's spacing, at least that of the smallest normal number: the
/// sum's exponent counts binades, its lowest bits grid steps and the steps that `more` holds. One multiply-add of
/// 16-bit halves joins them, 7 - m bits too high.
template <minifloat_grid G>
QTENSOR_INLINE ints256 binades_and_steps(const floats256& x, __m256i normal, __m256i more) {
  const __m256i a = _mm256_and_si256(_mm256_castps_si256(x.data), _mm256_set1_epi32(magnitude_bits));
  const __m256i e = _mm256_and_si256(_mm256_max_epi32(a, normal), _mm256_set1_epi32(infinity_bits));
  const __m256 step = _mm256_set1_ps(float_of(static_cast<std::uint32_t>(127 + 23 - G.mantissa_bits) << 23));
  const __m256 sum = _mm256_fmadd_ps(_mm256_castsi256_ps(_mm256_or_si256(e, more)), step, _mm256_castsi256_ps(a));
  return _mm256_madd_epi16(_mm256_castps_si256(sum), _mm256_set1_epi32((1 << 16) | (1 << (7 - G.mantissa_bits))));
}

/// Codes with the signs of x on top from what binades_and_steps counts, less `zero` codes.
template <minifloat_grid G>
QTENSOR_INLINE bytes256 counted_codes(const std::array<floats256, 4>& x, const std::array<ints256, 4>& counts,
                                      std::uint32_t zero) {
  const auto codes = [&](std::size_t k) QTENSOR_INLINE_LAMBDA {
    const __m256i c = _mm256_srli_epi16(_mm256_packus_epi32(counts[k].data, counts[k + 1].data), 7 - G.mantissa_bits);
    return zero == 0 ? c : _mm256_sub_epi16(c, _mm256_set1_epi16(static_cast<short>(zero)));
  };
  const auto signs = [&](std::size_t k) QTENSOR_INLINE_LAMBDA {  // narrowing with saturation keeps them
    return _mm256_packs_epi32(_mm256_castps_si256(x[k].data), _mm256_castps_si256(x[k + 1].data));
  };
  __m256i sign = _mm256_and_si256(_mm256_packs_epi16(signs(0), signs(2)), _mm256_set1_epi8(-128));
  if constexpr (G.bits < 8) sign = _mm256_srli_epi16(sign, 8 - G.bits);
  const __m256i code =
      _mm256_min_epu8(_mm256_packus_epi16(codes(0), codes(2)), _mm256_set1_epi8(static_cast<char>(moved<G>::max_code)));
  return packed_in_order(_mm256_or_si256(code, sign));
}

template <minifloat_grid G, class A>
QTENSOR_INLINE bytes<A> moved_codes(avx2_isa, const std::array<floats<A>, 4>& x, const std::array<moved_grid<A>, 4>& to,
                                    const std::array<floats<A>, 4>& signs_of) {
  const auto counts = [&](std::size_t k) QTENSOR_INLINE_LAMBDA {
    return binades_and_steps<G>(x[k], _mm256_castps_si256(to[k].normal.data), _mm256_castps_si256(to[k].bias.data));
  };
  return counted_codes<G>(signs_of, {counts(0), counts(1), counts(2), counts(3)}, 0);
}
template <minifloat_grid G, goes Side>
requires(Side == goes::nearest) QTENSOR_INLINE bytes256
    signed_codes(avx2_isa, const std::array<floats256, 4>& x, const std::array<floats256, 4>& signs_of) {
  const auto counts = [&](std::size_t k) QTENSOR_INLINE_LAMBDA {
    return binades_and_steps<G>(x[k], _mm256_set1_epi32(G.smallest_normal), _mm256_setzero_si256());
  };
  return counted_codes<G>(signs_of, {counts(0), counts(1), counts(2), counts(3)},
                          ((G.smallest_normal >> 23) + 23 - G.mantissa_bits) << G.mantissa_bits);
}
#endif

#if QTENSOR_LEVEL_X86 >= 4
template <class A>
QTENSOR_INLINE saturated_halves<A> narrow_i16(avx512_isa, const std::array<ints<A>, 4>& r) {
  return {_mm512_packs_epi32(r[0].data, r[1].data), _mm512_packs_epi32(r[2].data, r[3].data)};
}
template <class A>
QTENSOR_INLINE bytes<A> narrow_i8(avx512_isa, const saturated_halves<A>& h) {
  return packed_in_order(_mm512_packs_epi16(h[0].data, h[1].data));
}
template <class A>
QTENSOR_INLINE bytes<A> narrow_u8(avx512_isa, const saturated_halves<A>& h) {
  return packed_in_order(_mm512_packus_epi16(h[0].data, h[1].data));
}
template <class A>
QTENSOR_INLINE saturated_halves<A> add_saturated(avx512_isa, const saturated_halves<A>& a,
                                                 const saturated_halves<A>& b) {
  return {_mm512_adds_epi16(a[0].data, b[0].data), _mm512_adds_epi16(a[1].data, b[1].data)};
}
template <class A>
QTENSOR_INLINE bool holds_lowest(avx512_isa, const saturated_halves<A>& h) {
  return _mm512_cmpeq_epi16_mask(_mm512_min_epi16(h[0].data, h[1].data), _mm512_set1_epi16(-32768)) != 0;
}

template <>
struct seven_limits<avx512_isa, avx512_arch> {
  QTENSOR_INLINE seven_limits(const float* limits, float factor)
      : limit_(_mm512_castps_si512(
            _mm512_mul_ps(_mm512_broadcast_f32x8(_mm256_loadu_ps(limits)), _mm512_set1_ps(factor)))),
        fourth_(_mm512_permutexvar_epi32(_mm512_set1_epi32(3), limit_)) {}
  QTENSOR_INLINE words512 below(const words512& magnitude) const {
    const auto is_below = [&](__m512i limit)
                              QTENSOR_INLINE_LAMBDA { return _mm512_cmpgt_epi32_mask(magnitude.data, limit); };
    const auto added = [](__m512i count, __mmask16 which, int more) QTENSOR_INLINE_LAMBDA {
      return _mm512_mask_add_epi32(count, which, count, _mm512_set1_epi32(more));
    };
    __m512i count = _mm512_maskz_mov_epi32(is_below(fourth_), _mm512_set1_epi32(4));
    const __m512i second = _mm512_add_epi32(count, _mm512_set1_epi32(1));
    count = added(count, is_below(_mm512_permutexvar_epi32(second, limit_)), 2);
    return added(count, is_below(_mm512_permutexvar_epi32(count, limit_)), 1);
  }
  __m512i limit_, fourth_;
};

// By halves; registers hold the bounds that may be next, at the place so far.
template <>
struct sixteen_bounds<avx512_isa, avx512_arch> {
  explicit sixteen_bounds(const float* bounds)
      : eighth_(_mm512_set1_ps(bounds[8])), fours_(next(bounds, 4)), twos_(next(bounds, 2)), ones_(next(bounds, 1)) {}
  QTENSOR_INLINE words512 last(const floats512& x) const {
    const auto reaches = [&](__m512 bound)
                             QTENSOR_INLINE_LAMBDA { return _mm512_cmp_ps_mask(x.data, bound, _CMP_GE_OQ); };
    const auto step = [&](__m512i place, __m512 bounds, int bit) QTENSOR_INLINE_LAMBDA {
      return _mm512_mask_or_epi32(place, reaches(_mm512_permutexvar_ps(place, bounds)), place, _mm512_set1_epi32(bit));
    };
    const __m512i place = _mm512_maskz_mov_epi32(reaches(eighth_), _mm512_set1_epi32(8));
    return step(step(step(place, fours_, 4), twos_, 2), ones_, 1);
  }
  static __m512 next(const float* bounds, int bit) {
    const __m512i place = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    return _mm512_permutexvar_ps(_mm512_or_si512(place, _mm512_set1_epi32(bit)), _mm512_loadu_ps(bounds));
  }
  __m512 eighth_, fours_, twos_, ones_;
};

#if defined(__AVX512VBMI__)
/// For each quarter of eight bytes: the bits of a code from bit `Below` of its 16 on, and behind four of those the
/// upper byte of each, which begins with a sign.
template <int Below>
struct codes_and_signs_index {
  alignas(64) std::array<std::uint8_t, 64> at;
  constexpr codes_and_signs_index() : at{} {
    for (int i = 0; i < 64; ++i)
      at[static_cast<std::size_t>(i)] = static_cast<std::uint8_t>(16 * (i % 4) + (i % 8 < 4 ? Below : 8));
  }
};
template <int Below>
inline constexpr codes_and_signs_index<Below> codes_and_signs_at{};

/// A number plus a power of two of its sign whose ulp is the grid's spacing (KERNELS A4): the sum's exponent counts
/// binades, its lowest bits grid steps less the bias. One multiply-add of 16-bit halves joins them under the sign, 7 -
/// m bits too high.
template <minifloat_grid G, goes Side = goes::nearest>
QTENSOR_INLINE __m512i binades_and_steps(__m512 x, __m512 smallest_normal, __m512i bias) {
  constexpr int m = G.mantissa_bits;
  constexpr int rounding = (Side == goes::down ? _MM_FROUND_TO_NEG_INF
                            : Side == goes::up ? _MM_FROUND_TO_POS_INF
                                               : _MM_FROUND_TO_ZERO) |
                           _MM_FROUND_NO_EXC;
  __m512i weights = _mm512_set1_epi32((1 << 16) | (1 << (7 - m)));
  asm("" : "+v"(weights));                                       // in a register: g++ would load it for each use
  const __m512 normal = _mm512_range_ps(x, smallest_normal, 3);  // larger magnitude
  const __m512i power = _mm512_ternarylogic_epi32(
      _mm512_castps_si512(normal), _mm512_set1_epi32(static_cast<int>(0xff800000u)), bias, 0xea);  // (a & b) | c
  const __m512 step = _mm512_set1_ps(float_of(static_cast<std::uint32_t>(127 + 23 - m) << 23));
  __m512 sum;
  if constexpr (Side == goes::nearest)
    sum = _mm512_fmadd_ps(_mm512_castsi512_ps(power), step, x);
  else
    sum = _mm512_fmadd_round_ps(_mm512_castsi512_ps(power), step, x, rounding);
  return _mm512_madd_epi16(_mm512_castps_si512(sum), weights);
}
/// The codes of such sums, in order; saturated where they may be above the largest one.
template <minifloat_grid G, bool Saturates>
QTENSOR_INLINE bytes512 codes_of_sums(__m512i c0, __m512i c1, __m512i c2, __m512i c3) {
  const __m512i at = _mm512_load_si512(codes_and_signs_at<7 - G.mantissa_bits>.at.data());
  const auto bytes = [&](__m512i x, __m512i y) QTENSOR_INLINE_LAMBDA {
    return _mm512_castsi512_ps(_mm512_multishift_epi64_epi8(at, _mm512_packs_epi32(x, y)));
  };
  const __m512 a = bytes(c0, c1), b = bytes(c2, c3);
  __m512i code = _mm512_castps_si512(_mm512_shuffle_ps(a, b, 0x88)),
          sign = _mm512_castps_si512(_mm512_shuffle_ps(a, b, 0xdd));
  if constexpr (Saturates) code = _mm512_min_epu8(code, _mm512_set1_epi8(static_cast<char>(moved<G>::max_code)));
  if constexpr (G.bits < 8) sign = _mm512_srli_epi16(sign, 8 - G.bits);
  return packed_in_order(
      _mm512_ternarylogic_epi32(code, sign, _mm512_set1_epi8(static_cast<char>(1 << (G.bits - 1))), 0xf8));
}
QTENSOR_INLINE __m512 with_sign_of(const floats512& x, const floats512& sign) {
  return _mm512_castsi512_ps(_mm512_ternarylogic_epi32(_mm512_castps_si512(x.data), _mm512_castps_si512(sign.data),
                                                       _mm512_set1_epi32(static_cast<int>(sign_bit)), 0xd8));
}

template <minifloat_grid G, class A>
QTENSOR_INLINE bytes<A> moved_codes(avx512_isa, const std::array<floats<A>, 4>& x,
                                    const std::array<moved_grid<A>, 4>& to, const std::array<floats<A>, 4>& signs_of) {
  const auto sum = [&](std::size_t k) QTENSOR_INLINE_LAMBDA {
    const __m512 number = &signs_of == &x ? x[k].data : with_sign_of(x[k], signs_of[k]);
    return binades_and_steps<G>(number, to[k].normal.data, _mm512_castps_si512(to[k].bias.data));
  };
  return codes_of_sums<G, true>(sum(0), sum(1), sum(2), sum(3));
}
template <minifloat_grid G, goes Side>
QTENSOR_INLINE bytes512 signed_codes(avx512_isa, const std::array<floats512, 4>& x,
                                     const std::array<floats512, 4>& signs_of) {
  constexpr int bias =
      -static_cast<int>(((G.smallest_normal >> 23) + 23 - G.mantissa_bits) << G.mantissa_bits) & 0xffff;
  const __m512 largest = _mm512_set1_ps(float_of(G.largest));
  const auto sum = [&](std::size_t k) QTENSOR_INLINE_LAMBDA {
    const __m512 number = &signs_of == &x ? x[k].data : with_sign_of(x[k], signs_of[k]);
    return binades_and_steps<G, Side>(_mm512_range_ps(number, largest, 2),  // smaller magnitude
                                      _mm512_set1_ps(float_of(G.smallest_normal)), _mm512_set1_epi32(bias));
  };
  return codes_of_sums<G, false>(sum(0), sum(1), sum(2), sum(3));
}
#endif
#endif

}  // namespace detail

/// Powers of two, as bits, that grid_times takes.
template <minifloat_grid G>
inline constexpr std::uint32_t least_moved = detail::moved<G>::least;
template <minifloat_grid G>
inline constexpr std::uint32_t most_moved = detail::moved<G>::most;

/// The grid times powers of two, given as the bits of floats; smaller ones count as least_moved<G>. Cost: 6.
template <minifloat_grid G, usable_arch A>
QTENSOR_INLINE moved_grid<A> grid_times(const words<A>& power) {
  constexpr std::uint32_t away = 23 - G.mantissa_bits;
  const words<A> normal =
      simd::max(power, words<A>(least_moved<G>)) + words<A>(G.smallest_normal - detail::moved<G>::one);
  const words<A> bias = (words<A>(0u) - (((normal >> 23) + words<A>(away)) << G.mantissa_bits)) & words<A>(0xffffu);
  return {simd::bits_as<float>(normal), simd::bits_as<float>(bias)};
}

/// Codes on a moved grid, of the nearest values (ties to even), saturated, with the sign on top; one per byte, the bits
/// above a short code 0. |x| is below four times the largest power of two on the grid; other lanes, NaN included, are
/// unspecified. Cost for four batches: 24 with AVX-512 VBMI, 36 on AVX2, else 4 * 8 and 16.
template <minifloat_grid G, usable_arch A>
QTENSOR_INLINE bytes<A> moved_codes(const std::array<floats<A>, 4>& x, const std::array<moved_grid<A>, 4>& to) {
  return detail::moved_codes<G>(detail::isa<A>{}, x, to, x);
}
/// The same with the signs of other numbers. Cost: 4 more with AVX-512 VBMI.
template <minifloat_grid G, usable_arch A>
QTENSOR_INLINE bytes<A> moved_codes(const std::array<floats<A>, 4>& x, const std::array<moved_grid<A>, 4>& to,
                                    const std::array<floats<A>, 4>& signs_of) {
  return detail::moved_codes<G>(detail::isa<A>{}, x, to, signs_of);
}

/// Codes of a minifloat with the signs of other numbers (or their own) on top, of the nearest values, or those on a
/// side of the numbers, saturated; one per byte, with the bits above a short code not clean. Lanes that are NaN are
/// unspecified. Only where there are instructions for it: 27 for all four batches with AVX-512 VBMI, and 4 for other
/// signs, and 34 on AVX2, half of what bit by bit takes.
template <class A, minifloat_grid G, goes Side = goes::nearest>
concept has_signed_codes = usable_arch<A> && requires(const std::array<floats<A>, 4>& x) {
  signed_codes<G, Side>(detail::isa<A>{}, x, x);
};
template <minifloat_grid G, goes Side = goes::nearest, usable_arch A>
requires has_signed_codes<A, G, Side> QTENSOR_INLINE bytes<A> signed_codes(const std::array<floats<A>, 4>& x,
                                                                           const std::array<floats<A>, 4>& signs_of) {
  return signed_codes<G, Side>(detail::isa<A>{}, x, signs_of);
}

/// Seven ascending limits that are not negative, times a factor that is not either: how many lie below a magnitude, as
/// bits. Reads eight numbers at `limits`, of which the last one does not count. No number is above limits times
/// infinity; NaN as the factor: unspecified. Cost: 3, and 9 to count; without registers of eight floats 14, and 18.
template <usable_arch A>
class seven_limits {
 public:
  QTENSOR_INLINE seven_limits(const float* limits, float factor) : body_(limits, factor) {}
  QTENSOR_INLINE words<A> below(const words<A>& magnitude) const { return body_.below(magnitude); }

 private:
  detail::seven_limits<detail::isa<A>, A> body_;
};

/// Sixteen ascending bounds, which are read where they stand: the place of the last one that a number reaches, 0 if it
/// reaches none. Bounds that are NaN, behind all others, are not reached, and no NaN reaches any. Cost: AVX-512 11,
/// AVX2 14, others 30.
template <usable_arch A>
class sixteen_bounds {
 public:
  explicit sixteen_bounds(const float* bounds) : body_(bounds) {}
  QTENSOR_INLINE words<A> last(const floats<A>& x) const { return body_.last(x); }

 private:
  detail::sixteen_bounds<detail::isa<A>, A> body_;
};

/// Four batches of integers, saturated to 16 bits. Cost: 2, NEON 4.
template <usable_arch A>
QTENSOR_INLINE saturated_halves<A> narrow_i16(const std::array<ints<A>, 4>& r) {
  return detail::narrow_i16<A>(detail::isa<A>{}, r);
}
/// The same bytes, in order, as narrow_i8 and narrow_u8 of the integers. Cost: 2, SSE4.2 1, NEON 3.
template <usable_arch A>
QTENSOR_INLINE bytes<A> narrow_i8(const saturated_halves<A>& h) {
  return detail::narrow_i8<A>(detail::isa<A>{}, h);
}
template <usable_arch A>
QTENSOR_INLINE bytes<A> narrow_u8(const saturated_halves<A>& h) {
  return detail::narrow_u8<A>(detail::isa<A>{}, h);
}
/// a + b, saturated to 16 bits. Cost: 2.
template <usable_arch A>
QTENSOR_INLINE saturated_halves<A> add_saturated(const saturated_halves<A>& a, const saturated_halves<A>& b) {
  return detail::add_saturated<A>(detail::isa<A>{}, a, b);
}
/// Whether any is -32768: of an integer that small, or that stands for no number. Cost: 3.
template <usable_arch A>
QTENSOR_INLINE bool holds_lowest(const saturated_halves<A>& h) {
  return detail::holds_lowest<A>(detail::isa<A>{}, h);
}

}  // namespace qtensor::inline QTENSOR_ABI::simd
