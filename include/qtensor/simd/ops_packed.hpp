// Codes of 4 and 6 bits and bf16 numbers as batches: what decoders and packers of narrow codes add to ops.hpp.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstring>
#include <qtensor/core/support.hpp>
#include <qtensor/simd/arch.hpp>
#include <qtensor/simd/ops.hpp>

// Packed codes are little-endian: code i lies in bits [Bits * i, Bits * (i + 1)), bit 0 the lowest of byte 0. What is
// said to be read is read, and no byte more.
namespace qtensor::inline QTENSOR_ABI::simd {

namespace detail {

template <int Bits, class A>
QTENSOR_INLINE bytes<A> spread_codes(any_isa, const std::uint8_t* from) {
  buffer<std::uint8_t, A> code;
  std::uint32_t bits = 0;
  for (index_t i = 0, have = 0; i < code.size; ++i, have -= Bits, bits >>= Bits) {
    for (; have < Bits; have += 8) bits |= static_cast<std::uint32_t>(*from++) << have;
    code[i] = static_cast<std::uint8_t>(bits & low_bits(Bits));
  }
  return code.batch();
}
template <int Bits, class A>
QTENSOR_INLINE bytes<A> packed_codes(any_isa, const bytes<A>& codes) {
  buffer<std::uint8_t, A> code(codes), packed(bytes<A>(std::uint8_t{0}));
  std::uint32_t bits = 0;
  for (index_t i = 0, have = 0, at = 0; i < code.size; ++i) {
    bits |= (code[i] & low_bits(Bits)) << have;
    for (have += Bits; have >= 8; have -= 8, bits >>= 8) packed[at++] = static_cast<std::uint8_t>(bits & 0xffu);
  }
  return packed.batch();
}
template <class A>
QTENSOR_INLINE words<A> nibble_words(any_isa, const std::uint8_t* from) {
  buffer<std::uint32_t, A> code;
  for (index_t i = 0; i < code.size; ++i) code[i] = static_cast<std::uint32_t>(from[i / 2] >> (4 * (i % 2)) & 15);
  return code.batch();
}
template <class A>
QTENSOR_INLINE halves<A> step_exponents(any_isa, const halves<A>& v, const halves<A>& steps) {
  buffer<std::uint16_t, A> x(v), s(steps);
  for (index_t i = 0; i < x.size; ++i) {
    const int magnitude = x[i] & 0x7fff;
    if (magnitude != 0 && magnitude < 0x7f80) x[i] = static_cast<std::uint16_t>(x[i] + s[i]);
  }
  return x.batch();
}
template <class A>
QTENSOR_INLINE halves<A> step_finite_exponents(any_isa, const halves<A>& v, const halves<A>& steps) {
  return step_exponents(isa<A>{}, v, steps);
}

/// How 16 codes of 2 * Bits bytes come out of each 16 bytes of a register, by one multiplication: the two bytes in
/// which a code lies as a word, times the power of two that brings it to the word's upper byte. Even codes are shifted
/// down from there, odd ones stay. place(lane, byte): where a byte of a lane's codes is in it.
template <int Bits, std::size_t Lanes>
struct code_windows {
  alignas(16 * Lanes) std::array<std::uint8_t, 16 * Lanes> even{}, odd{};
  alignas(16 * Lanes) std::array<std::uint16_t, 8 * Lanes> even_times{}, odd_times{};
  static constexpr auto code = static_cast<char>(low_bits(Bits));

