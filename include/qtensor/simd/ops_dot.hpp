// The integer dot product: in every lane four 8-bit codes against four of a row, exact in 32 bits.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <qtensor/simd/ops.hpp>

// A weight is a signed byte; a lane holds four of one column, k ascending (a quad). A row's codes come as units,
// whatever the instruction of an architecture takes: `unit` = signed code + `unit_offset`. Sums wrap around at 32 bits
// as the instructions do, so a sum whose value fits is right whatever passed in between.
namespace qtensor::inline QTENSOR_ABI::simd {

namespace detail {

/// Any architecture: lane by lane.
template <class A>
struct portable_dot {
  using unit = std::int8_t;
  static constexpr std::int32_t unit_offset = 0;
  using weights = buffer<std::uint8_t, A>;
  using row = weights;
  static weights load(const std::int8_t* quads) {
    return weights(xsimd::batch<std::uint8_t, A>::load_unaligned(reinterpret_cast<const std::uint8_t*>(quads)));
  }
  static row broadcast(const unit* four) {
    row all;
    for (index_t i = 0; i < all.size; ++i) all[i] = static_cast<std::uint8_t>(four[i % 4]);
    return all;
  }
  static row load_row(const std::uint8_t* quads) { return load(reinterpret_cast<const std::int8_t*>(quads)); }
  static constexpr index_t pack_step = 4;
  static ints<A> pack(const std::uint8_t* from, std::uint8_t flip, unit* to, const ints<A>& sum) {
    buffer<std::int32_t, A> out(sum);
    for (index_t k = 0; k < pack_step; ++k) out[0] += to[k] = static_cast<unit>(from[k] ^ flip);
    return out.batch();
  }
  static ints<A> dot(const ints<A>& sum, const weights& w, const row& x) {
    buffer<std::int32_t, A> out(sum);
    for (index_t i = 0; i < out.size; ++i) {
      std::int32_t four = 0;
      for (std::size_t k = 0, at = 4 * static_cast<std::size_t>(i); k < 4; ++k, ++at)
        four += static_cast<std::int8_t>(w.lane[at]) * static_cast<std::int8_t>(x.lane[at]);
      out[i] = static_cast<std::int32_t>(static_cast<std::uint32_t>(out[i]) + static_cast<std::uint32_t>(four));
    }
    return out.batch();
  }
};

#if defined(__x86_64__) && QTENSOR_LEVEL_X86 >= 2
// Both sides as 16 bits, products summed in pairs: exact for all codes, where bytes times bytes would saturate. A
// lane's even codes are one pair, its odd ones the other, and the units of a row stand in that order: 0, 2, 1, 3.
struct pair_dot {
  using unit = std::int16_t;
  static constexpr std::int32_t unit_offset = 0;
};
struct sse42_dot : pair_dot {
  struct weights {
    __m128i even, odd;
  };
  using row = weights;
  static QTENSOR_INLINE weights load(const std::int8_t* quads) {
    const __m128i v = _mm_loadu_si128(reinterpret_cast<const __m128i*>(quads));
    return {_mm_srai_epi16(_mm_slli_epi16(v, 8), 8), _mm_srai_epi16(v, 8)};
  }
  static QTENSOR_INLINE row load_row(const std::uint8_t* quads) {
    return load(reinterpret_cast<const std::int8_t*>(quads));
  }
  static QTENSOR_INLINE row broadcast(const unit* four) {
    const __m128i v = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(four));
    return {_mm_shuffle_epi32(v, 0x00), _mm_shuffle_epi32(v, 0x55)};
  }
  static constexpr index_t pack_step = 8;
  static QTENSOR_INLINE ints<sse42_arch> pack(const std::uint8_t* from, std::uint8_t flip, unit* to,
                                              const ints<sse42_arch>& sum) {
    const __m128i codes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(from));
    const __m128i wide = _mm_cvtepi8_epi16(_mm_xor_si128(codes, _mm_set1_epi8(static_cast<char>(flip))));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm_shufflehi_epi16(_mm_shufflelo_epi16(wide, 0xd8), 0xd8));
    return _mm_add_epi32(sum.data, _mm_madd_epi16(wide, _mm_set1_epi16(1)));
  }
  static QTENSOR_INLINE ints<sse42_arch> dot(const ints<sse42_arch>& sum, const weights& w, const row& x) {
    const __m128i even = _mm_add_epi32(sum.data, _mm_madd_epi16(w.even, x.even));
    return _mm_add_epi32(even, _mm_madd_epi16(w.odd, x.odd));
  }
};
QTENSOR_INLINE std::int32_t load_pair(const std::int16_t* pair) {
  std::int32_t both;
  std::memcpy(&both, pair, sizeof both);
  return both;
}
#endif

