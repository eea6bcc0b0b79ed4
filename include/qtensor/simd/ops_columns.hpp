// Columns of a matrix whose rows are contiguous, as batches: what turns rows into lanes.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstring>
#include <qtensor/core/support.hpp>
#include <qtensor/simd/arch.hpp>
#include <qtensor/simd/ops.hpp>
#include <utility>

namespace qtensor::inline QTENSOR_ABI::simd {

namespace detail {

template <class A>
QTENSOR_INLINE std::array<floats<A>, 4> load_columns(any_isa, const float* from, index_t stride) {
  std::array<floats<A>, 4> column;
  for (std::size_t c = 0; c < 4; ++c)
    for (std::size_t r = 0; r < column[c].size; ++r)
      column[c].lane[r] = from[static_cast<index_t>(r) * stride + static_cast<index_t>(c)];
  return column;
}

template <class A>
QTENSOR_INLINE void turn_square(any_isa, std::array<floats<A>, lanes<A>>& rows) {
  float columns[lanes<A> * lanes<A>], row[lanes<A>];
  for (index_t r = 0; r < lanes<A>; ++r) {
    simd::store(row, rows[static_cast<std::size_t>(r)]);
    for (index_t c = 0; c < lanes<A>; ++c) columns[c * lanes<A> + r] = row[c];
  }
  for (index_t c = 0; c < lanes<A>; ++c) rows[static_cast<std::size_t>(c)] = simd::load<A>(columns + c * lanes<A>);
}

/// What sum_parts_each returns.
template <class A, index_t Words>
using sums_of_parts = std::array<words<A>, static_cast<std::size_t>(lanes<A> / Words)>;
template <class A, index_t Words, class Row>
QTENSOR_INLINE sums_of_parts<A, Words> sum_parts_each(any_isa, Row row) {
  std::uint32_t lane[lanes<A>], sums[lanes<A>][lanes<A>] = {};
  for (index_t b = 0; b < lanes<A>; ++b) {
    simd::store(lane, row(b));
    for (index_t i = 0; i < lanes<A>; ++i) sums[i / Words][b] += lane[i];
  }
  sums_of_parts<A, Words> out;
  for (std::size_t p = 0; p < out.size(); ++p) out[p] = simd::load<A>(std::as_const(sums[p]));
  return out;
}

template <class A>
QTENSOR_INLINE bytes<A> interleave_four(any_isa, const bytes<A>& v) {
  std::uint8_t from[4 * lanes<A>], to[4 * lanes<A>];
  simd::store(from, v);
  for (index_t i = 0; i < 4 * lanes<A>; ++i) to[i] = from[i % 4 * lanes<A> + i / 4];
  return simd::load<A>(static_cast<const std::uint8_t*>(to));
}

template <class A>
QTENSOR_INLINE bytes<A> load_fours(any_isa, const std::uint8_t* from, index_t apart) {
  std::uint8_t rows[4 * lanes<A>];
  for (index_t k = 0; k < 4; ++k) std::memcpy(rows + k * lanes<A>, from + k * apart, lanes<A>);
  return simd::load<A>(static_cast<const std::uint8_t*>(rows));
}

// The even nibbles of words as bytes, and the odd ones: those of `lower` below those of `upper`.
template <class A>
struct nibble_halves {
  words<A> even, odd;
  QTENSOR_INLINE nibble_halves(const words<A>& lower, const words<A>& upper) {
    const words<A> low(0x0f0f0f0fu), high(0xf0f0f0f0u);
    even = (lower & low) | ((upper << 4) & high), odd = ((lower >> 4) & low) | (upper & high);
  }
};
template <class A>
QTENSOR_INLINE std::array<bytes<A>, 2> quads_of_nibbles(any_isa, const words<A>& lower, const words<A>& upper) {
  const nibble_halves<A> v(lower, upper);
  const auto apart = [](const words<A>& two)
                         QTENSOR_INLINE_LAMBDA { return (two & words<A>(0xffu)) | ((two & words<A>(0xff00u)) << 8); };
  return {simd::bits_as<std::uint8_t>(apart(v.even) | (apart(v.odd) << 8)),
          simd::bits_as<std::uint8_t>(apart(v.even >> 16) | (apart(v.odd >> 16) << 8))};
}

// Whole registers of four rows: bytes meet within 128 bits, so that wide registers are spread over these first.
template <class A>
QTENSOR_INLINE bytes<A> spread_rows(any_isa, const bytes<A>& row) {
  return row;
}
template <class A>
QTENSOR_INLINE std::array<bytes<A>, 4> interleave_rows(any_isa, const std::array<bytes<A>, 4>& rows) {
  std::uint8_t from[4][4 * lanes<A>], to[16 * lanes<A>];
  for (index_t k = 0; k < 4; ++k) simd::store(from[k], rows[static_cast<std::size_t>(k)]);
  for (index_t i = 0; i < 16 * lanes<A>; ++i) to[i] = from[i % 4][i / 4];
  std::array<bytes<A>, 4> out;
  for (index_t v = 0; v < 4; ++v)
    out[static_cast<std::size_t>(v)] = simd::load<A>(static_cast<const std::uint8_t*>(to + v * 4 * lanes<A>));
  return out;
}

/// Four bytes each of four rows of four, turned.
inline constexpr std::array<std::uint8_t, 16> turned_fours = {0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15};

#if QTENSOR_LEVEL_X86 >= 2
template <class A>
QTENSOR_INLINE bytes<A> interleave_four(sse42_isa, const bytes<A>& v) {
  return _mm_shuffle_epi8(v.data, _mm_loadu_si128(reinterpret_cast<const __m128i*>(turned_fours.data())));
}
// Bytes of both halves meet: both quads of two words each, whose places are put in order then.
template <class A>
QTENSOR_INLINE std::array<bytes<A>, 2> quads_of_nibbles(sse42_isa, const words<A>& lower, const words<A>& upper) {
  const nibble_halves<A> v(lower, upper);
  const auto first = _mm_castsi128_ps(_mm_unpacklo_epi8(v.even.data, v.odd.data)),
             last = _mm_castsi128_ps(_mm_unpackhi_epi8(v.even.data, v.odd.data));
  return {_mm_castps_si128(_mm_shuffle_ps(first, last, 0x88)), _mm_castps_si128(_mm_shuffle_ps(first, last, 0xdd))};
}
template <class A>
QTENSOR_INLINE bytes<A> load_fours(sse42_isa, const std::uint8_t* from, index_t apart) {
  const auto row = [&](index_t k) QTENSOR_INLINE_LAMBDA {
    std::int32_t four;
    std::memcpy(&four, from + k * apart, 4);
    return four;
  };
  return _mm_insert_epi32(_mm_insert_epi32(_mm_insert_epi32(_mm_cvtsi32_si128(row(0)), row(1), 1), row(2), 2), row(3),
                          3);
}
template <class A>
QTENSOR_INLINE std::array<bytes<A>, 4> interleave_rows(sse42_isa, const std::array<bytes<A>, 4>& r) {
  const __m128i low01 = _mm_unpacklo_epi8(r[0].data, r[1].data), high01 = _mm_unpackhi_epi8(r[0].data, r[1].data);
  const __m128i low23 = _mm_unpacklo_epi8(r[2].data, r[3].data), high23 = _mm_unpackhi_epi8(r[2].data, r[3].data);
  return {_mm_unpacklo_epi16(low01, low23), _mm_unpackhi_epi16(low01, low23), _mm_unpacklo_epi16(high01, high23),
          _mm_unpackhi_epi16(high01, high23)};
}
// In each 128 bits, lane c of row r and lane r of row c change places.
template <class A>
QTENSOR_INLINE void turn_fours(sse42_isa, floats<A>& a, floats<A>& b, floats<A>& c, floats<A>& d) {
  const __m128 ab01 = _mm_unpacklo_ps(a.data, b.data), ab23 = _mm_unpackhi_ps(a.data, b.data);
  const __m128 cd01 = _mm_unpacklo_ps(c.data, d.data), cd23 = _mm_unpackhi_ps(c.data, d.data);
  a = _mm_movelh_ps(ab01, cd01), b = _mm_movehl_ps(cd01, ab01);
  c = _mm_movelh_ps(ab23, cd23), d = _mm_movehl_ps(cd23, ab23);
}
template <class A>
QTENSOR_INLINE void turn_square(sse42_isa isa, std::array<floats<A>, 4>& rows) {
  turn_fours<A>(isa, rows[0], rows[1], rows[2], rows[3]);
}
template <class A>
QTENSOR_INLINE std::array<floats<A>, 4> load_columns(sse42_isa isa, const float* from, index_t stride) {
  std::array<floats<A>, 4> square{simd::load<A>(from), simd::load<A>(from + stride), simd::load<A>(from + 2 * stride),
                                  simd::load<A>(from + 3 * stride)};
  turn_square<A>(isa, square);
  return square;
}
#endif

#if QTENSOR_LEVEL_X86 >= 3
// Fours of a half meet, and change places there.
template <class A>
QTENSOR_INLINE bytes<A> interleave_four(avx2_isa, const bytes<A>& v) {
  const __m256i fours = _mm256_permutevar8x32_epi32(v.data, _mm256_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7));
  const __m128i turned = _mm_loadu_si128(reinterpret_cast<const __m128i*>(turned_fours.data()));
  return _mm256_shuffle_epi8(fours, _mm256_broadcastsi128_si256(turned));
}
template <class A>
QTENSOR_INLINE std::array<bytes<A>, 2> quads_of_nibbles(avx2_isa, const words<A>& lower, const words<A>& upper) {
  const nibble_halves<A> v(lower, upper);
  const auto first = _mm256_castsi256_ps(_mm256_unpacklo_epi8(v.even.data, v.odd.data)),
             last = _mm256_castsi256_ps(_mm256_unpackhi_epi8(v.even.data, v.odd.data));
  return {_mm256_castps_si256(_mm256_shuffle_ps(first, last, 0x88)),
          _mm256_castps_si256(_mm256_shuffle_ps(first, last, 0xdd))};
}
template <class A>
QTENSOR_INLINE bytes<A> load_fours(avx2_isa, const std::uint8_t* from, index_t apart) {
  const auto rows = [&](index_t k) QTENSOR_INLINE_LAMBDA {
    const auto row = [&](index_t r) { return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(from + r * apart)); };
    return _mm_unpacklo_epi64(row(k), row(k + 1));
  };
  return _mm256_set_m128i(rows(2), rows(0));
}
template <class A>
QTENSOR_INLINE bytes<A> spread_rows(avx2_isa, const bytes<A>& row) {
  return _mm256_permutevar8x32_epi32(row.data, _mm256_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7));
}
template <class A>
QTENSOR_INLINE std::array<bytes<A>, 4> interleave_rows(avx2_isa, const std::array<bytes<A>, 4>& r) {
  const __m256i low01 = _mm256_unpacklo_epi8(r[0].data, r[1].data), high01 = _mm256_unpackhi_epi8(r[0].data, r[1].data);
  const __m256i low23 = _mm256_unpacklo_epi8(r[2].data, r[3].data), high23 = _mm256_unpackhi_epi8(r[2].data, r[3].data);
  return {_mm256_unpacklo_epi16(low01, low23), _mm256_unpackhi_epi16(low01, low23),
          _mm256_unpacklo_epi16(high01, high23), _mm256_unpackhi_epi16(high01, high23)};
}
template <class A>
QTENSOR_INLINE void turn_fours(avx2_isa, floats<A>& a, floats<A>& b, floats<A>& c, floats<A>& d) {
  const __m256 ab01 = _mm256_unpacklo_ps(a.data, b.data), ab23 = _mm256_unpackhi_ps(a.data, b.data);
  const __m256 cd01 = _mm256_unpacklo_ps(c.data, d.data), cd23 = _mm256_unpackhi_ps(c.data, d.data);
  a = _mm256_shuffle_ps(ab01, cd01, 0x44), b = _mm256_shuffle_ps(ab01, cd01, 0xee);
  c = _mm256_shuffle_ps(ab23, cd23, 0x44), d = _mm256_shuffle_ps(ab23, cd23, 0xee);
}
QTENSOR_INLINE __m256i even_lanes(__m256i a, __m256i b) {
  return _mm256_castps_si256(_mm256_shuffle_ps(_mm256_castsi256_ps(a), _mm256_castsi256_ps(b), 0x88));
}
QTENSOR_INLINE __m256i odd_lanes(__m256i a, __m256i b) {
  return _mm256_castps_si256(_mm256_shuffle_ps(_mm256_castsi256_ps(a), _mm256_castsi256_ps(b), 0xdd));
}
#if QTENSOR_LEVEL_X86 >= 4
QTENSOR_INLINE __m512i even_lanes(__m512i a, __m512i b) {
  return _mm512_castps_si512(_mm512_shuffle_ps(_mm512_castsi512_ps(a), _mm512_castsi512_ps(b), 0x88));
}
QTENSOR_INLINE __m512i odd_lanes(__m512i a, __m512i b) {
  return _mm512_castps_si512(_mm512_shuffle_ps(_mm512_castsi512_ps(a), _mm512_castsi512_ps(b), 0xdd));
}
#endif
// Rows from one on meet by fours: sums of 128 bits of each side by side, or in two registers those of its halves.
template <class A, index_t Words, class Row>
QTENSOR_INLINE std::array<words<A>, Words == 2 ? 2 : 1> sum_fours(const Row& row, index_t first) {
  constexpr lane_sum op{};
  const auto a = row(first).data, b = row(first + 1).data, c = row(first + 2).data, d = row(first + 3).data;
  if constexpr (Words == 2) {
    const auto ab = of_both(op, even_lanes(a, b), odd_lanes(a, b)), cd = of_both(op, even_lanes(c, d), odd_lanes(c, d));
    return {even_lanes(ab, cd), odd_lanes(ab, cd)};
  } else {
    return {of_pairs64(op, of_pairs32(op, a, b), of_pairs32(op, c, d))};
  }
}
template <class A, index_t Words, class Row>
requires(Words == 2 || Words == 4) QTENSOR_INLINE sums_of_parts<A, Words> sum_parts_each(avx2_isa, Row row) {
  const auto low = sum_fours<A, Words>(row, 0), high = sum_fours<A, Words>(row, 4);
  sums_of_parts<A, Words> out;
#pragma GCC unroll 2
  for (std::size_t h = 0; h < low.size(); ++h) {
    out[h] = _mm256_permute2x128_si256(low[h].data, high[h].data, 0x20);
    out[low.size() + h] = _mm256_permute2x128_si256(low[h].data, high[h].data, 0x31);
  }
  return out;
}
// Then halves of two batches change places.
template <class A>
QTENSOR_INLINE void turn_square(avx2_isa isa, std::array<floats<A>, 8>& rows) {
#pragma GCC unroll 2
  for (std::size_t r = 0; r < 8; r += 4) turn_fours<A>(isa, rows[r], rows[r + 1], rows[r + 2], rows[r + 3]);
#pragma GCC unroll 4
  for (std::size_t c = 0; c < 4; ++c) {
    const __m256 low = rows[c].data, high = rows[4 + c].data;
    rows[c] = _mm256_permute2f128_ps(low, high, 0x20);
    rows[4 + c] = _mm256_permute2f128_ps(low, high, 0x31);
  }
}
// A register holds rows r and r + 4, then 4 columns of them.
template <class A>
QTENSOR_INLINE std::array<floats<A>, 4> load_columns(avx2_isa isa, const float* from, index_t stride) {
  const auto rows = [&](index_t r) QTENSOR_INLINE_LAMBDA {
    const float* p = from + r * stride;
    return floats<A>(_mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(p)), _mm_loadu_ps(p + 4 * stride), 1));
  };
  std::array<floats<A>, 4> columns{rows(0), rows(1), rows(2), rows(3)};
  turn_fours<A>(isa, columns[0], columns[1], columns[2], columns[3]);
  return columns;
}
#endif