  template <class Place>
  constexpr explicit code_windows(Place place) {
    for (std::size_t lane = 0; lane < Lanes; ++lane)
      for (int k = 0; k < 16; ++k) {
        const std::size_t word = 8 * lane + static_cast<std::size_t>(k / 2);
        const int bit = k * Bits, byte = bit / 8, next = std::min(byte + 1, 2 * Bits - 1);
        auto& at = k % 2 == 0 ? even : odd;
        at[2 * word] = static_cast<std::uint8_t>(place(static_cast<int>(lane), byte));
        at[2 * word + 1] = static_cast<std::uint8_t>(place(static_cast<int>(lane), next));
        (k % 2 == 0 ? even_times : odd_times)[word] = static_cast<std::uint16_t>(1 << (8 - bit % 8));
      }
  }
};
/// Where the bytes of eight codes come from that lie in the lower bytes of a word of 64 bits, of so many such words:
/// one behind the other. Bytes behind the last come from nowhere.
template <int Bits, std::size_t Size>
constexpr std::array<std::uint8_t, Size> joined_eights(std::size_t words) {
  constexpr std::size_t each = Bits;
  std::array<std::uint8_t, Size> from{};
  for (std::size_t i = 0; i < Size; ++i)
    from[i] = static_cast<std::uint8_t>(i < words * each ? i / each * 8 + i % each : 0x80);
  return from;
}
/// Of a register whose halves (of 8 bytes, or of 4 where there are fewer) are the first and the last of the bytes.
template <int Bits>
inline constexpr int end_bytes = Bits < 4 ? 4 : 8;
template <int Bits>
inline constexpr code_windows<Bits, 1> windows_of_ends{
    [](int, int byte) { return byte < end_bytes<Bits> ? byte : byte - 2 * Bits + 2 * end_bytes<Bits>; }};

#if QTENSOR_LEVEL_X86 >= 2
QTENSOR_INLINE __m128i load128(const void* from) { return _mm_loadu_si128(static_cast<const __m128i*>(from)); }
/// The first and the last 8 of so many bytes, or 4 of fewer than 8.
template <int Bytes>
QTENSOR_INLINE __m128i ends_of(const std::uint8_t* from) {
  if constexpr (Bytes >= 8) {
    return _mm_unpacklo_epi64(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from)),
                              _mm_loadl_epi64(reinterpret_cast<const __m128i*>(from + Bytes - 8)));
  } else {
    std::int32_t first, last;
    std::memcpy(&first, from, 4);
    std::memcpy(&last, from + Bytes - 4, 4);
    return _mm_insert_epi32(_mm_cvtsi32_si128(first), last, 1);
  }
}
template <int Bits, class A>
QTENSOR_INLINE bytes<A> spread_codes(sse42_isa, const std::uint8_t* from) {
  if constexpr (Bits == 4) {
    const __m128i pairs = _mm_cvtepu8_epi16(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from)));
    return _mm_and_si128(_mm_or_si128(pairs, _mm_slli_epi16(pairs, 4)), _mm_set1_epi8(15));
  } else {
    constexpr auto& windows = windows_of_ends<Bits>;
    const __m128i ends = ends_of<2 * Bits>(from);
    const auto words_at = [&](const auto& at, const auto& times) QTENSOR_INLINE_LAMBDA {
      return _mm_mullo_epi16(_mm_shuffle_epi8(ends, load128(at.data())), load128(times.data()));
    };
    const __m128i even = _mm_srli_epi16(words_at(windows.even, windows.even_times), 8),
                  odd = words_at(windows.odd, windows.odd_times);
    return _mm_and_si128(_mm_blendv_epi8(even, odd, _mm_set1_epi16(-256)), _mm_set1_epi8(windows.code));
  }
}
/// Pairs of clean codes, then fours, then eights are put side by side, and their bytes.
template <int Bits, class A>
QTENSOR_INLINE bytes<A> packed_codes(sse42_isa, const bytes<A>& codes) {
  static constexpr auto joined = joined_eights<Bits, 16>(2);
  const __m128i clean = _mm_and_si128(codes.data, _mm_set1_epi8((1 << Bits) - 1));
  const __m128i pairs = _mm_maddubs_epi16(_mm_set1_epi16(static_cast<short>(1 << (8 + Bits) | 1)), clean);
  const __m128i fours = _mm_madd_epi16(pairs, _mm_set1_epi32(1 << (16 + 2 * Bits) | 1));
  const __m128i lower = _mm_set1_epi64x((1LL << 4 * Bits) - 1), upper = _mm_srli_epi64(fours, 32 - 4 * Bits);
  const __m128i eights = _mm_or_si128(_mm_and_si128(lower, fours), _mm_andnot_si128(lower, upper));
  return _mm_shuffle_epi8(eights, load128(joined.data()));
}
template <class A>
QTENSOR_INLINE halves<A> step_finite_exponents(sse42_isa, const halves<A>& v, const halves<A>& steps) {
  const __m128i zero = _mm_cmpeq_epi16(_mm_slli_epi16(v.data, 1), _mm_setzero_si128());
  return _mm_add_epi16(v.data, _mm_andnot_si128(zero, steps.data));
}
template <class A>
QTENSOR_INLINE halves<A> step_exponents(sse42_isa, const halves<A>& v, const halves<A>& steps) {
  const __m128i magnitude = _mm_and_si128(v.data, _mm_set1_epi16(0x7fff));
  const __m128i finite = _mm_cmpgt_epi16(_mm_set1_epi16(0x7f80), magnitude);
  const __m128i zero = _mm_cmpeq_epi16(magnitude, _mm_setzero_si128());
  return _mm_add_epi16(v.data, _mm_and_si128(_mm_andnot_si128(zero, finite), steps.data));
}
#endif