#if QTENSOR_LEVEL_X86 >= 3
struct avx2_dot : pair_dot {
  struct weights {
    __m256i even, odd;
  };
  using row = weights;
  static QTENSOR_INLINE weights load(const std::int8_t* quads) {
    const __m256i v = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(quads));
    return {_mm256_srai_epi16(_mm256_slli_epi16(v, 8), 8), _mm256_srai_epi16(v, 8)};
  }
  static QTENSOR_INLINE row load_row(const std::uint8_t* quads) {
    return load(reinterpret_cast<const std::int8_t*>(quads));
  }
  static QTENSOR_INLINE row broadcast(const unit* four) {
    return {_mm256_set1_epi32(load_pair(four)), _mm256_set1_epi32(load_pair(four + 2))};
  }
  static constexpr index_t pack_step = 16;
  static QTENSOR_INLINE ints<avx2_arch> pack(const std::uint8_t* from, std::uint8_t flip, unit* to,
                                             const ints<avx2_arch>& sum) {
    const __m128i codes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
    const __m256i wide = _mm256_cvtepi8_epi16(_mm_xor_si128(codes, _mm_set1_epi8(static_cast<char>(flip))));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to),
                        _mm256_shufflehi_epi16(_mm256_shufflelo_epi16(wide, 0xd8), 0xd8));
    return _mm256_add_epi32(sum.data, _mm256_madd_epi16(wide, _mm256_set1_epi16(1)));
  }
  static QTENSOR_INLINE ints<avx2_arch> dot(const ints<avx2_arch>& sum, const weights& w, const row& x) {
    return dot_half(dot_half(sum, w.even, x.even), w.odd, x.odd);
  }

  // A quad in two halves, for tiles whose registers do not hold both.
  using half = __m256i;
  template <int Odd>
  static QTENSOR_INLINE half load_half(const std::int8_t* quads) {
    const __m256i v = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(quads));
    return _mm256_srai_epi16(Odd != 0 ? v : _mm256_slli_epi16(v, 8), 8);
  }
  template <int Odd>
  static QTENSOR_INLINE half broadcast_half(const unit* four) {
    return _mm256_set1_epi32(load_pair(four + 2 * Odd));
  }
  static QTENSOR_INLINE ints<avx2_arch> dot_half(const ints<avx2_arch>& sum, half w, half x) {
    __m256i all = _mm256_add_epi32(sum.data, _mm256_madd_epi16(w, x));
    asm("" : "+x"(all));  // g++ 12 otherwise adds all second halves to the first ones, and sums leave the registers
    return all;
  }
};
#endif

#if defined(__AVXVNNI__)
struct avxvnni_dot {
  using unit = std::uint8_t;
  static constexpr std::int32_t unit_offset = 128;
  using weights = __m256i;
  using row = __m256i;
  static QTENSOR_INLINE weights load(const std::int8_t* quads) {
    __m256i v = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(quads));
    asm("" : "+x"(v));
    return v;
  }
  static QTENSOR_INLINE row load_row(const std::uint8_t* quads) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(quads));
  }
  static QTENSOR_INLINE row broadcast(const unit* four) {
    std::int32_t all;
    std::memcpy(&all, four, sizeof all);
    return _mm256_set1_epi32(all);
  }
  static constexpr index_t pack_step = 32;
  static QTENSOR_INLINE ints<avx2_arch> pack(const std::uint8_t* from, std::uint8_t flip, unit* to,
                                             const ints<avx2_arch>& sum) {
    const __m256i codes = _mm256_xor_si256(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)),
                                           _mm256_set1_epi8(static_cast<char>(flip)));
    const __m256i units = _mm256_xor_si256(codes, _mm256_set1_epi8(static_cast<char>(0x80)));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), units);
    return _mm256_dpbusd_avx_epi32(sum.data, _mm256_set1_epi8(1), codes);
  }
  static QTENSOR_INLINE ints<avx2_arch> dot(const ints<avx2_arch>& sum, const weights& w, const row& x) {
    return _mm256_dpbusd_avx_epi32(sum.data, x, w);
  }
};
#endif