#if QTENSOR_LEVEL_X86 >= 4
template <class A>
QTENSOR_INLINE bytes<A> interleave_four(avx512_isa, const bytes<A>& v) {
  if constexpr (features::vbmi) {
    alignas(64) static constexpr std::array<std::uint8_t, 64> order = [] {
      std::array<std::uint8_t, 64> of{};
      for (std::size_t i = 0; i < 64; ++i) of[i] = static_cast<std::uint8_t>(i % 4 * 16 + i / 4);
      return of;
    }();
    return _mm512_permutexvar_epi8(_mm512_load_si512(order.data()), v.data);
  } else {  // fours of a quarter meet, and change places there
    const __m512i fours =
        _mm512_permutexvar_epi32(_mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15), v.data);
    const __m128i turned = _mm_loadu_si128(reinterpret_cast<const __m128i*>(turned_fours.data()));
    return _mm512_shuffle_epi8(fours, _mm512_broadcast_i32x4(turned));
  }
}
template <class A>
QTENSOR_INLINE std::array<bytes<A>, 2> quads_of_nibbles(avx512_isa, const words<A>& lower, const words<A>& upper) {
  if constexpr (features::vbmi) {  // bytes that begin at each nibble, or one before: the place of its own
    const __m512i low = _mm512_set1_epi8(15);
    const auto quad = [&](std::uint64_t begins, std::uint64_t before) QTENSOR_INLINE_LAMBDA {
      const __m512i at = _mm512_set1_epi64(static_cast<long long>(begins)),
                    at_upper = _mm512_set1_epi64(static_cast<long long>(before));
      return bytes<A>(_mm512_ternarylogic_epi32(low, _mm512_multishift_epi64_epi8(at, lower.data),
                                                _mm512_multishift_epi64_epi8(at_upper, upper.data), 0xca));
    };
    return {quad(0x2c2824200c080400, 0x2824201c0804003c), quad(0x3c3834301c181410, 0x3834302c1814100c)};
  } else {
    const nibble_halves<A> v(lower, upper);
    const auto first = _mm512_castsi512_ps(_mm512_unpacklo_epi8(v.even.data, v.odd.data)),
               last = _mm512_castsi512_ps(_mm512_unpackhi_epi8(v.even.data, v.odd.data));
    return {_mm512_castps_si512(_mm512_shuffle_ps(first, last, 0x88)),
            _mm512_castps_si512(_mm512_shuffle_ps(first, last, 0xdd))};
  }
}
template <class A>
QTENSOR_INLINE bytes<A> load_fours(avx512_isa, const std::uint8_t* from, index_t apart) {
  return simd::load_quarters<A>(from, apart);
}
template <class A>
QTENSOR_INLINE bytes<A> spread_rows(avx512_isa, const bytes<A>& row) {
  return _mm512_permutexvar_epi32(_mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15), row.data);
}
template <class A>
QTENSOR_INLINE std::array<bytes<A>, 4> interleave_rows(avx512_isa, const std::array<bytes<A>, 4>& r) {
  const __m512i low01 = _mm512_unpacklo_epi8(r[0].data, r[1].data), high01 = _mm512_unpackhi_epi8(r[0].data, r[1].data);
  const __m512i low23 = _mm512_unpacklo_epi8(r[2].data, r[3].data), high23 = _mm512_unpackhi_epi8(r[2].data, r[3].data);
  return {_mm512_unpacklo_epi16(low01, low23), _mm512_unpackhi_epi16(low01, low23),
          _mm512_unpacklo_epi16(high01, high23), _mm512_unpackhi_epi16(high01, high23)};
}
template <class A>
QTENSOR_INLINE void turn_fours(avx512_isa, floats<A>& a, floats<A>& b, floats<A>& c, floats<A>& d) {
  const __m512 ab01 = _mm512_unpacklo_ps(a.data, b.data), ab23 = _mm512_unpackhi_ps(a.data, b.data);
  const __m512 cd01 = _mm512_unpacklo_ps(c.data, d.data), cd23 = _mm512_unpackhi_ps(c.data, d.data);
  a = _mm512_shuffle_ps(ab01, cd01, 0x44), b = _mm512_shuffle_ps(ab01, cd01, 0xee);
  c = _mm512_shuffle_ps(ab23, cd23, 0x44), d = _mm512_shuffle_ps(ab23, cd23, 0xee);
}
// Quarter q of register r and quarter r of register q change places.
QTENSOR_INLINE void turn_quarters(__m512& a, __m512& b, __m512& c, __m512& d) {
  const __m512 even0 = _mm512_shuffle_f32x4(a, b, 0x88), even2 = _mm512_shuffle_f32x4(c, d, 0x88);
  const __m512 odd0 = _mm512_shuffle_f32x4(a, b, 0xdd), odd2 = _mm512_shuffle_f32x4(c, d, 0xdd);
  a = _mm512_shuffle_f32x4(even0, even2, 0x88), b = _mm512_shuffle_f32x4(odd0, odd2, 0x88);
  c = _mm512_shuffle_f32x4(even0, even2, 0xdd), d = _mm512_shuffle_f32x4(odd0, odd2, 0xdd);
}
template <class A>
QTENSOR_INLINE void turn_square(avx512_isa isa, std::array<floats<A>, 16>& rows) {
#pragma GCC unroll 4
  for (std::size_t r = 0; r < 16; r += 4) turn_fours<A>(isa, rows[r], rows[r + 1], rows[r + 2], rows[r + 3]);
#pragma GCC unroll 4
  for (std::size_t c = 0; c < 4; ++c)
    turn_quarters(rows[c].data, rows[4 + c].data, rows[8 + c].data, rows[12 + c].data);
}
// Then quarters meet: added up where they are of one part, else turned.
template <class A, index_t Words, class Row>
requires(Words == 2 || Words == 4 || Words == 8) QTENSOR_INLINE sums_of_parts<A, Words> sum_parts_each(avx512_isa,
                                                                                                       Row row) {
  constexpr std::size_t of_quarter = Words == 2 ? 2 : 1;
  std::array<words<A>, of_quarter> fours[4];
#pragma GCC unroll 4
  for (index_t q = 0; q < 4; ++q) fours[q] = sum_fours<A, Words>(row, 4 * q);
  sums_of_parts<A, Words> out;
  if constexpr (Words == 8) {
    const __m512i first = of_pairs128(lane_sum{}, fours[0][0].data, fours[1][0].data),
                  last = of_pairs128(lane_sum{}, fours[2][0].data, fours[3][0].data);
    out[0] = _mm512_shuffle_i32x4(first, last, 0x88), out[1] = _mm512_shuffle_i32x4(first, last, 0xdd);
  } else {
#pragma GCC unroll 2
    for (std::size_t h = 0; h < of_quarter; ++h) {
      __m512 v[4];
#pragma GCC unroll 4
      for (std::size_t q = 0; q < 4; ++q) v[q] = _mm512_castsi512_ps(fours[q][h].data);
      turn_quarters(v[0], v[1], v[2], v[3]);
#pragma GCC unroll 4
      for (std::size_t q = 0; q < 4; ++q) out[q * of_quarter + h] = _mm512_castps_si512(v[q]);
    }
  }
  return out;
}
// A register holds rows r, r + 4, r + 8 and r + 12, then 4 columns of them.
template <class A>
QTENSOR_INLINE std::array<floats<A>, 4> load_columns(avx512_isa isa, const float* from, index_t stride) {
  const auto half = [&](const float* p) QTENSOR_INLINE_LAMBDA {
    return _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(p)), _mm_loadu_ps(p + 4 * stride), 1);
  };
  const auto rows = [&](index_t r) QTENSOR_INLINE_LAMBDA {
    const float* p = from + r * stride;
    return floats<A>(_mm512_insertf32x8(_mm512_castps256_ps512(half(p)), half(p + 8 * stride), 1));
  };
  std::array<floats<A>, 4> columns{rows(0), rows(1), rows(2), rows(3)};
  turn_fours<A>(isa, columns[0], columns[1], columns[2], columns[3]);
  return columns;
}
#endif