#if QTENSOR_LEVEL_X86 >= 3
QTENSOR_INLINE __m256i load256(const void* from) { return _mm256_loadu_si256(static_cast<const __m256i*>(from)); }
QTENSOR_INLINE std::array<bytes256, 3> join_sixes(avx2_isa, const bytes256& a, const bytes256& b, const bytes256& c,
                                                  const bytes256& d) {
  // Pairs, then fours: first + 64 * second, first + 4096 * second. Of eight words six are left, and go where they are
  // wanted in one register or two.
  const __m256i threes =
      _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1));
  const auto six = [&](const bytes256& v, __m256i order) QTENSOR_INLINE_LAMBDA {
    const __m256i clean = _mm256_and_si256(v.data, _mm256_set1_epi8(0x3f));
    const __m256i fours =
        _mm256_madd_epi16(_mm256_maddubs_epi16(clean, _mm256_set1_epi16(0x4001)), _mm256_set1_epi32(0x10000001));
    return _mm256_permutevar8x32_epi32(_mm256_shuffle_epi8(fours, threes), order);
  };
  const __m256i x = six(a, _mm256_setr_epi32(0, 1, 2, 4, 5, 6, 7, 7)),
                y = six(b, _mm256_setr_epi32(2, 4, 5, 6, 7, 7, 0, 1)),
                z = six(c, _mm256_setr_epi32(5, 6, 7, 7, 0, 1, 2, 4)),
                w = six(d, _mm256_setr_epi32(7, 7, 0, 1, 2, 4, 5, 6));
  return {bytes256(_mm256_blend_epi32(x, y, 0xc0)), bytes256(_mm256_blend_epi32(y, z, 0xf0)),
          bytes256(_mm256_blend_epi32(z, w, 0xfc))};
}
/// Where the bytes of 32 joined codes come from: of their own half of the register, or of the other one.
template <int Bits>
constexpr std::array<std::uint8_t, 32> halves_of_joined(bool other) {
  constexpr auto all = joined_eights<Bits, 32>(4);
  std::array<std::uint8_t, 32> from{};
  for (std::size_t i = 0; i < 32; ++i)
    from[i] = static_cast<std::uint8_t>(all[i] < 32 && (all[i] / 16 != i / 16) == other ? all[i] % 16 : 0x80);
  return from;
}
/// Both halves hold all bytes where those are fewer than 16, else the first and the last 16.
template <int Bits>
inline constexpr code_windows<Bits, 2> windows_of_halves{[](int half, int byte) {
  return half == 0 ? byte : Bits < 4 ? 2 * Bits + byte : 16 - 2 * Bits + byte;
}};
template <int Bits, class A>
QTENSOR_INLINE bytes<A> spread_codes(avx2_isa, const std::uint8_t* from) {
  if constexpr (Bits == 4) {
    const __m256i pairs = _mm256_cvtepu8_epi16(load128(from));
    return _mm256_and_si256(_mm256_or_si256(pairs, _mm256_slli_epi16(pairs, 4)), _mm256_set1_epi8(15));
  } else if constexpr (Bits != 6) {
    constexpr auto& windows = windows_of_halves<Bits>;
    __m256i packed;
    if constexpr (Bits == 2) {
      long long all;
      std::memcpy(&all, from, sizeof all);
      packed = _mm256_set1_epi64x(all);
    } else if constexpr (Bits == 3) {
      std::int32_t rest;
      std::memcpy(&rest, from + 8, sizeof rest);
      packed = _mm256_broadcastsi128_si256(
          _mm_insert_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from)), rest, 2));
    } else {
      packed = _mm256_inserti128_si256(_mm256_castsi128_si256(load128(from)), load128(from + 4 * Bits - 16), 1);
    }
    const auto words_at = [&](const auto& at, const auto& times) QTENSOR_INLINE_LAMBDA {
      return _mm256_mullo_epi16(_mm256_shuffle_epi8(packed, load256(at.data())), load256(times.data()));
    };
    const __m256i even = _mm256_srli_epi16(words_at(windows.even, windows.even_times), 8),
                  odd = words_at(windows.odd, windows.odd_times);
    return _mm256_and_si256(_mm256_blendv_epi8(even, odd, _mm256_set1_epi16(-256)), _mm256_set1_epi8(windows.code));
  } else {
    const __m128i low = load128(from);
    // Bytes 8 to 23 for the upper half: whole registers, and none beyond. Both 12-bit halves of each 24 bits, then
    // codes.
    const __m128i rest = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + 8));
    const __m256i packed = _mm256_inserti128_si256(_mm256_castsi128_si256(low), rest, 1);
    const __m256i pairs =
        _mm256_shuffle_epi8(packed, _mm256_setr_epi8(0, 1, 1, 2, 3, 4, 4, 5, 6, 7, 7, 8, 9, 10, 10, 11, 4, 5, 5, 6, 7,
                                                     8, 8, 9, 10, 11, 11, 12, 13, 14, 14, 15));
    const __m256i twelve = _mm256_blend_epi16(pairs, _mm256_srli_epi16(pairs, 4), 0xaa);
    return _mm256_or_si256(_mm256_and_si256(twelve, _mm256_set1_epi16(0x3f)),
                           _mm256_and_si256(_mm256_slli_epi16(twelve, 2), _mm256_set1_epi16(0x3f00)));
  }
}
template <int Bits, class A>
QTENSOR_INLINE bytes<A> packed_codes(avx2_isa, const bytes<A>& codes) {
  const __m256i clean = _mm256_and_si256(codes.data, _mm256_set1_epi8((1 << Bits) - 1));
  const __m256i pairs = _mm256_maddubs_epi16(_mm256_set1_epi16(static_cast<short>(1 << (8 + Bits) | 1)), clean);
  const __m256i fours = _mm256_madd_epi16(pairs, _mm256_set1_epi32(1 << (16 + 2 * Bits) | 1));
  const __m256i lower = _mm256_set1_epi64x((1LL << 4 * Bits) - 1), upper = _mm256_srli_epi64(fours, 32 - 4 * Bits);
  const __m256i eights = _mm256_or_si256(_mm256_and_si256(lower, fours), _mm256_andnot_si256(lower, upper));
  // What stays in its half, and what the lower half takes of the upper one.
  static constexpr auto stays = halves_of_joined<Bits>(false), comes = halves_of_joined<Bits>(true);
  return _mm256_or_si256(_mm256_shuffle_epi8(eights, load256(stays.data())),
                         _mm256_shuffle_epi8(_mm256_permute2x128_si256(eights, eights, 1), load256(comes.data())));
}
template <class A>
QTENSOR_INLINE words<A> nibble_words(avx2_isa, const std::uint8_t* from) {
  std::int32_t all;
  std::memcpy(&all, from, sizeof all);
  const __m256i right = _mm256_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28);
  return _mm256_and_si256(_mm256_srlv_epi32(_mm256_set1_epi32(all), right), _mm256_set1_epi32(15));
}
template <class A>
QTENSOR_INLINE halves<A> step_finite_exponents(avx2_isa, const halves<A>& v, const halves<A>& steps) {
  const __m256i zero = _mm256_cmpeq_epi16(_mm256_slli_epi16(v.data, 1), _mm256_setzero_si256());
  return _mm256_add_epi16(v.data, _mm256_andnot_si256(zero, steps.data));
}
template <class A>
QTENSOR_INLINE halves<A> step_exponents(avx2_isa, const halves<A>& v, const halves<A>& steps) {
  const __m256i magnitude = _mm256_and_si256(v.data, _mm256_set1_epi16(0x7fff));
  const __m256i finite = _mm256_cmpgt_epi16(_mm256_set1_epi16(0x7f80), magnitude);
  const __m256i zero = _mm256_cmpeq_epi16(magnitude, _mm256_setzero_si256());
  return _mm256_add_epi16(v.data, _mm256_and_si256(_mm256_andnot_si256(zero, finite), steps.data));
}
#endif