#if QTENSOR_LEVEL_X86 >= 4
#if defined(__AVX512VNNI__)
struct avx512_dot {
  using unit = std::uint8_t;
  static constexpr std::int32_t unit_offset = 128;
  using weights = __m512i;
  using row = __m512i;
  static QTENSOR_INLINE weights load(const std::int8_t* quads) {
    __m512i v = _mm512_loadu_si512(quads);
    asm("" : "+v"(v));  // g++ 12 otherwise repeats the load for every row
    return v;
  }
  static QTENSOR_INLINE row load_row(const std::uint8_t* quads) { return _mm512_loadu_si512(quads); }
  static QTENSOR_INLINE row broadcast(const unit* four) {
    std::int32_t all;
    std::memcpy(&all, four, sizeof all);
    return _mm512_set1_epi32(all);
  }
  static constexpr index_t pack_step = 64;
  static QTENSOR_INLINE ints<avx512_arch> pack(const std::uint8_t* from, std::uint8_t flip, unit* to,
                                               const ints<avx512_arch>& sum) {
    const __m512i codes = _mm512_xor_si512(_mm512_loadu_si512(from), _mm512_set1_epi8(static_cast<char>(flip)));
    _mm512_storeu_si512(to, _mm512_xor_si512(codes, _mm512_set1_epi8(static_cast<char>(0x80))));
    return _mm512_dpbusd_epi32(sum.data, _mm512_set1_epi8(1), codes);
  }
  static QTENSOR_INLINE ints<avx512_arch> dot(const ints<avx512_arch>& sum, const weights& w, const row& x) {
    return _mm512_dpbusd_epi32(sum.data, x, w);
  }
};
#else
struct avx512_dot : pair_dot {
  struct weights {
    __m512i even, odd;
  };
  using row = weights;
  static QTENSOR_INLINE weights load(const std::int8_t* quads) {
    const __m512i v = _mm512_loadu_si512(quads);
    return {_mm512_srai_epi16(_mm512_slli_epi16(v, 8), 8), _mm512_srai_epi16(v, 8)};
  }
  static QTENSOR_INLINE row load_row(const std::uint8_t* quads) {
    return load(reinterpret_cast<const std::int8_t*>(quads));
  }
  static QTENSOR_INLINE row broadcast(const unit* four) {
    return {_mm512_set1_epi32(load_pair(four)), _mm512_set1_epi32(load_pair(four + 2))};
  }
  static constexpr index_t pack_step = 32;
  static QTENSOR_INLINE ints<avx512_arch> pack(const std::uint8_t* from, std::uint8_t flip, unit* to,
                                               const ints<avx512_arch>& sum) {
    const __m256i codes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
    const __m512i wide = _mm512_cvtepi8_epi16(_mm256_xor_si256(codes, _mm256_set1_epi8(static_cast<char>(flip))));
    _mm512_storeu_si512(to, _mm512_shufflehi_epi16(_mm512_shufflelo_epi16(wide, 0xd8), 0xd8));
    return _mm512_add_epi32(sum.data, _mm512_madd_epi16(wide, _mm512_set1_epi16(1)));
  }
  static QTENSOR_INLINE ints<avx512_arch> dot(const ints<avx512_arch>& sum, const weights& w, const row& x) {
    const __m512i even = _mm512_add_epi32(sum.data, _mm512_madd_epi16(w.even, x.even));
    return _mm512_add_epi32(even, _mm512_madd_epi16(w.odd, x.odd));
  }
};
#endif
#endif