#if QTENSOR_LEVEL_NEON
template <class A>
QTENSOR_INLINE bytes<A> interleave_four(neon_isa, const bytes<A>& v) {
  return vqtbl1q_u8(v.data, vld1q_u8(turned_fours.data()));
}
template <class A>
QTENSOR_INLINE std::array<bytes<A>, 2> quads_of_nibbles(neon_isa, const words<A>& lower, const words<A>& upper) {
  const nibble_halves<A> v(lower, upper);
  const uint8x16_t even = vreinterpretq_u8_u32(v.even.data), odd = vreinterpretq_u8_u32(v.odd.data);
  const uint32x4_t first = vreinterpretq_u32_u8(vzip1q_u8(even, odd)),
                   last = vreinterpretq_u32_u8(vzip2q_u8(even, odd));
  return {bytes<A>(vreinterpretq_u8_u32(vuzp1q_u32(first, last))),
          bytes<A>(vreinterpretq_u8_u32(vuzp2q_u32(first, last)))};
}
template <class A>
QTENSOR_INLINE bytes<A> load_fours(neon_isa, const std::uint8_t* from, index_t apart) {
  const auto rows = [&](index_t k) QTENSOR_INLINE_LAMBDA {
    std::uint32_t two[2];
    std::memcpy(two, from + k * apart, 4);
    std::memcpy(two + 1, from + (k + 1) * apart, 4);
    return vld1_u32(two);
  };
  return vreinterpretq_u8_u32(vcombine_u32(rows(0), rows(2)));
}
template <class A>
QTENSOR_INLINE std::array<bytes<A>, 4> interleave_rows(neon_isa, const std::array<bytes<A>, 4>& r) {
  const uint16x8_t low01 = vreinterpretq_u16_u8(vzip1q_u8(r[0].data, r[1].data));
  const uint16x8_t high01 = vreinterpretq_u16_u8(vzip2q_u8(r[0].data, r[1].data));
  const uint16x8_t low23 = vreinterpretq_u16_u8(vzip1q_u8(r[2].data, r[3].data));
  const uint16x8_t high23 = vreinterpretq_u16_u8(vzip2q_u8(r[2].data, r[3].data));
  return {bytes<A>(vreinterpretq_u8_u16(vzip1q_u16(low01, low23))),
          bytes<A>(vreinterpretq_u8_u16(vzip2q_u16(low01, low23))),
          bytes<A>(vreinterpretq_u8_u16(vzip1q_u16(high01, high23))),
          bytes<A>(vreinterpretq_u8_u16(vzip2q_u16(high01, high23)))};
}
template <class A>
QTENSOR_INLINE void turn_square(neon_isa, std::array<floats<A>, 4>& rows) {
  const float32x4_t a = rows[0].data, b = rows[1].data, c = rows[2].data, d = rows[3].data;
  const float64x2_t ab02 = vreinterpretq_f64_f32(vtrn1q_f32(a, b)), ab13 = vreinterpretq_f64_f32(vtrn2q_f32(a, b));
  const float64x2_t cd02 = vreinterpretq_f64_f32(vtrn1q_f32(c, d)), cd13 = vreinterpretq_f64_f32(vtrn2q_f32(c, d));
  rows = {floats<A>(vreinterpretq_f32_f64(vtrn1q_f64(ab02, cd02))),
          floats<A>(vreinterpretq_f32_f64(vtrn1q_f64(ab13, cd13))),
          floats<A>(vreinterpretq_f32_f64(vtrn2q_f64(ab02, cd02))),
          floats<A>(vreinterpretq_f32_f64(vtrn2q_f64(ab13, cd13)))};
}
template <class A>
QTENSOR_INLINE std::array<floats<A>, 4> load_columns(neon_isa, const float* from, index_t stride) {
  std::array<floats<A>, 4> square{simd::load<A>(from), simd::load<A>(from + stride), simd::load<A>(from + 2 * stride),
                                  simd::load<A>(from + 3 * stride)};
  turn_square<A>(neon_isa{}, square);
  return square;
}
#endif

}  // namespace detail