#if QTENSOR_LEVEL_X86 >= 4
#if defined(__AVX512VBMI__)
/// The bytes of every eight codes, which so many bytes hold: to words of eight bytes, and side by side again.
template <int Bits>
struct bytes_of_eights {
  alignas(64) std::array<std::uint8_t, 64> apart{}, together{};
  std::uint64_t begins = 0;  // the bits of a word in which its codes begin
  constexpr bytes_of_eights() {
    constexpr std::size_t each = Bits;
    for (std::size_t i = 0; i < 64; ++i) {
      apart[i] = static_cast<std::uint8_t>(i / 8 * each + std::min(i % 8, each - 1));
      together[i] = static_cast<std::uint8_t>(i < 8 * each ? i / each * 8 + i % each : 0);
    }
    for (int k = 0; k < 8; ++k) begins |= static_cast<std::uint64_t>(k * Bits) << (8 * k);
  }
};
template <int Bits>
inline constexpr bytes_of_eights<Bits> eights_index{};

// Bytes of words without their fourth ones: 64 from the first on, of two registers.
template <int First>
struct threes_from {
  alignas(64) std::array<std::uint8_t, 64> at{};
  constexpr threes_from() {
    for (std::size_t i = 0; i < 64; ++i) {
      const std::size_t k = i + static_cast<std::size_t>(First);
      at[i] = static_cast<std::uint8_t>(k / 3 * 4 + k % 3 - First);
    }
  }
};
template <int First>
inline constexpr threes_from<First> threes_index{};