#if QTENSOR_LEVEL_NEON
struct neon_dot {
  using unit = std::int8_t;
  static constexpr std::int32_t unit_offset = 0;
  using weights = int8x16_t;
  using row = int8x16_t;
  static QTENSOR_INLINE weights load(const std::int8_t* quads) { return vld1q_s8(quads); }
  static QTENSOR_INLINE row load_row(const std::uint8_t* quads) { return vreinterpretq_s8_u8(vld1q_u8(quads)); }
  static QTENSOR_INLINE row broadcast(const unit* four) {
    std::int32_t all;
    std::memcpy(&all, four, sizeof all);
    return vreinterpretq_s8_s32(vdupq_n_s32(all));
  }
  static constexpr index_t pack_step = 16;
  static QTENSOR_INLINE ints<neon_arch> pack(const std::uint8_t* from, std::uint8_t flip, unit* to,
                                             const ints<neon_arch>& sum) {
    const int8x16_t codes = vreinterpretq_s8_u8(veorq_u8(vld1q_u8(from), vdupq_n_u8(flip)));
    vst1q_s8(to, codes);
    return vpadalq_s16(sum.data, vpaddlq_s8(codes));
  }
  static QTENSOR_INLINE ints<neon_arch> dot(const ints<neon_arch>& sum, const weights& w, const row& x) {
#if defined(__ARM_FEATURE_DOTPROD)
    return vdotq_s32(sum.data, w, x);
#else
    const int32x4_t low = vpaddlq_s16(vmull_s8(vget_low_s8(w), vget_low_s8(x)));
    const int32x4_t high = vpaddlq_s16(vmull_high_s8(w, x));
    return vaddq_s32(sum.data, vpaddq_s32(low, high));
#endif
  }
};
#endif

template <class A>
constexpr auto dot_of() {
#if QTENSOR_LEVEL_X86 >= 4
  if constexpr (std::same_as<A, avx512_arch>) return avx512_dot{};
#endif
#if defined(__AVXVNNI__)
  if constexpr (std::same_as<A, avx2_arch>) return avxvnni_dot{};
#elif QTENSOR_LEVEL_X86 >= 3
  if constexpr (std::same_as<A, avx2_arch>) return avx2_dot{};
#endif
#if defined(__x86_64__) && QTENSOR_LEVEL_X86 >= 2
  if constexpr (std::same_as<A, sse42_arch>) return sse42_dot{};
#endif
#if QTENSOR_LEVEL_NEON
  if constexpr (std::same_as<A, neon_arch>) return neon_dot{};
#endif
  if constexpr (std::same_as<A, scalar_arch>) return portable_dot<A>{};
}

}  // namespace detail

/// The dot product of an architecture:
///   unit, unit_offset              what a row's signed code c becomes: unit(c + unit_offset)
///   load(quads) -> weights         `lanes` quads of weights, for as many uses as there are rows
///   broadcast(four) -> row         four units of a row (one quad, in the order of pack_units)
///   load_row(quads) -> row         `lanes` quads of bytes, code + unit_offset: every lane has a row of its own
///   pack(from, flip, to, sums)     pack_step codes, each xor flip, to units; adds their signed codes to the sums
///   dot(sum, weights, row)         lane i: sum + w[4i] x[0] + ... + w[4i + 3] x[3]. Cost: 1 with VNNI and NEON dot, 4
///                                  on other x86, 5 on other NEON
template <usable_arch A>
using quad_dot = decltype(detail::dot_of<A>());