/// Four columns of `lanes` rows: lane r of result c is from[r * stride + c]. Cost: 24 / 16 / 12 / 12.
template <usable_arch A>
QTENSOR_INLINE std::array<floats<A>, 4> load_columns(const float* from, index_t stride) {
  return load_columns<A>(detail::isa<A>{}, from, stride);
}

/// Byte 4 * i + k of what returns is byte k * lanes + i: bytes of four rows of `lanes` as fours of each column. Cost:
/// 1; with AVX2, and with AVX-512 that has no VBMI, 2.
template <usable_arch A>
QTENSOR_INLINE bytes<A> interleave_four(const bytes<A>& v) {
  return interleave_four<A>(detail::isa<A>{}, v);
}

/// The same of four rows in memory, `apart` bytes from each other: byte 4 * i + k is from[k * apart + i]. Cost: 3 more.
template <usable_arch A>
QTENSOR_INLINE bytes<A> load_interleaved(const std::uint8_t* from, index_t apart) {
  return interleave_four<A>(detail::load_fours<A>(detail::isa<A>{}, from, apart));
}

/// Whole batches of four rows: byte 4 * i + k of batch v is byte v * lanes + i of row k. Rows come from spread_rows,
/// each of which may be part of many such fours. Cost: 8, and 1 a row with AVX2 and AVX-512; portable: through memory.
template <usable_arch A>
QTENSOR_INLINE std::array<bytes<A>, 4> interleave_rows(const std::array<bytes<A>, 4>& spread) {
  return interleave_rows<A>(detail::isa<A>{}, spread);
}
template <usable_arch A>
QTENSOR_INLINE bytes<A> spread_rows(const bytes<A>& row) {
  return spread_rows<A>(detail::isa<A>{}, row);
}