QTENSOR_INLINE std::array<bytes512, 3> join_sixes(avx512_isa, const bytes512& a, const bytes512& b, const bytes512& c,
                                                  const bytes512& d) {
  // Pairs, then fours: first + 64 * second, first + 4096 * second.
  const auto four = [](const bytes512& v) QTENSOR_INLINE_LAMBDA {
    const __m512i clean = _mm512_and_si512(v.data, _mm512_set1_epi8(0x3f));
    return _mm512_madd_epi16(_mm512_maddubs_epi16(clean, _mm512_set1_epi16(0x4001)), _mm512_set1_epi32(0x10000001));
  };
  const __m512i x = four(a), y = four(b), z = four(c), w = four(d);
  return {bytes512(_mm512_permutex2var_epi8(x, _mm512_load_si512(threes_index<0>.at.data()), y)),
          bytes512(_mm512_permutex2var_epi8(y, _mm512_load_si512(threes_index<64>.at.data()), z)),
          bytes512(_mm512_permutex2var_epi8(z, _mm512_load_si512(threes_index<128>.at.data()), w))};
}
#else
/// The bytes of every 16 codes to a quarter of their own, a word at a time, and from there; and all the way back.
template <int Bits>
struct quarters : code_windows<Bits, 4> {
  alignas(64) std::array<std::uint16_t, 32> words{}, joined{};
  static constexpr auto in_quarter = joined_eights<Bits, 16>(2);
  constexpr quarters() : code_windows<Bits, 4>([](int, int byte) { return byte; }) {
    for (std::size_t i = 0; i < 32; ++i) {
      constexpr std::size_t each = Bits;
      words[i] = static_cast<std::uint16_t>(i / 8 * each + std::min(i % 8, each - 1));
      joined[i] = static_cast<std::uint16_t>(i < 4 * each ? i / each * 8 + i % each : 0);
    }
  }
};
template <int Bits>
inline constexpr quarters<Bits> quarters_index{};
#endif
template <int Bits, class A>
QTENSOR_INLINE bytes<A> packed_codes(avx512_isa, const bytes<A>& codes) {
  const __m512i clean = _mm512_and_si512(codes.data, _mm512_set1_epi8((1 << Bits) - 1));
  const __m512i pairs = _mm512_maddubs_epi16(_mm512_set1_epi16(static_cast<short>(1 << (8 + Bits) | 1)), clean);
  const __m512i fours = _mm512_madd_epi16(pairs, _mm512_set1_epi32(1 << (16 + 2 * Bits) | 1));
  const __m512i upper = _mm512_srli_epi64(fours, 32 - 4 * Bits), lower = _mm512_set1_epi64((1LL << 4 * Bits) - 1);
  const __m512i eights = _mm512_ternarylogic_epi64(lower, fours, upper, 0xca);  // a ? b : c
#if defined(__AVX512VBMI__)
  return _mm512_permutexvar_epi8(_mm512_load_si512(eights_index<Bits>.together.data()), eights);
#else
  constexpr auto& index = quarters_index<Bits>;
  return _mm512_permutexvar_epi16(
      _mm512_load_si512(index.joined.data()),
      _mm512_shuffle_epi8(eights, _mm512_broadcast_i32x4(load128(index.in_quarter.data()))));
#endif
}