/// The matrix product of an architecture that has one: two rows times two columns, eight codes deep. All codes are
/// signed by then (unsigned ones flipped where rows and weights are packed), so that one instruction serves every
/// choice of signs. Two rows times a vector's columns are two squares of sums, each row 0's two columns and then row
/// 1's:
///   load<Quads>(quads, next) -> weights       the columns of one vector, a quad and the one below it; Quads == 1: 0
///                                             instead of `next`
///   load_rows<Quads>(first, second) -> rows   eight units of two rows, or four and 0
///   dot(square, columns, rows)                adds the products to a square of sums. Cost: 1
///   after(squares, quads) -> quads            the same pointer, known to the compiler only when the sums are
///   spread<Half>(start), row<Second>(squares) one row of sums as a square of two equal rows, and back
template <usable_arch A>
struct square_dot {
  static constexpr bool exists = false;
};
#if QTENSOR_LEVEL_NEON && defined(__ARM_FEATURE_DOTPROD) && defined(__ARM_FEATURE_MATMUL_INT8)
template <>
struct square_dot<neon_arch> {
  static constexpr bool exists = true;
  using unit = detail::neon_dot::unit;
  struct weights {
    int8x16_t columns[2];  ///< 0 and 1, 2 and 3
  };
  using rows = int8x16_t;
  template <index_t Quads>
  static QTENSOR_INLINE weights load(const std::int8_t* quads, [[maybe_unused]] const std::int8_t* next) {
    const int32x4_t upper = vreinterpretq_s32_s8(vld1q_s8(quads));
    int32x4_t lower = vdupq_n_s32(0);
    if constexpr (Quads == 2) lower = vreinterpretq_s32_s8(vld1q_s8(next));
    return {{vreinterpretq_s8_s32(vzip1q_s32(upper, lower)), vreinterpretq_s8_s32(vzip2q_s32(upper, lower))}};
  }
  template <index_t Quads>
  static QTENSOR_INLINE rows load_rows(const unit* first, const unit* second) {
    std::uint64_t eight[2] = {};
    std::memcpy(&eight[0], first, 4 * Quads);
    std::memcpy(&eight[1], second, 4 * Quads);
    return vcombine_s8(vcreate_s8(eight[0]), vcreate_s8(eight[1]));
  }
  static QTENSOR_INLINE ints<neon_arch> dot(const ints<neon_arch>& square, int8x16_t columns, rows x) {
    return vmmlaq_s32(square.data, x, columns);
  }
  // g++ 12 otherwise loads the weights of all vectors first, and sums leave the registers.
  static QTENSOR_INLINE const std::int8_t* after(ints<neon_arch> (&squares)[2], const std::int8_t* quads) {
    asm("" : "+w"(squares[0].data), "+w"(squares[1].data), "+r"(quads));
    return quads;
  }
  template <int Half>
  static QTENSOR_INLINE ints<neon_arch> spread(const ints<neon_arch>& start) {
    const int64x2_t pairs = vreinterpretq_s64_s32(start.data);
    return vreinterpretq_s32_s64(vdupq_laneq_s64(pairs, Half));
  }
  template <int Second>
  static QTENSOR_INLINE ints<neon_arch> row(const ints<neon_arch> (&squares)[2]) {
    const int64x2_t low = vreinterpretq_s64_s32(squares[0].data), high = vreinterpretq_s64_s32(squares[1].data);
    return vreinterpretq_s32_s64(Second != 0 ? vzip2q_s64(low, high) : vzip1q_s64(low, high));
  }
};
#endif

/// The dot product of quads by products of sums (Winograd 1968), where a multiplication costs more than the additions
/// that save it: (x0 + w1)(x1 + w0) + (x2 + w3)(x3 + w2) is the product of two quads and, besides, x0 x1 + x2 x3 and
/// w0 w1 + w2 w3, which all columns of a row and all rows of a column share. Units are those of quad_dot; weights are
/// widened before:
///   widen(quads, to, products) -> products   `lanes` quads to `wide_units` numbers; adds w0 w1 + w2 w3 in every lane
///   load(wide) -> weights                    these numbers
///   broadcast(four) -> row                   as quad_dot has it
///   dot(sum, weights, row)                   adds the products of sums. Cost: 4, of which 1 multiplication
///   unit_products(units, products)           adds to all lanes together x0 x1 + x2 x3 of `product_units` units
template <usable_arch A>
struct sum_dot {
  static constexpr bool exists = false;
};
#if QTENSOR_LEVEL_X86 >= 3 && !defined(__AVXVNNI__)
template <>
struct sum_dot<avx2_arch> {
  static constexpr bool exists = true;
  using unit = detail::avx2_dot::unit;
  using weights = detail::avx2_dot::weights;
  using row = detail::avx2_dot::row;
  static constexpr index_t wide_units = 32, product_units = 16;
  static QTENSOR_INLINE ints<avx2_arch> widen(const std::int8_t* quads, unit* to, const ints<avx2_arch>& products) {
    const weights w = detail::avx2_dot::load(quads);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), w.even);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + 16), w.odd);
    return _mm256_add_epi32(products.data, _mm256_madd_epi16(w.even, w.odd));
  }
  static QTENSOR_INLINE weights load(const unit* wide) {
    weights w{_mm256_loadu_si256(reinterpret_cast<const __m256i*>(wide)),
              _mm256_loadu_si256(reinterpret_cast<const __m256i*>(wide + 16))};
    asm("" : "+x"(w.even), "+x"(w.odd));  // g++ 12 otherwise repeats the loads for every row
    return w;
  }
  static QTENSOR_INLINE row broadcast(const unit* four) { return detail::avx2_dot::broadcast(four); }
  static QTENSOR_INLINE ints<avx2_arch> dot(const ints<avx2_arch>& sum, const weights& w, const row& x) {
    const __m256i first = _mm256_add_epi16(x.even, w.odd), second = _mm256_add_epi16(x.odd, w.even);
    return _mm256_add_epi32(sum.data, _mm256_madd_epi16(first, second));
  }
  static QTENSOR_INLINE ints<avx2_arch> unit_products(const unit* units, const ints<avx2_arch>& products) {
    const __m256i v = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(units));
    return _mm256_add_epi32(products.data, _mm256_madd_epi16(v, _mm256_srli_epi64(v, 32)));
  }
};
#endif

