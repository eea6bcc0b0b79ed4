// The vector operations kernels are written with: one meaning on every architecture, whatever the compiler flags.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <qtensor/core/rounded.hpp>
#include <qtensor/core/support.hpp>
#include <qtensor/simd/arch.hpp>
#include <qtensor/simd/ops_avx512.hpp>
#include <qtensor/simd/ops_generic.hpp>
#include <qtensor/simd/ops_neon.hpp>
#include <qtensor/simd/ops_portable.hpp>
#include <qtensor/simd/ops_x86.hpp>

// Batches are xsimd's: + - * & | ^ ~ on any lanes, comparisons, and on 32-bit integers << >> by a constant (>> of ints
// keeps the sign). Everything else comes from here, division too: xsimd 8.1 only approximates it on Arm. Some names are
// also xsimd's (select, store, any, ...): call ours qualified, simd::store, or the compiler may see two.
// Costs are instructions on AVX-512 / AVX2 / SSE4.2 / NEON, "loop" where lanes go through memory one by one. "In order"
// means that lane i of the first batch is element i, and further batches follow. Rounding is to nearest even: the mode
// of the CPU must be the default one.
namespace qtensor::inline QTENSOR_ABI::simd {

/// One byte of any signedness: codes are bytes, int8 codes included.
template <class T>
concept byte_sized = sizeof(T) == 1 && std::integral<T>;

// ---- Bits, masks, order -------------------------------------------------------------------------------------------

/// The same bits as lanes of another type. Cost: 0.
template <class To, class From, usable_arch A>
QTENSOR_INLINE xsimd::batch<To, A> bits_as(const xsimd::batch<From, A>& x) {
  return bits_as<To>(detail::isa<A>{}, x);
}

/// Lane i: mask ? a : b. Cost: 1, SSE4.2 1-3.
template <class T, class A>
requires usable_arch<A> QTENSOR_INLINE xsimd::batch<T, A> select(const xsimd::batch_bool<T, A>& mask,
                                                                 const xsimd::batch<T, A>& a,
                                                                 const xsimd::batch<T, A>& b) {
  return select(detail::isa<A>{}, mask, a, b);
}

/// A mask of 32-bit lanes for lanes of another 32-bit type. Cost: 0.
template <class To, class From, usable_arch A>
requires(sizeof(To) == 4 &&
         sizeof(From) == 4) QTENSOR_INLINE xsimd::batch_bool<To, A> mask_as(const xsimd::batch_bool<From, A>& mask) {
  if constexpr (std::same_as<To, From>) {
    return mask;
  } else {
    return mask_as<To>(detail::isa<A>{}, mask);
  }
}

/// a < b for words below 2^31, magnitudes of floats for example. (`a < b` is right for all words, but slow with xsimd
/// 8.1.) Cost: 1.
template <usable_arch A>
QTENSOR_INLINE xsimd::batch_bool<std::uint32_t, A> below(const words<A>& a, const words<A>& b) {
  return below(detail::isa<A>{}, a, b);
}

/// Bit i is lane i of a mask of 32-bit lanes; other bits 0. Cost: 1, NEON 3.
template <class T, usable_arch A>
requires(sizeof(T) == 4) QTENSOR_INLINE std::uint32_t mask_bits(const xsimd::batch_bool<T, A>& mask) {
  return mask_bits(detail::isa<A>{}, simd::mask_as<std::uint32_t>(mask));
}
template <class T, class A>
requires(usable_arch<A> && sizeof(T) == 4) QTENSOR_INLINE bool any(const xsimd::batch_bool<T, A>& mask) {
  return simd::mask_bits(mask) != 0;
}
template <class T, class A>
requires(usable_arch<A> && sizeof(T) == 4) QTENSOR_INLINE bool all(const xsimd::batch_bool<T, A>& mask) {
  return simd::mask_bits(mask) == low_bits(static_cast<int>(lanes<A>));
}

/// Lane i: a < b ? a : b, exactly so: b where either is NaN or both are zeros. Any lane type but 64-bit. Cost: 1, NEON
/// floats 2. (xsimd::min leaves NaN and -0 to the instruction set.)
template <class T, class A>
requires usable_arch<A> QTENSOR_INLINE xsimd::batch<T, A> min(const xsimd::batch<T, A>& a,
                                                              const xsimd::batch<T, A>& b) {
  return min(detail::isa<A>{}, a, b);
}
/// Lane i: a > b ? a : b, exactly so: b where either is NaN or both are zeros. Cost: as min.
template <class T, class A>
requires usable_arch<A> QTENSOR_INLINE xsimd::batch<T, A> max(const xsimd::batch<T, A>& a,
                                                              const xsimd::batch<T, A>& b) {
  return max(detail::isa<A>{}, a, b);
}

/// Lane i: a + b, at most 255; a - b, at least 0. Cost: 1.
template <usable_arch A>
QTENSOR_INLINE bytes<A> add_saturated(const bytes<A>& a, const bytes<A>& b) {
  return add_saturated(detail::isa<A>{}, a, b);
}
template <usable_arch A>
QTENSOR_INLINE bytes<A> sub_saturated(const bytes<A>& a, const bytes<A>& b) {
  return sub_saturated(detail::isa<A>{}, a, b);
}

/// The largest lane. Cost: 9 / 7 / 5 / 2.
template <usable_arch A>
QTENSOR_INLINE std::uint32_t reduce_max(const words<A>& v) {
  return reduce_max(detail::isa<A>{}, v);
}

/// The sum of all lanes, modulo 2^32. Cost: 9 / 7 / 5 / 2.
template <usable_arch A>
QTENSOR_INLINE std::uint32_t reduce_add(const words<A>& v) {
  return reduce_add(detail::isa<A>{}, v);
}

/// Lane b of the result is the largest lane of row(b), for `lanes` rows; row(b) is called once for each b < lanes, with
/// b an index_t, in order. Cost for all rows together: 45 / 21 / 9 / 3.
template <usable_arch A, class Row>
QTENSOR_INLINE words<A> reduce_max_each(Row row) {
  return reduce_each<A>(detail::isa<A>{}, detail::lane_max{}, row);
}
/// The same with the sum of each row's lanes, modulo 2^32.
template <usable_arch A, class Row>
QTENSOR_INLINE words<A> reduce_add_each(Row row) {
  return reduce_each<A>(detail::isa<A>{}, detail::lane_sum{}, row);
}

/// The same of 16-bit lanes. Lane b of the result is the largest lane of block b, for `lanes` blocks of a row each
/// (BlocksOfRow 1), or of half a row (2); row(k) is called once for each row. Cost for all: 49, 29 / 24 / 12 / 5, half
/// rows elsewhere through memory.
template <usable_arch A, int BlocksOfRow = 1, class Row>
requires(BlocksOfRow == 1 || BlocksOfRow == 2) QTENSOR_INLINE words<A> reduce_max_each_half(Row row) {
  return reduce_max_each_half<A, BlocksOfRow>(detail::isa<A>{}, row);
}

// ---- Arithmetic whose roundings are decided here --------------------------------------------------------------------

/// x, with its origin hidden: a product that passes through is rounded before anything is added to it. Cost: 0.
template <usable_arch A>
QTENSOR_INLINE floats<A> rounded(const floats<A>& x) {
  return rounded(detail::isa<A>{}, x);
}

/// One IEEE operation each: no compiler merges them with their neighbours. Cost: 1 each.
template <usable_arch A>
QTENSOR_INLINE floats<A> mul(const floats<A>& a, const floats<A>& b) {
  return simd::rounded(a * b);
}
template <usable_arch A>
QTENSOR_INLINE floats<A> add(const floats<A>& a, const floats<A>& b) {
  return simd::rounded(a) + simd::rounded(b);
}
template <usable_arch A>
QTENSOR_INLINE floats<A> sub(const floats<A>& a, const floats<A>& b) {
  return simd::rounded(a) - simd::rounded(b);
}
template <usable_arch A>
QTENSOR_INLINE floats<A> div(const floats<A>& a, const floats<A>& b) {
  return div(detail::isa<A>{}, a, b);
}

/// a * b + c with one rounding, also where there is no such instruction (xsimd::fma rounds twice there). A NaN result
/// has no particular payload. Cost: 1 / 1 / 50 / 1.
template <class A>
requires usable_arch<A> QTENSOR_INLINE floats<A> fma(const floats<A>& a, const floats<A>& b, const floats<A>& c) {
  return fma(detail::isa<A>{}, a, b, c);
}

/// x rounded to an integer, ties to even. |x| < 2^31; other lanes, NaN included, are unspecified. Cost: 1.
template <usable_arch A>
QTENSOR_INLINE ints<A> round_to_int(const floats<A>& x) {
  return round_to_int(detail::isa<A>{}, x);
}
/// The same; x outside [-2^31, 2^31) and NaN give -2^31, so that one comparison finds them. Cost: 1, NEON 4.
template <usable_arch A>
QTENSOR_INLINE ints<A> round_to_int_checked(const floats<A>& x) {
  return round_to_int_checked(detail::isa<A>{}, x);
}
/// x rounded toward zero. |x| < 2^31; other lanes are unspecified. Cost: 1.
template <usable_arch A>
QTENSOR_INLINE ints<A> truncate_to_int(const floats<A>& x) {
  return truncate_to_int(detail::isa<A>{}, x);
}
/// The nearest float, ties to even; exact up to 2^24. Cost: 1.
template <usable_arch A>
QTENSOR_INLINE floats<A> to_float(const ints<A>& x) {
  return to_float(detail::isa<A>{}, x);
}

/// The nearest integer as a float, ties to even; keeps the sign of zero, infinities and NaN (quieted). Cost: 1.
template <usable_arch A>
QTENSOR_INLINE floats<A> nearest(const floats<A>& x) {
  return nearest(detail::isa<A>{}, x);
}
/// The largest integer not above x, as a float. Cost: 1.
template <class A>
requires usable_arch<A> QTENSOR_INLINE floats<A> floor(const xsimd::batch<float, A>& x) {
  return floor(detail::isa<A>{}, x);
}
/// x without its fraction, as a float. Cost: 1.
template <usable_arch A>
QTENSOR_INLINE floats<A> truncate(const floats<A>& x) {
  return truncate(detail::isa<A>{}, x);
}

/// Lane i shifted by count's lane i, 0 <= count <= 31; zeros come in. Cost: 1 / 1 / loop / 1-2.
template <usable_arch A>
QTENSOR_INLINE words<A> shift_left(const words<A>& v, const words<A>& count) {
  return shift_left(detail::isa<A>{}, v, count);
}
template <usable_arch A>
QTENSOR_INLINE words<A> shift_right(const words<A>& v, const words<A>& count) {
  return shift_right(detail::isa<A>{}, v, count);
}
/// The top bit of each word behind the others: numbers in the order of their magnitudes. Cost: 1 / 3 / 3 / 3.
template <usable_arch A>
QTENSOR_INLINE words<A> sign_last(const words<A>& v) {
  return sign_last(detail::isa<A>{}, v);
}
/// The last bit set in words of which another one but the sign is: numbers that are not zero. Cost: 3, AVX-512 2.
template <usable_arch A>
QTENSOR_INLINE words<A> with_last_bit(const words<A>& v) {
  return with_last_bit(detail::isa<A>{}, v);
}

/// The lower and the upper halves of a's lanes times b. Cost: 7 / 7 / 7 / 4.
template <usable_arch A>
QTENSOR_INLINE std::array<words<A>, 2> multiply_wide(const words<A>& a, std::uint32_t b) {
  return multiply_wide(detail::isa<A>{}, a, b);
}

// ---- Memory: any alignment; nothing outside the stated elements is touched ------------------------------------------

/// A whole batch: lanes elements of 32 bits, 2 * lanes of 16, 4 * lanes of 8. Cost: 1.
template <usable_arch A, class T>
QTENSOR_INLINE xsimd::batch<T, A> load(const T* from) {
  return xsimd::batch<T, A>::load_unaligned(from);
}
template <class T, usable_arch A>
QTENSOR_INLINE void store(T* to, const xsimd::batch<T, A>& v) {
  v.store_unaligned(to);
}

/// from[0, n) in the first lanes, `fill` in the others; 0 <= n <= size. Cost: 3 / 5 (32-bit lanes) / loop / loop.
template <usable_arch A, class T>
QTENSOR_INLINE xsimd::batch<T, A> load_n(const T* from, index_t n, std::type_identity_t<T> fill = T(0)) {
  return load_n<A>(detail::isa<A>{}, from, n, fill);
}
/// The first n lanes to to[0, n); 0 <= n <= size. Cost: 3 / 3 (32-bit lanes) / loop / loop.
template <class T, usable_arch A>
QTENSOR_INLINE void store_n(T* to, index_t n, const xsimd::batch<T, A>& v) {
  store_n(detail::isa<A>{}, to, n, v);
}

/// Each of so many equal parts, 2 or 4, to a place of its own, `apart` bytes from one to the next. Cost: 1 a part
/// (x86), 2.
template <index_t Parts, usable_arch A>
requires(Parts == 2 || Parts == 4) QTENSOR_INLINE void store_parts(std::uint8_t* to, index_t apart, const bytes<A>& v) {
  store_parts<Parts>(detail::isa<A>{}, to, apart, v);
}

/// 16 bytes each of lanes / 4 places, `apart` bytes from one to the next. Cost: 4 / 2 / 1 / 1.
template <usable_arch A>
QTENSOR_INLINE bytes<A> load_quarters(const void* from, index_t apart) {
  return load_quarters<A>(detail::isa<A>{}, static_cast<const std::uint8_t*>(from), apart);
}

/// `lanes` narrow elements, each in its own 32-bit lane; the _n forms read n <= lanes of them and give 0 elsewhere.
/// Cost: 1-2, the _n forms 3 with AVX-512, else loop.
template <usable_arch A, byte_sized Byte>
QTENSOR_INLINE words<A> widen_u8(const Byte* from) {
  return widen<A, std::uint32_t>(detail::isa<A>{}, reinterpret_cast<const std::uint8_t*>(from));
}
template <usable_arch A, byte_sized Byte>
QTENSOR_INLINE words<A> widen_u8_n(const Byte* from, index_t n) {
  return widen_n<A, std::uint32_t>(detail::isa<A>{}, reinterpret_cast<const std::uint8_t*>(from), n);
}
template <usable_arch A, byte_sized Byte>
QTENSOR_INLINE ints<A> widen_i8(const Byte* from) {
  return widen<A, std::int32_t>(detail::isa<A>{}, reinterpret_cast<const std::int8_t*>(from));
}
template <usable_arch A, byte_sized Byte>
QTENSOR_INLINE ints<A> widen_i8_n(const Byte* from, index_t n) {
  return widen_n<A, std::int32_t>(detail::isa<A>{}, reinterpret_cast<const std::int8_t*>(from), n);
}
/// Sets that take numbers apart into even and odd ones for less than in order.
template <class A>
concept pairing_arch = std::same_as<A, sse42_arch> || std::same_as<A, avx2_arch>;
/// 2 * lanes bytes, the even ones and the odd ones of them. Cost: 4, unsigned 3.
template <bool Signed, pairing_arch A, byte_sized Byte>
QTENSOR_INLINE std::array<ints<A>, 2> widen_pairs(const Byte* from) {
  return widen_pairs<Signed>(detail::isa<A>{}, reinterpret_cast<const std::uint8_t*>(from));
}
template <usable_arch A>
QTENSOR_INLINE words<A> widen_u16(const std::uint16_t* from) {
  return widen<A, std::uint32_t>(detail::isa<A>{}, from);
}
template <usable_arch A>
QTENSOR_INLINE words<A> widen_u16_n(const std::uint16_t* from, index_t n) {
  return widen_n<A, std::uint32_t>(detail::isa<A>{}, from, n);
}
template <usable_arch A>
QTENSOR_INLINE ints<A> widen_i16(const std::int16_t* from) {
  return widen<A, std::int32_t>(detail::isa<A>{}, from);
}
template <usable_arch A>
QTENSOR_INLINE ints<A> widen_i16_n(const std::int16_t* from, index_t n) {
  return widen_n<A, std::int32_t>(detail::isa<A>{}, from, n);
}

/// Asks for the cache line of p; p may be any address, also past the end of an array.
QTENSOR_INLINE void prefetch(const void* p) { __builtin_prefetch(p, 0, 3); }
/// The same as far as the second-level cache.
QTENSOR_INLINE void prefetch_second_level(const void* p) { __builtin_prefetch(p, 0, 2); }
/// Asks for the cache line of p to write to it.
QTENSOR_INLINE void prefetch_to_write(void* p) { __builtin_prefetch(p, 1, 3); }

/// Whether the CPU is one of Intel's, which take requests otherwise than AMD's.
QTENSOR_INLINE bool is_intel() {
#if defined(__x86_64__)
  return __builtin_cpu_is("intel");
#else
  return false;
#endif
}
/// Whether it is a Zen 4: the first of AMD's with AVX-512, of the same family as Zen 3.
QTENSOR_INLINE bool is_zen4() {
#if defined(__x86_64__)
  return __builtin_cpu_is("amdfam19h") && __builtin_cpu_supports("avx512f");
#else
  return false;
#endif
}

/// Stores past the caches where the CPU can; `to` is aligned to the batch. Call stream_fence() after the last one.
template <class T, usable_arch A>
QTENSOR_INLINE void stream(T* to, const xsimd::batch<T, A>& v) {
  stream(detail::isa<A>{}, to, v);
}
/// Past the caches or not, as the caller finds out.
template <class T, usable_arch A>
QTENSOR_INLINE void put(T* to, const xsimd::batch<T, A>& v, bool past_caches) {
  if (past_caches) [[unlikely]]
    simd::stream(to, v);
  else
    simd::store(to, v);
}
/// Orders the streaming stores of this thread before everything that follows.
template <usable_arch A>
QTENSOR_INLINE void stream_fence() {
  stream_fence(detail::isa<A>{});
}

// ---- bf16 and f16 as raw 16 bits -----------------------------------------------------------------------------------

/// The floats of 16-bit words: bf16 keeps every bit; f16 is exact, subnormals included, its NaN quieted. Upper halves
/// of the words must be 0. Cost: bf16 1; f16 2 / 4 / 15 / 2.
template <usable_arch A>
QTENSOR_INLINE floats<A> float_of_bf16(const words<A>& h) {
  return simd::bits_as<float>(h << 16);
}
template <usable_arch A>
QTENSOR_INLINE floats<A> float_of_f16(const words<A>& h) {
  return widen_f16(detail::isa<A>{}, h);
}

/// The floats of 2 * lanes numbers of bf16: those at even places, then those at odd ones, which takes no shuffle. Codes
/// of four batches of such floats come in that order, too; interleave_pairs puts their bytes right. Cost: 2, 1 without
/// VBMI 2.
///   split_bf16(h, a, b), split_bf16(i, c, d);   interleave_pairs(narrow_i8(.. a, b, c, d ..))   is in order.
template <usable_arch A>
QTENSOR_INLINE void split_bf16(const halves<A>& h, floats<A>& even, floats<A>& odd) {
  const words<A> both = simd::bits_as<std::uint32_t>(h);
  even = simd::bits_as<float>(both << 16);
  odd = simd::bits_as<float>(both & words<A>(0xffff0000u));
}
/// Quarters 0 and 1 of v byte by byte, then quarters 2 and 3.
template <usable_arch A>
QTENSOR_INLINE bytes<A> interleave_pairs(const bytes<A>& v) {
  return interleave_pairs(detail::isa<A>{}, v);
}

/// x rounded to bf16 or f16, ties to even; overflow gives infinity, NaN stays NaN (quieted, upper payload kept), in
/// order over both batches. Subnormals are right whatever the CPU's own conversion does.
/// Cost: bf16 4 with AVX512-BF16, else 19-22; f16 3 / 3 / 40 / 2.
template <usable_arch A>
QTENSOR_INLINE halves<A> narrow_bf16(const floats<A>& a, const floats<A>& b) {
  return narrow_bf16(detail::isa<A>{}, a, b);
}
/// narrow_bf16 of plain numbers: with AVX512-BF16 none that is subnormal, elsewhere no NaN with more than its quiet bit
/// in the fraction. Cost: 1 with AVX512-BF16, else 11-12.
template <usable_arch A>
QTENSOR_INLINE halves<A> narrow_bf16_plain(const floats<A>& a, const floats<A>& b) {
  return narrow_bf16_plain(detail::isa<A>{}, a, b);
}
/// The same of the even and the odd ones of 2 * lanes numbers, in order. Untied: none of them is halfway between
/// two bf16 numbers. Cost: 9, untied 4.
template <bool Untied, pairing_arch A>
QTENSOR_INLINE halves<A> narrow_bf16_pairs(const floats<A>& even, const floats<A>& odd) {
  return narrow_bf16_pairs<Untied>(detail::isa<A>{}, even, odd);
}
/// Whether subnormal numbers are those that are not plain.
template <usable_arch A>
inline constexpr bool plain_is_normal = features::bf16&& std::same_as<A, avx512_arch>;
template <usable_arch A>
QTENSOR_INLINE halves<A> narrow_f16(const floats<A>& a, const floats<A>& b) {
  return narrow_f16(detail::isa<A>{}, a, b);
}
/// The same numbers as floats: x rounded to bf16 or f16. Cost: bf16 10; f16 2 / 2 / 30 / 2.
template <usable_arch A>
QTENSOR_INLINE floats<A> rounded_to_bf16(const floats<A>& x) {
  return simd::float_of_bf16(bf16_bits(detail::isa<A>{}, x));
}
/// rounded_to_bf16 of numbers whose NaNs have bits in their upper half and none in the lower one. Cost: 5.
template <usable_arch A>
QTENSOR_INLINE floats<A> rounded_to_bf16_plain(const floats<A>& x) {
  return rounded_to_bf16_plain(detail::isa<A>{}, x);
}
template <usable_arch A>
QTENSOR_INLINE floats<A> rounded_to_f16(const floats<A>& x) {
  return rounded_to_f16(detail::isa<A>{}, x);
}

/// Whether an architecture has 32 registers: more than four batches and the constants of a kernel take.
template <class A>
inline constexpr bool has_many_registers = std::same_as<A, avx512_arch> || std::same_as<A, neon_arch>;

/// Four batches as `From` reads them; in registers where there are many: g++ would read memory again for each use.
template <class From, usable_arch A>
QTENSOR_INLINE void load_in_order(const typename From::type* p, std::array<floats<A>, 4>& v) {
#pragma GCC unroll 4
  for (std::size_t k = 0; k < 4; ++k) {
    v[k] = From::template load<A>(p + static_cast<index_t>(k) * lanes<A>);
    if constexpr (has_many_registers<A>) v[k] = simd::rounded(v[k]);
  }
}

/// What a kernel reads: `type` is the element in memory, load and load_n (zeros beyond n) give floats in order.
/// load_four gives four batches in an order of its own, which in_order undoes in codes that were computed from them;
/// into an array that is there, for what is returned g++ keeps in memory.
/// Cost of load: f32 1, bf16 2, f16 1 / 1 / 17 / 2; of load_four 4, bf16 6, and in_order for that.
struct from_f32 {
  using type = float;
  template <usable_arch A>
  static QTENSOR_INLINE void load_four(const float* p, std::array<floats<A>, 4>& v) {
    load_in_order<from_f32, A>(p, v);
  }
  template <usable_arch A>
  static QTENSOR_INLINE bytes<A> in_order(const bytes<A>& codes) {
    return codes;
  }
  template <usable_arch A>
  static QTENSOR_INLINE floats<A> load(const float* p) {
    return simd::load<A>(p);
  }
  template <usable_arch A>
  static QTENSOR_INLINE floats<A> load_n(const float* p, index_t n) {
    return simd::load_n<A>(p, n);
  }
};
struct from_bf16 {
  using type = std::uint16_t;
  template <usable_arch A>
  static QTENSOR_INLINE void load_four(const std::uint16_t* p, std::array<floats<A>, 4>& v) {
    simd::split_bf16(simd::load<A>(p), v[0], v[1]);
    simd::split_bf16(simd::load<A>(p + 2 * lanes<A>), v[2], v[3]);
  }
  template <usable_arch A>
  static QTENSOR_INLINE bytes<A> in_order(const bytes<A>& codes) {
    return simd::interleave_pairs(codes);
  }
  /// The floats of words below 2^16.
  template <usable_arch A>
  static QTENSOR_INLINE floats<A> widen(const words<A>& h) {
    return float_of_bf16(h);
  }
  template <usable_arch A>
  static QTENSOR_INLINE floats<A> load(const std::uint16_t* p) {
    return float_of_bf16(simd::widen_u16<A>(p));
  }
  template <usable_arch A>
  static QTENSOR_INLINE floats<A> load_n(const std::uint16_t* p, index_t n) {
    return float_of_bf16(simd::widen_u16_n<A>(p, n));
  }
};
struct from_f16 {
  using type = std::uint16_t;
  template <usable_arch A>
  static QTENSOR_INLINE void load_four(const std::uint16_t* p, std::array<floats<A>, 4>& v) {
    load_in_order<from_f16, A>(p, v);
  }
  template <usable_arch A>
  static QTENSOR_INLINE bytes<A> in_order(const bytes<A>& codes) {
    return codes;
  }
  template <usable_arch A>
  static QTENSOR_INLINE floats<A> widen(const words<A>& h) {
    return float_of_f16(h);
  }
  template <usable_arch A>
  static QTENSOR_INLINE floats<A> load(const std::uint16_t* p) {
    return load_f16<A>(detail::isa<A>{}, p);
  }
  template <usable_arch A>
  static QTENSOR_INLINE floats<A> load_n(const std::uint16_t* p, index_t n) {
    return float_of_f16(simd::widen_u16_n<A>(p, n));
  }
};
template <class S>
concept float_source = std::same_as<S, from_f32> || std::same_as<S, from_bf16> || std::same_as<S, from_f16>;

// ---- Narrowing, in order over all batches --------------------------------------------------------------------------

/// Four batches to one of bytes. Store with store(to, ...), tails with store_n(to, n, ...). Cost: 4 / 4 / 3 / 6.
///   narrow_i8  saturates to [-128, 127] (two's complement bytes)
///   narrow_u8  saturates to [0, 255]
template <usable_arch A>
QTENSOR_INLINE bytes<A> narrow_i8(const ints<A>& a, const ints<A>& b, const ints<A>& c, const ints<A>& d) {
  return narrow_i8(detail::isa<A>{}, a, b, c, d);
}
template <usable_arch A>
QTENSOR_INLINE bytes<A> narrow_u8(const ints<A>& a, const ints<A>& b, const ints<A>& c, const ints<A>& d) {
  return narrow_u8(detail::isa<A>{}, a, b, c, d);
}
/// The low byte of every word. Words known to be <= 255: narrow_u8 is cheaper. Cost: 3 with VBMI, else 8 / 8 / 7 / 3.
template <usable_arch A>
QTENSOR_INLINE bytes<A> low_bytes(const words<A>& a, const words<A>& b, const words<A>& c, const words<A>& d) {
  return low_bytes(detail::isa<A>{}, a, b, c, d);
}
/// The high half of every word. Cost: 1 / 6 / 5 / 1-3.
template <usable_arch A>
QTENSOR_INLINE halves<A> upper_halves(const words<A>& a, const words<A>& b) {
  return upper_halves(detail::isa<A>{}, a, b);
}

/// Codes of a format that runs as `steps` say, signs on top but for zero, one per byte; NaN gives anything.
/// Cost: 12 for each batch of halves and 12 with AVX-512, else 48.
using detail::binade_steps;
template <usable_arch A>
QTENSOR_INLINE bytes<A> binade_codes(const std::array<floats<A>, 4>& q, const binade_steps& steps) {
  return detail::binade_codes<A>(detail::isa<A>{}, q, steps);
}

/// Whether one of four batches holds a NaN. Cost: 3 / 4 / 12 / 12.
template <usable_arch A>
QTENSOR_INLINE bool any_nan(const floats<A>& a, const floats<A>& b, const floats<A>& c, const floats<A>& d) {
  return any_nan(detail::isa<A>{}, a, b, c, d);
}

using detail::minifloat_grid;

/// The low half of every word. Cost: 1 / 4 / 3 / 1.
template <usable_arch A>
QTENSOR_INLINE halves<A> low_halves(const words<A>& a, const words<A>& b) {
  return low_halves(detail::isa<A>{}, a, b);
}

// ---- Tables --------------------------------------------------------------------------------------------------------

/// 16 floats looked up by the low 4 bits of each word. Keeps (a copy of, or a pointer to) table[0, 16): it must outlive
/// this. Cost of a look-up: 1 / 4 / loop / 4.
template <usable_arch A>
struct float_table16 {
  explicit float_table16(const float* table) : body(table) {}
  QTENSOR_INLINE floats<A> operator()(const words<A>& index) const { return body(index); }
  detail::float_table16<detail::isa<A>, A> body;
};

/// Sixteen 16-bit numbers looked up by the codes that nibbles_for_tables gives, where there are instructions for it.
/// Cost: AVX2 2, a look-up of 16 codes 3.
template <usable_arch A>
using half_table16 = detail::half_table16<detail::isa<A>, A>;
template <class A>
concept has_half_tables = usable_arch<A> && requires(const halves<A>& results) {
  half_table16<A>(results);
};
/// 4 * lanes codes of 4 bits, the lower nibble of a byte first: those of 2 * lanes numbers each. Cost: 5.
template <usable_arch A>
requires has_half_tables<A> QTENSOR_INLINE std::array < bytes<A>,
2 > nibbles_for_tables(const std::uint8_t* from) { return nibbles_for_tables(detail::isa<A>{}, from); }

/// `Entries` bytes (16, 32, 64, 128 or 256) looked up by bytes below Entries; larger indices give unspecified bytes,
/// but with 16 entries those of 128 and more give 0, and of smaller ones the lower 4 bits count (NEON: 0). table must
/// outlive this. Cost: 16 entries 1; 128 entries 1 with VBMI, else 31 / 22 / 22 / 5, of which look-ups at one index
/// share 7.
template <usable_arch A, int Entries>
requires(Entries == 16 || Entries == 32 || Entries == 64 || Entries == 128 || Entries == 256) struct byte_table {
  explicit byte_table(const std::uint8_t* table) : body(table) {}
  QTENSOR_INLINE bytes<A> operator()(const bytes<A>& index) const { return body(index); }
  detail::byte_table<detail::isa<A>, A, Entries> body;
};

/// table[index], one load for each lane; the table may have any size below 2^31. Cost: gather / gather / loop / loop.
template <usable_arch A>
QTENSOR_INLINE floats<A> lookup(const float* table, const words<A>& index) {
  return lookup(detail::isa<A>{}, table, index);
}

// Floats whose lower 16 bits are 0 (every FP8, FP6, FP4 and bf16 value) as two planes of bytes: decode looks both bytes
// up for 4 * lanes codes at once, then interleaves. Wide registers interleave within 128 bits, so the codes are
// reordered first; look-ups and bit operations on bytes do not mind.
//   v = order_for_floats(codes);  floats_from_planes(table_high(v), table_low(v))   is in order.

/// The order of codes that floats_from_planes (halves_from_planes) expects. Cost: 1 / 1 / 0 / 0.
template <usable_arch A>
QTENSOR_INLINE bytes<A> order_for_floats(const bytes<A>& v) {
  return order_for_floats(detail::isa<A>{}, v);
}
template <usable_arch A>
QTENSOR_INLINE bytes<A> order_for_halves(const bytes<A>& v) {
  return order_for_halves(detail::isa<A>{}, v);
}
/// high << 24 | low << 16 as floats; both in the order of order_for_floats. Cost: 6.
template <usable_arch A>
QTENSOR_INLINE std::array<floats<A>, 4> floats_from_planes(const bytes<A>& high, const bytes<A>& low) {
  return floats_from_planes(detail::isa<A>{}, high, low);
}
/// high << 8 | low; both in the order of order_for_halves. Cost: 2.
template <usable_arch A>
QTENSOR_INLINE std::array<halves<A>, 2> halves_from_planes(const bytes<A>& high, const bytes<A>& low) {
  return halves_from_planes(detail::isa<A>{}, high, low);
}

// ---- Nibbles -------------------------------------------------------------------------------------------------------

/// The low 4 bits of a's bytes, then b's, two per byte, first in the low half; upper bits are ignored.
/// Cost: 6 / 6 / 5 / 4.
template <usable_arch A>
QTENSOR_INLINE bytes<A> join_nibbles(const bytes<A>& a, const bytes<A>& b) {
  return join_nibbles(detail::isa<A>{}, a, b);
}
/// The low 4 bits of a's bytes, then b's: of each 2 * Half of them (Half is 16 or 8), the first Half in the low halves
/// of as many bytes, the others in the upper ones. Cost: 4 / 6 / 5 / 3; of 8 4 / 7 / 7 / 5.
template <int Half, usable_arch A>
requires(Half == 8 || Half == 16) QTENSOR_INLINE bytes<A> join_halves(const bytes<A>& a, const bytes<A>& b) {
  return detail::join_halves<Half>(detail::isa<A>{}, a, b);
}
/// join_nibbles of one batch to memory, 2 * lanes bytes; past the caches where `to` is aligned to as many. Cost: 4 and
/// a store.
template <usable_arch A>
QTENSOR_INLINE void put_nibbles(std::uint8_t* to, const bytes<A>& codes, bool past_caches) {
  put_nibbles(detail::isa<A>{}, to, codes, past_caches);
}
/// The nibbles of v, one per byte (0..15), low half first, in order over both results. Cost: 6 / 6 / 5 / 4.
template <usable_arch A>
QTENSOR_INLINE std::array<bytes<A>, 2> split_nibbles(const bytes<A>& v) {
  return split_nibbles(detail::isa<A>{}, v);
}

}  // namespace qtensor::inline QTENSOR_ABI::simd