template <int Bits, class A>
QTENSOR_INLINE bytes<A> spread_codes(avx512_isa, const std::uint8_t* from) {
  if constexpr (Bits == 4) {
    const __m512i pairs = _mm512_cvtepu8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
    return _mm512_and_si512(_mm512_or_si512(pairs, _mm512_slli_epi16(pairs, 4)), _mm512_set1_epi8(15));
  } else {
#if defined(__AVX512VBMI__)
    constexpr auto& index = eights_index<Bits>;
    const __m512i packed = _mm512_maskz_loadu_epi64((1 << Bits) - 1, from);
    const __m512i eights = _mm512_permutexvar_epi8(_mm512_load_si512(index.apart.data()), packed);
    const __m512i codes = _mm512_multishift_epi64_epi8(_mm512_set1_epi64(static_cast<long long>(index.begins)), eights);
    return _mm512_and_si512(codes, _mm512_set1_epi8((1 << Bits) - 1));
#else
    constexpr auto& windows = quarters_index<Bits>;
    const __m512i packed = _mm512_permutexvar_epi16(_mm512_load_si512(windows.words.data()),
                                                    _mm512_maskz_loadu_epi32((1 << 2 * Bits) - 1, from));
    const auto words_at = [&](const auto& at, const auto& times) QTENSOR_INLINE_LAMBDA {
      return _mm512_mullo_epi16(_mm512_shuffle_epi8(packed, _mm512_load_si512(at.data())),
                                _mm512_load_si512(times.data()));
    };
    const __m512i even = _mm512_srli_epi16(words_at(windows.even, windows.even_times), 8),
                  odd = words_at(windows.odd, windows.odd_times);
    return _mm512_and_si512(_mm512_mask_blend_epi8(0xaaaaaaaaaaaaaaaaull, even, odd), _mm512_set1_epi8(windows.code));
#endif
  }
}
template <class A>
QTENSOR_INLINE words<A> nibble_words(avx512_isa, const std::uint8_t* from) {
  long long all;
  std::memcpy(&all, from, sizeof all);
#if defined(__AVX512VBMI__)
  const __m512i bit = _mm512_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28, 32, 36, 40, 44, 48, 52, 56, 60);
  return _mm512_multishift_epi64_epi8(bit, _mm512_set1_epi64(all));