/// The dot product of one row against weights that are read once, where widening them costs more than a second
/// multiplication: units plus 128 are split into their nibbles, and either's products with bytes add up in 16 bits:
///   split(units, to)               `split_units` units to twice as many bytes, of each quad the low nibbles, then the
///                                  high ones
///   broadcast(quad) -> parts       the nibbles of one quad
///   load(quads) -> weights         `lanes` quads
///   dot(weights, row) -> parts     products of the nibbles; add(sum, weights, row) adds them, to quads_together quads
///   fold(all, sum)                 adds such sums to one of 32 bits, those of high nibbles 16 times
template <usable_arch A>
struct split_dot {
  static constexpr bool exists = false;
};
#if QTENSOR_LEVEL_X86 >= 3 && !defined(__AVXVNNI__)
template <>
struct split_dot<avx2_arch> {
  static constexpr bool exists = true;
  using unit = detail::avx2_dot::unit;
  using weights = __m256i;
  struct parts {
    __m256i low, high;
  };
  static constexpr index_t split_units = 16, quads_together = 8;  // 8 * 2 * 15 * 128 < 2^15
  static QTENSOR_INLINE void split(const unit* units, std::uint8_t* to) {
    const __m256i v =
        _mm256_add_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(units)), _mm256_set1_epi16(128));
    const __m256i parts = _mm256_packus_epi16(_mm256_and_si256(v, _mm256_set1_epi16(15)), _mm256_srli_epi16(v, 4));
    const __m256i order =
        _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 2, 1, 3, 8, 10, 9, 11, 4, 6, 5, 7, 12, 14, 13, 15));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm256_shuffle_epi8(parts, order));
  }
  static QTENSOR_INLINE parts broadcast(const std::uint8_t* quad) {
    std::int32_t low, high;
    std::memcpy(&low, quad, 4);
    std::memcpy(&high, quad + 4, 4);
    return {_mm256_set1_epi32(low), _mm256_set1_epi32(high)};
  }
  static QTENSOR_INLINE weights load(const std::int8_t* quads) {
    __m256i v = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(quads));
    asm("" : "+x"(v));
    return v;
  }
  static QTENSOR_INLINE parts dot(weights w, const parts& row) {
    return {_mm256_maddubs_epi16(row.low, w), _mm256_maddubs_epi16(row.high, w)};
  }
  static QTENSOR_INLINE parts add(const parts& sum, weights w, const parts& row) {
    const parts products = dot(w, row);
    parts all{_mm256_add_epi16(sum.low, products.low), _mm256_add_epi16(sum.high, products.high)};
    asm("" : "+x"(all.low), "+x"(all.high));  // g++ 12 otherwise multiplies all quads first, and spills
    return all;
  }
  static QTENSOR_INLINE ints<avx2_arch> fold(const ints<avx2_arch>& all, const parts& sum) {
    const __m256i low = _mm256_madd_epi16(sum.low, _mm256_set1_epi16(1));
    const __m256i high = _mm256_madd_epi16(sum.high, _mm256_set1_epi16(16));
    return _mm256_add_epi32(all.data, _mm256_add_epi32(low, high));
  }
};
#endif