/// The eight nibbles of each word as two quads of bytes: byte k of word i of result q is nibble 4 q + k of word i of
/// `lower`, and in its upper half that of `upper`. Cost: 3 a result with AVX-512 VBMI, else 6; portable: 15.
template <usable_arch A>
QTENSOR_INLINE std::array<bytes<A>, 2> quads_of_nibbles(const words<A>& lower, const words<A>& upper) {
  return quads_of_nibbles<A>(detail::isa<A>{}, lower, upper);
}

/// Lane c of batch r and lane r of batch c change places. Cost: 64 / 24 / 8 with AVX-512, AVX2 and 128 bits; else
/// through memory.
template <usable_arch A>
QTENSOR_INLINE void turn_square(std::array<floats<A>, lanes<A>>& rows) {
  turn_square<A>(detail::isa<A>{}, rows);
}

/// Sums of parts of rows, modulo 2^32: lane b of result p is the sum of lanes [p * Words, (p + 1) * Words) of row(b),
/// for `lanes` rows; row(b) is called once for each b < lanes, with b an index_t, in order. Words is a power of two.
/// Cost for all rows, of 2, 4, 8 and 16 words: 48 / 44 / 44 / 45 with AVX-512, 20 / 20 / 21 with AVX2; else through
/// memory, but of whole rows, which are reduce_add_each.
template <usable_arch A, index_t Words, class Row>
QTENSOR_INLINE detail::sums_of_parts<A, Words> sum_parts_each(Row row) {
  if constexpr (Words == lanes<A>)
    return {simd::reduce_add_each<A>(row)};
  else
    return sum_parts_each<A, Words>(detail::isa<A>{}, row);
}