#else
  const __m512i half = _mm512_permutexvar_epi32(_mm512_setr_epi32(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1),
                                                _mm512_set1_epi64(all));
  return _mm512_srlv_epi32(half, _mm512_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28, 0, 4, 8, 12, 16, 20, 24, 28));
#endif
}
template <class A>
QTENSOR_INLINE halves<A> step_finite_exponents(avx512_isa, const halves<A>& v, const halves<A>& steps) {
  const __mmask32 some = _mm512_test_epi16_mask(v.data, _mm512_set1_epi16(0x7fff));
  return _mm512_mask_add_epi16(v.data, some, v.data, steps.data);
}
template <class A>
QTENSOR_INLINE halves<A> step_exponents(avx512_isa, const halves<A>& v, const halves<A>& steps) {
  const __m512i magnitude = _mm512_and_si512(v.data, _mm512_set1_epi16(0x7fff));
  const __mmask32 counts =
      _mm512_cmplt_epu16_mask(_mm512_sub_epi16(magnitude, _mm512_set1_epi16(1)), _mm512_set1_epi16(0x7f7f));
  return _mm512_mask_add_epi16(v.data, counts, v.data, steps.data);
}
#endif

#if QTENSOR_LEVEL_NEON
template <int Bits, class A>
QTENSOR_INLINE bytes<A> spread_codes(neon_isa, const std::uint8_t* from) {
  if constexpr (Bits == 4) {
    const uint16x8_t pairs = vmovl_u8(vld1_u8(from));
    return vandq_u8(vreinterpretq_u8_u16(vorrq_u16(pairs, vshlq_n_u16(pairs, 4))), vdupq_n_u8(15));
  } else {
    constexpr auto& windows = windows_of_ends<Bits>;
    uint8x16_t ends;
    if constexpr (Bits < 4) {
      std::uint32_t first, last;
      std::memcpy(&first, from, 4);
      std::memcpy(&last, from + 2 * Bits - 4, 4);
      ends = vreinterpretq_u8_u32(vsetq_lane_u32(last, vdupq_n_u32(first), 1));
    } else {
      ends = vcombine_u8(vld1_u8(from), vld1_u8(from + 2 * Bits - 8));
    }
    const auto words_at = [&](const auto& at, const auto& times) QTENSOR_INLINE_LAMBDA {
      return vmulq_u16(vreinterpretq_u16_u8(vqtbl1q_u8(ends, vld1q_u8(at.data()))), vld1q_u16(times.data()));
    };
    const uint16x8_t even = vshrq_n_u16(words_at(windows.even, windows.even_times), 8),
                     odd = words_at(windows.odd, windows.odd_times);
    const uint8x16_t both = vreinterpretq_u8_u16(vbslq_u16(vdupq_n_u16(0xff00), odd, even));
    return vandq_u8(both, vdupq_n_u8(low_bits(Bits)));
  }
}
template <int Bits, class A>
QTENSOR_INLINE bytes<A> packed_codes(neon_isa, const bytes<A>& codes) {
  static constexpr auto joined = joined_eights<Bits, 16>(2);
  const uint16x8_t v = vreinterpretq_u16_u8(codes.data);
  const uint32x4_t pairs = vreinterpretq_u32_u16(vsliq_n_u16(
      vandq_u16(v, vdupq_n_u16(low_bits(Bits))), vandq_u16(vshrq_n_u16(v, 8), vdupq_n_u16(low_bits(Bits))), Bits));
  const uint64x2_t fours = vreinterpretq_u64_u32(vsliq_n_u32(pairs, vshrq_n_u32(pairs, 16), 2 * Bits));
  const uint64x2_t eights = vsliq_n_u64(fours, vshrq_n_u64(fours, 32), 4 * Bits);
  return vqtbl1q_u8(vreinterpretq_u8_u64(eights), vld1q_u8(joined.data()));
}
template <class A>
QTENSOR_INLINE halves<A> step_finite_exponents(neon_isa, const halves<A>& v, const halves<A>& steps) {
  const uint16x8_t some = vtstq_u16(v.data, vdupq_n_u16(0x7fff));
  return vaddq_u16(v.data, vandq_u16(some, steps.data));
}
template <class A>
QTENSOR_INLINE halves<A> step_exponents(neon_isa, const halves<A>& v, const halves<A>& steps) {
  const uint16x8_t magnitude = vandq_u16(v.data, vdupq_n_u16(0x7fff));
  const uint16x8_t counts = vcltq_u16(vsubq_u16(magnitude, vdupq_n_u16(1)), vdupq_n_u16(0x7f7f));
  return vaddq_u16(v.data, vandq_u16(counts, steps.data));
}
#endif

}  // namespace detail