namespace detail {

// Along k instead of across columns: sums[lane] += w[...] x[...] over step codes. `w` as 8 bits that `flip` makes
// unsigned or signed, whichever the instruction takes for its first operand; x signed codes.
template <class A>
struct portable_along {
  static constexpr index_t step = 4;
  static constexpr std::int32_t weight_offset = 0;
  using row = std::array<std::int8_t, 4>;
  static row load(const std::int8_t* x) { return {x[0], x[1], x[2], x[3]}; }
  static ints<A> dot(const ints<A>& sum, const std::uint8_t* w, std::uint8_t flip, const row& x) {
    buffer<std::int32_t, A> out(sum);
    for (std::size_t k = 0; k < 4; ++k) out[0] += static_cast<std::int8_t>(w[k] ^ flip) * x[k];
    return out.batch();
  }
};
#if defined(__x86_64__) && QTENSOR_LEVEL_X86 >= 2
struct sse42_along {
  static constexpr index_t step = 8;
  static constexpr std::int32_t weight_offset = 0;
  using row = __m128i;
  static QTENSOR_INLINE row load(const std::int8_t* x) {
    return _mm_cvtepi8_epi16(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(x)));
  }
  static QTENSOR_INLINE ints<sse42_arch> dot(const ints<sse42_arch>& sum, const std::uint8_t* w, std::uint8_t flip,
                                             const row& x) {
    const __m128i codes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(w));
    const __m128i wide = _mm_cvtepi8_epi16(_mm_xor_si128(codes, _mm_set1_epi8(static_cast<char>(flip))));
    return _mm_add_epi32(sum.data, _mm_madd_epi16(wide, x));
  }
};
#endif
#if QTENSOR_LEVEL_X86 >= 3
struct avx2_along {
#if defined(__AVXVNNI__)
  static constexpr index_t step = 32;
  static constexpr std::int32_t weight_offset = 128;
  using row = __m256i;
  static QTENSOR_INLINE row load(const std::int8_t* x) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x));
  }
  static QTENSOR_INLINE ints<avx2_arch> dot(const ints<avx2_arch>& sum, const std::uint8_t* w, std::uint8_t flip,
                                            const row& x) {
    const __m256i codes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(w));
    const __m256i flips = _mm256_set1_epi8(static_cast<char>(flip ^ 0x80));
    return _mm256_dpbusd_avx_epi32(sum.data, _mm256_xor_si256(codes, flips), x);
  }
#else
  static constexpr index_t step = 16;
  static constexpr std::int32_t weight_offset = 0;
  using row = __m256i;
  static QTENSOR_INLINE row load(const std::int8_t* x) {
    return _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(x)));
  }
  static QTENSOR_INLINE ints<avx2_arch> dot(const ints<avx2_arch>& sum, const std::uint8_t* w, std::uint8_t flip,
                                            const row& x) {
    const __m128i codes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(w));
    const __m256i wide = _mm256_cvtepi8_epi16(_mm_xor_si128(codes, _mm_set1_epi8(static_cast<char>(flip))));
    return _mm256_add_epi32(sum.data, _mm256_madd_epi16(wide, x));
  }