/// to[c * to_stride + r] = from[r * from_stride + c] for r < rows, c < cols. Touches these elements and nothing else.
/// Cost: load_columns and 4 stores for each `lanes` rows by 4 columns; what is left goes one by one.
template <usable_arch A>
void transpose(const float* from, index_t from_stride, index_t rows, index_t cols, float* to, index_t to_stride) {
  constexpr index_t step = lanes<A>;
  const index_t whole_rows = rows / step * step, whole_cols = cols / 4 * 4;
  for (index_t r = 0; r < whole_rows; r += step)
    for (index_t c = 0; c < whole_cols; c += 4) {
      const auto column = simd::load_columns<A>(from + r * from_stride + c, from_stride);
#pragma GCC unroll 4
      for (index_t i = 0; i < 4; ++i) simd::store(to + (c + i) * to_stride + r, column[static_cast<std::size_t>(i)]);
    }
  const auto one_by_one = [&](index_t first_row, index_t first_col) {
    for (index_t r = first_row; r < rows; ++r)
      for (index_t c = first_col; c < cols; ++c) to[c * to_stride + r] = from[r * from_stride + c];
  };
  one_by_one(whole_rows, 0);
  rows = whole_rows;
  one_by_one(0, whole_cols);
}

}  // namespace qtensor::inline QTENSOR_ABI::simd