/// Widths of codes for which there are instructions that take them apart.
template <int Bits, class A>
inline constexpr bool spreads_codes = Bits == 4 || Bits == 6 ||
                                      (Bits >= 2 && Bits < 8 && !std::same_as<detail::isa<A>, detail::any_isa>);

/// 4 * lanes codes of `Bits` bits, one per byte, in order. Reads their Bits * lanes / 2 bytes.
/// Cost: 4 with VBMI and for 4 bits; else 9, on AVX2 8 of 6 bits.
template <int Bits, usable_arch A>
requires spreads_codes<Bits, A> QTENSOR_INLINE bytes<A> spread_codes(const std::uint8_t* from) {
  return detail::spread_codes<Bits, A>(detail::isa<A>{}, from);
}

/// Where there are instructions for packed_codes.
template <class A>
inline constexpr bool packs_in_registers = !std::same_as<detail::isa<A>, detail::any_isa>;
/// The lower `Bits` bits (2 to 7) of 4 * lanes bytes side by side, in the first Bits * lanes / 2 bytes; others are
/// unspecified. Cost: 7, 8 / 11 / 8 / 8; 6 with VBMI.
template <int Bits, usable_arch A>
requires(Bits >= 2 && Bits < 8) QTENSOR_INLINE bytes<A> packed_codes(const bytes<A>& codes) {
  return detail::packed_codes<Bits, A>(detail::isa<A>{}, codes);
}

/// `lanes` codes of 4 bits, each in the low bits of a word; the other bits are unspecified. Reads lanes / 2 bytes.
/// Cost: 2 / 3 / loop / loop.
template <usable_arch A>
QTENSOR_INLINE words<A> nibble_words(const std::uint8_t* from) {
  return detail::nibble_words<A>(detail::isa<A>{}, from);
}

/// Adds `steps`, multiples of 128 modulo 2^16, to the exponent fields of bf16 numbers: times powers of two, exact where
/// results are normal. Zeros, infinities and NaN stay what they are. Cost: 4 / 6 / 6 / 5.
template <usable_arch A>
QTENSOR_INLINE halves<A> step_exponents(const halves<A>& v, const halves<A>& steps) {
  return detail::step_exponents<A>(detail::isa<A>{}, v, steps);
}
/// The same where all numbers are finite. Cost: 2 / 4 / 4 / 3.
template <usable_arch A>
QTENSOR_INLINE halves<A> step_finite_exponents(const halves<A>& v, const halves<A>& steps) {
  return detail::step_finite_exponents<A>(detail::isa<A>{}, v, steps);
}

/// The lower 6 bits of the bytes of four batches side by side, in order. Only where there are instructions for it: 15
/// with AVX-512 VBMI, 23 on AVX2.
template <class A>
concept has_join_sixes = usable_arch<A> && requires(const bytes<A>& v) {
  join_sixes(detail::isa<A>{}, v, v, v, v);
};
template <has_join_sixes A>
QTENSOR_INLINE std::array<bytes<A>, 3> join_sixes(const bytes<A>& a, const bytes<A>& b, const bytes<A>& c,
                                                  const bytes<A>& d) {
  return join_sixes(detail::isa<A>{}, a, b, c, d);
}

}  // namespace qtensor::inline QTENSOR_ABI::simd