#endif
};
#endif
#if QTENSOR_LEVEL_X86 >= 4
struct avx512_along {
#if defined(__AVX512VNNI__)
  static constexpr index_t step = 64;
  static constexpr std::int32_t weight_offset = 128;
  using row = __m512i;
  static QTENSOR_INLINE row load(const std::int8_t* x) { return _mm512_loadu_si512(x); }
  static QTENSOR_INLINE ints<avx512_arch> dot(const ints<avx512_arch>& sum, const std::uint8_t* w, std::uint8_t flip,
                                              const row& x) {
    const __m512i flips = _mm512_set1_epi8(static_cast<char>(flip ^ 0x80));
    return _mm512_dpbusd_epi32(sum.data, _mm512_xor_si512(_mm512_loadu_si512(w), flips), x);
  }
#else
  static constexpr index_t step = 32;
  static constexpr std::int32_t weight_offset = 0;
  using row = __m512i;
  static QTENSOR_INLINE row load(const std::int8_t* x) {
    return _mm512_cvtepi8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(x)));
  }
  static QTENSOR_INLINE ints<avx512_arch> dot(const ints<avx512_arch>& sum, const std::uint8_t* w, std::uint8_t flip,
                                              const row& x) {
    const __m256i codes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(w));
    const __m512i wide = _mm512_cvtepi8_epi16(_mm256_xor_si256(codes, _mm256_set1_epi8(static_cast<char>(flip))));
    return _mm512_add_epi32(sum.data, _mm512_madd_epi16(wide, x));
  }
#endif
};
#endif
#if QTENSOR_LEVEL_NEON
struct neon_along {
  static constexpr index_t step = 16;
  static constexpr std::int32_t weight_offset = 0;
  using row = int8x16_t;
  static QTENSOR_INLINE row load(const std::int8_t* x) { return vld1q_s8(x); }
  static QTENSOR_INLINE ints<neon_arch> dot(const ints<neon_arch>& sum, const std::uint8_t* w, std::uint8_t flip,
                                            const row& x) {
    return neon_dot::dot(sum, vreinterpretq_s8_u8(veorq_u8(vld1q_u8(w), vdupq_n_u8(flip))), x);
  }
};
#endif

template <class A>
constexpr auto along_of() {
#if QTENSOR_LEVEL_X86 >= 4
  if constexpr (std::same_as<A, avx512_arch>) return avx512_along{};
#endif
#if QTENSOR_LEVEL_X86 >= 3
  if constexpr (std::same_as<A, avx2_arch>) return avx2_along{};
#endif
#if defined(__x86_64__) && QTENSOR_LEVEL_X86 >= 2
  if constexpr (std::same_as<A, sse42_arch>) return sse42_along{};
#endif
#if QTENSOR_LEVEL_NEON
  if constexpr (std::same_as<A, neon_arch>) return neon_along{};
#endif
  if constexpr (std::same_as<A, scalar_arch>) return portable_along<A>{};
}

}  // namespace detail

/// The dot product along k, of weights and rows as they lie in memory:
///   step                           codes that one call takes
///   load(x) -> row                 `step` signed codes of a row, for as many weights as there are
///   dot(sum, w, flip, row)         adds to the lanes of sum (s + weight_offset) x for `step` codes, s the signed code
///                                  w[i] ^ flip: to each lane those of step / lanes codes side by side; portable: all
///                                  to the first. Cost: 2-3
template <usable_arch A>
using line_dot = decltype(detail::along_of<A>());

/// The signed form of a code: unsigned 8-bit codes less 128, others as they are.
enum class code_sign : std::uint8_t { is_signed = 0, is_unsigned = 0x80 };

/// A row of n codes as units, padded with code 0 to whole quads: to[0, round_up(n, 4)). Returns the sum of the signed
/// codes. from is bytes of int8 or uint8 codes.
template <usable_arch A>
std::int32_t pack_units(const std::uint8_t* from, index_t n, code_sign sign, typename quad_dot<A>::unit* to) {
  using dot = quad_dot<A>;
  const auto flip = static_cast<std::uint8_t>(sign);
  ints<A> sums(0);
  index_t k = 0;
  for (; k + dot::pack_step <= n; k += dot::pack_step) sums = dot::pack(from + k, flip, to + k, sums);
  if (k < n) {
    std::uint8_t rest[dot::pack_step];
    typename dot::unit units[dot::pack_step];
    std::memset(rest, flip, sizeof rest);
    std::memcpy(rest, from + k, static_cast<std::size_t>(n - k));
    sums = dot::pack(rest, flip, units, sums);
    std::memcpy(to + k, units, static_cast<std::size_t>(round_up(n - k, 4)) * sizeof *units);
  }
  return static_cast<std::int32_t>(simd::reduce_add(simd::bits_as<std::uint32_t>(sums)));
}

}  // namespace qtensor::inline QTENSOR_ABI::simd
