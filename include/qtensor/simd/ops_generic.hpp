// Bodies of the vector operations for any architecture: plain batch arithmetic, or a loop over a small buffer.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <limits>
#include <qtensor/core/rounded.hpp>
#include <qtensor/core/support.hpp>
#include <qtensor/simd/arch.hpp>
#include <qtensor/simd/ops_portable.hpp>

// ops.hpp says what each of these means. An operation is an overload set on a tag: any_isa here; sse42_isa, avx2_isa in
// ops_x86.hpp, avx512_isa in ops_avx512.hpp, neon_isa in ops_neon.hpp. Callers pass isa<Arch>{}; argument-dependent
// lookup finds them all.
namespace qtensor::inline QTENSOR_ABI::simd::detail {

template <class T, class A>
struct buffer {
  alignas(64) std::array<T, xsimd::batch<T, A>::size> lane;

  buffer() = default;
  explicit buffer(const xsimd::batch<T, A>& v) { v.store_unaligned(lane.data()); }
  xsimd::batch<T, A> batch() const { return xsimd::batch<T, A>::load_unaligned(lane.data()); }
  static constexpr index_t size = static_cast<index_t>(xsimd::batch<T, A>::size);
  T& operator[](index_t i) { return lane[static_cast<std::size_t>(i)]; }
};

/// a * b + c with one rounding, without an fma unit: the product is exact in double, the sum is rounded to odd there,
/// and 53 bits rounded to odd round to 24 (or fewer) as the exact value would.
constexpr float fma_in_double(float a, float b, float c) {
  const double product = double(a) * double(b), addend = c, sum = product + addend;
  const double kept = sum - product;
  const double lost = (product - (sum - kept)) + (addend - kept);  // exact; NaN when something is not finite
  auto word = std::bit_cast<std::uint64_t>(sum);
  const bool inexact = lost < 0 || lost > 0;
  if (inexact && (word & 1) == 0) word += (lost > 0) == (sum > 0) ? 1 : -1;
  return static_cast<float>(std::bit_cast<double>(word));
}

/// What a minifloat encoder knows of its format; values as f32 bits.
struct minifloat_grid {
  int mantissa_bits, bits;
  std::uint32_t smallest_normal, largest;
};

/// How the codes of a format run whose values are evenly spaced between powers of two, with a spacing of their own for
/// every exponent, and step away from zero at ties; for magnitudes as the upper 16 bits of floats, at most `high`.
/// By tables, where entries belong to the low six bits of the f32 exponent: at least `low`, and with half the spacing
/// added, code = (bits >> shift) + base, modulo 256.
/// By slopes: codes counted in the order of their values grow by 1, 2, 4, then 8 a binade, and above by 4 and 2 again.
/// So their number is a sum, each part of which starts or ends where the slope changes (packed_binade_codes).
struct binade_steps {
  alignas(64) std::array<std::uint8_t, 64> half{}, shift{}, base{};
  std::uint16_t low = 0, high = 0;
  /// The first value after zero; from half of it on codes are not zero.
  constexpr int smallest() const { return low + 256; }
  std::uint16_t twos = 0;                   ///< where 2 codes a binade begin, from 3 / 2 binades below smallest()
  std::uint16_t fours = 0, fours_wide = 0;  ///< the same, and for how much
  std::uint16_t eights = 0, eights_wide = 0;
  alignas(16) std::array<std::uint8_t, 16> code_of{};  ///< the code of number n is n ^ code_of[n / 8]
};

template <class To, class From, class A>
QTENSOR_INLINE xsimd::batch<To, A> bits_as(any_isa, const xsimd::batch<From, A>& x) {
  if constexpr (std::same_as<To, From>) {
    return x;
  } else if constexpr (std::same_as<A, scalar_arch>) {
    return std::bit_cast<xsimd::batch<To, A>>(x);
  } else if constexpr (requires {
                         { xsimd::bitwise_cast<To>(x) } -> std::same_as<xsimd::batch<To, A>>;
                       }) {
    return xsimd::bitwise_cast<To>(x);  // since xsimd 9
  } else {
    return xsimd::bitwise_cast<xsimd::batch<To, A>>(x);
  }
}

template <class T, class A>
QTENSOR_INLINE xsimd::batch<T, A> select(any_isa, const xsimd::batch_bool<T, A>& m, const xsimd::batch<T, A>& a,
                                         const xsimd::batch<T, A>& b) {
  if constexpr (std::same_as<A, scalar_arch>) {
    xsimd::batch<T, A> r;
    for (std::size_t i = 0; i < r.size; ++i) r.lane[i] = m.lane[i] ? a.lane[i] : b.lane[i];
    return r;
  } else {
    return xsimd::select(m, a, b);
  }
}

template <class A>
QTENSOR_INLINE std::uint32_t mask_bits(any_isa, const xsimd::batch_bool<std::uint32_t, A>& m) {
  buffer<std::uint32_t, A> one(select(any_isa{}, m, words<A>(1u), words<A>(0u)));
  std::uint32_t bits = 0;
  for (index_t i = 0; i < one.size; ++i) bits |= one[i] << i;
  return bits;
}

template <class To, class From, class A>
QTENSOR_INLINE xsimd::batch_bool<To, A> mask_as(any_isa, const xsimd::batch_bool<From, A>& m) {
  static_assert(std::same_as<A, scalar_arch> && sizeof(To) == sizeof(From));
  xsimd::batch_bool<To, A> r;
  r.lane = m.lane;
  return r;
}

// Not `<` of words: xsimd 8.1 splits AVX2 registers for it. Both sides are below 2^31.
template <class A>
QTENSOR_INLINE xsimd::batch_bool<std::uint32_t, A> below(any_isa, const words<A>& a, const words<A>& b) {
  const auto less = bits_as<std::int32_t>(isa<A>{}, a) < bits_as<std::int32_t>(isa<A>{}, b);
  return mask_as<std::uint32_t>(isa<A>{}, less);
}

template <class T, class A>
QTENSOR_INLINE xsimd::batch<T, A> min(any_isa, const xsimd::batch<T, A>& a, const xsimd::batch<T, A>& b) {
  if constexpr (std::same_as<T, float> || std::same_as<A, scalar_arch>) {
    return select(any_isa{}, a < b, a, b);
  } else {
    return xsimd::min(a, b);
  }
}
template <class T, class A>
QTENSOR_INLINE xsimd::batch<T, A> max(any_isa, const xsimd::batch<T, A>& a, const xsimd::batch<T, A>& b) {
  if constexpr (std::same_as<T, float> || std::same_as<A, scalar_arch>) {
    return select(any_isa{}, a > b, a, b);
  } else {
    return xsimd::max(a, b);
  }
}

template <class A>
QTENSOR_INLINE bytes<A> add_saturated(any_isa, const bytes<A>& a, const bytes<A>& b) {
  return a + min(isa<A>{}, b, ~a);
}
template <class A>
QTENSOR_INLINE bytes<A> sub_saturated(any_isa, const bytes<A>& a, const bytes<A>& b) {
  return a - min(isa<A>{}, a, b);
}

template <class A>
QTENSOR_INLINE std::uint32_t reduce_max(any_isa, const words<A>& v) {
  buffer<std::uint32_t, A> lane(v);
  std::uint32_t best = lane[0];
  for (index_t i = 1; i < lane.size; ++i) best = lane[i] > best ? lane[i] : best;
  return best;
}

template <class A>
QTENSOR_INLINE std::uint32_t reduce_add(any_isa, const words<A>& v) {
  buffer<std::uint32_t, A> lane(v);
  std::uint32_t sum = 0;
  for (index_t i = 0; i < lane.size; ++i) sum += lane[i];
  return sum;
}

/// Loads before it come first in the program, too. CPUs tell a stream by the order of its lines: rows read as the
/// compiler schedules them come from memory at half the speed.
QTENSOR_INLINE void keep_order() { asm volatile("" ::: "memory"); }

/// What reduce_each makes of a row's lanes.
struct lane_max {};
struct lane_sum {};  // modulo 2^32
template <class A, class Op, class Get>
QTENSOR_INLINE words<A> reduce_each(any_isa, Op, Get get) {
  buffer<std::uint32_t, A> of_rows;
  for (index_t i = 0; i < of_rows.size; ++i)
    if constexpr (std::is_same_v<Op, lane_max>)
      of_rows[i] = reduce_max(isa<A>{}, get(i));
    else
      of_rows[i] = reduce_add(isa<A>{}, get(i));
  return of_rows.batch();
}

template <class A, int BlocksOfRow, class Get>
QTENSOR_INLINE words<A> reduce_max_each_half(any_isa, Get get) {
  buffer<std::uint32_t, A> best;
  for (index_t k = 0; k < best.size / BlocksOfRow; ++k) {
    buffer<std::uint16_t, A> lane(get(k));
    constexpr index_t length = lane.size / BlocksOfRow;
    for (index_t b = 0; b < BlocksOfRow; ++b) {
      std::uint16_t most = 0;
      for (index_t i = b * length; i < (b + 1) * length; ++i) most = lane[i] > most ? lane[i] : most;
      best[k * BlocksOfRow + b] = most;
    }
  }
  return best.batch();
}

template <class A>
QTENSOR_INLINE bool any_nan(any_isa, const floats<A>& a, const floats<A>& b, const floats<A>& c, const floats<A>& d) {
  const auto magnitude = [](const floats<A>& x) {
    return bits_as<std::uint32_t>(isa<A>{}, x) & words<A>(magnitude_bits);
  };
  const words<A> largest =
      max(isa<A>{}, max(isa<A>{}, magnitude(a), magnitude(b)), max(isa<A>{}, magnitude(c), magnitude(d)));
  return mask_bits(isa<A>{}, below(isa<A>{}, words<A>(infinity_bits), largest)) != 0;
}

template <class A>
QTENSOR_INLINE floats<A> rounded(any_isa, floats<A> x) {
  for (float& v : x.lane) v = qtensor::rounded(v);
  return x;
}

template <class A>
QTENSOR_INLINE floats<A> div(any_isa, const floats<A>& a, const floats<A>& b) {
  return a / b;
}

template <class A>
QTENSOR_INLINE floats<A> fma(any_isa, const floats<A>& a, const floats<A>& b, const floats<A>& c) {
  floats<A> r;
  for (std::size_t i = 0; i < r.size; ++i) r.lane[i] = fma_in_double(a.lane[i], b.lane[i], c.lane[i]);
  return r;
}

// 1.5 * 2^52: doubles near it are integers, so adding it rounds to an integer, kept in the low bits.
inline constexpr double to_integer_bits = 0x1.8p52;

template <class A>
QTENSOR_INLINE ints<A> round_to_int(any_isa, const floats<A>& x) {
  ints<A> r;
  for (std::size_t i = 0; i < r.size; ++i)
    r.lane[i] = static_cast<std::int32_t>(
        static_cast<std::uint32_t>(std::bit_cast<std::uint64_t>(double(x.lane[i]) + to_integer_bits)));
  return r;
}
template <class A>
QTENSOR_INLINE ints<A> round_to_int_checked(any_isa, const floats<A>& x) {
  ints<A> r = round_to_int(any_isa{}, x);
  for (std::size_t i = 0; i < r.size; ++i)
    if (!(x.lane[i] >= -0x1p31f && x.lane[i] < 0x1p31f)) r.lane[i] = std::numeric_limits<std::int32_t>::min();
  return r;
}
template <class A>
QTENSOR_INLINE ints<A> truncate_to_int(any_isa, const floats<A>& x) {
  ints<A> r;
  for (std::size_t i = 0; i < r.size; ++i) {
    const bool inside = x.lane[i] >= -0x1p31f && x.lane[i] < 0x1p31f;
    r.lane[i] = inside ? static_cast<std::int32_t>(x.lane[i]) : 0;
  }
  return r;
}
template <class A>
QTENSOR_INLINE floats<A> to_float(any_isa, const ints<A>& x) {
  floats<A> r;
  for (std::size_t i = 0; i < r.size; ++i) r.lane[i] = static_cast<float>(x.lane[i]);
  return r;
}
template <class A>
QTENSOR_INLINE floats<A> nearest(any_isa, const floats<A>& x) {
  floats<A> r;
  for (std::size_t i = 0; i < r.size; ++i) {
    const double v = double(x.lane[i]) + to_integer_bits - to_integer_bits;  // -0.3 gives +0: copysign mends it
    r.lane[i] = std::abs(x.lane[i]) < 0x1p31f ? std::copysign(static_cast<float>(v), x.lane[i]) : x.lane[i] + 0.0f;
  }
  return r;
}
template <class A>
QTENSOR_INLINE floats<A> floor(any_isa, const floats<A>& x) {
  floats<A> r;
  for (std::size_t i = 0; i < r.size; ++i) r.lane[i] = std::floor(x.lane[i]);
  return r;
}
template <class A>
QTENSOR_INLINE floats<A> truncate(any_isa, const floats<A>& x) {
  floats<A> r;
  for (std::size_t i = 0; i < r.size; ++i) r.lane[i] = std::trunc(x.lane[i]);
  return r;
}

template <class A>
QTENSOR_INLINE words<A> shift_left(any_isa, const words<A>& v, const words<A>& count) {
  buffer<std::uint32_t, A> x(v), k(count);
  for (index_t i = 0; i < x.size; ++i) x[i] <<= k[i] & 31;
  return x.batch();
}
template <class A>
QTENSOR_INLINE words<A> shift_right(any_isa, const words<A>& v, const words<A>& count) {
  buffer<std::uint32_t, A> x(v), k(count);
  for (index_t i = 0; i < x.size; ++i) x[i] >>= k[i] & 31;
  return x.batch();
}

template <class A>
QTENSOR_INLINE words<A> sign_last(any_isa, const words<A>& v) {
  return (v << 1) | (v >> 31);
}
template <class A>
QTENSOR_INLINE words<A> with_last_bit(any_isa, const words<A>& v) {
  return v | min(isa<A>{}, v & words<A>(magnitude_bits), words<A>(1u));
}

template <class A>
QTENSOR_INLINE std::array<words<A>, 2> multiply_wide(any_isa, const words<A>& a, std::uint32_t b) {
  buffer<std::uint32_t, A> low(a), high;
  for (index_t i = 0; i < low.size; ++i) {
    const std::uint64_t product = std::uint64_t{low[i]} * b;
    low[i] = static_cast<std::uint32_t>(product), high[i] = static_cast<std::uint32_t>(product >> 32);
  }
  return {low.batch(), high.batch()};
}

template <class A, class T>
QTENSOR_INLINE xsimd::batch<T, A> load_n(any_isa, const T* from, index_t n, T fill) {
  buffer<T, A> b;
  b.lane.fill(fill);
  std::memcpy(b.lane.data(), from, static_cast<std::size_t>(n) * sizeof(T));
  return b.batch();
}
template <class A, class T>
QTENSOR_INLINE void store_n(any_isa, T* to, index_t n, const xsimd::batch<T, A>& v) {
  const buffer<T, A> b(v);
  std::memcpy(to, b.lane.data(), static_cast<std::size_t>(n) * sizeof(T));
}

template <index_t Parts, class A>
QTENSOR_INLINE void store_parts(any_isa, std::uint8_t* to, index_t apart, const bytes<A>& v) {
  constexpr std::size_t part = sizeof(v) / std::size_t{Parts};
  const buffer<std::uint8_t, A> all(v);
  for (std::size_t i = 0; i < std::size_t{Parts}; ++i, to += apart) std::memcpy(to, all.lane.data() + i * part, part);
}
template <class A>
QTENSOR_INLINE bytes<A> load_quarters(any_isa, const std::uint8_t* from, index_t apart) {
  buffer<std::uint8_t, A> b;
  for (index_t i = 0; i < lanes<A> / 4; ++i) std::memcpy(b.lane.data() + 16 * i, from + i * apart, 16);
  return b.batch();
}

// Widening: T is the narrow type, Wide the lane type.
template <class A, class Wide, class T>
QTENSOR_INLINE xsimd::batch<Wide, A> widen(any_isa, const T* from) {
  buffer<Wide, A> b;
  for (index_t i = 0; i < b.size; ++i) b[i] = static_cast<Wide>(from[i]);
  return b.batch();
}
template <class A, class Wide, class T>
QTENSOR_INLINE xsimd::batch<Wide, A> widen_n(any_isa, const T* from, index_t n) {
  T padded[static_cast<std::size_t>(lanes<A>)] = {};
  for (index_t i = 0; i < n; ++i) padded[i] = from[i];
  return widen<A, Wide>(isa<A>{}, static_cast<const T*>(padded));
}

template <class A>
QTENSOR_INLINE floats<A> widen_f16(any_isa, const words<A>& h) {
  constexpr std::uint32_t exponent = 0x7c00, sign = 0x8000, quiet = 0x00400000;
  constexpr std::uint32_t rebias = (127 - 15) << 23;
  const words<A> magnitude = h & words<A>(0x7fffu);
  const words<A> normal = (magnitude << 13) + words<A>(rebias);
  // m * 2^-24 is exact and never subnormal as a float.
  const words<A> tiny = bits_as<std::uint32_t>(
      isa<A>{}, to_float(isa<A>{}, bits_as<std::int32_t>(isa<A>{}, magnitude)) * floats<A>(0x1p-24f));
  const words<A> special = normal + words<A>(rebias);
  words<A> r = select(isa<A>{}, below(isa<A>{}, magnitude, words<A>(0x0400u)), tiny, normal);
  r = select(isa<A>{}, below(isa<A>{}, magnitude, words<A>(exponent)), r, special);
  r = select(isa<A>{}, below(isa<A>{}, words<A>(exponent), magnitude), special | words<A>(quiet), r);
  return bits_as<float>(isa<A>{}, r | ((h & words<A>(sign)) << 16));
}

template <class A>
QTENSOR_INLINE floats<A> load_f16(any_isa, const std::uint16_t* from) {
  return widen_f16(isa<A>{}, widen<A, std::uint32_t>(isa<A>{}, from));
}

template <class A>
QTENSOR_INLINE words<A> f16_bits(any_isa, const floats<A>& x) {
  // Adding a power of two whose ulp is the target's rounds once, at the target's last bit (KERNELS A4).
  constexpr std::uint32_t too_large = 0x47800000;        // 65536: encodes as infinity
  constexpr std::uint32_t smallest_normal = 0x38800000;  // 2^-14
  const words<A> bits = bits_as<std::uint32_t>(isa<A>{}, x), magnitude = bits & words<A>(magnitude_bits);
  const words<A> a = min(isa<A>{}, magnitude, words<A>(too_large));
  const words<A> e = max(isa<A>{}, a & words<A>(infinity_bits), words<A>(smallest_normal));
  const words<A> shifter = e + words<A>(13u << 23);
  const words<A> t = bits_as<std::uint32_t>(isa<A>{}, bits_as<float>(isa<A>{}, a) + bits_as<float>(isa<A>{}, shifter));
  const words<A> code = t - shifter + (e >> 13) - words<A>(113u << 10);
  const words<A> nan = ((magnitude >> 13) & words<A>(0x03ffu)) | words<A>(0x7e00u);
  const words<A> sign = (bits >> 16) & words<A>(0x8000u);
  return select(isa<A>{}, below(isa<A>{}, words<A>(infinity_bits), magnitude), nan, code) | sign;
}
template <class A>
QTENSOR_INLINE words<A> bf16_bits(any_isa, const floats<A>& x) {
  const words<A> bits = bits_as<std::uint32_t>(isa<A>{}, x), upper = bits >> 16;
  const words<A> nearest_even = (bits + words<A>(0x7fffu) + (upper & words<A>(1u))) >> 16;
  const auto nan = below(isa<A>{}, words<A>(infinity_bits), bits & words<A>(magnitude_bits));
  return select(isa<A>{}, nan, upper | words<A>(0x0040u), nearest_even);
}
template <class A>
QTENSOR_INLINE floats<A> rounded_to_f16(any_isa, const floats<A>& x) {
  return widen_f16(isa<A>{}, f16_bits(isa<A>{}, x));
}

// Narrowing: f maps one lane to its code.
template <class A, class To, class From, class F, class... More>
QTENSOR_INLINE xsimd::batch<To, A> narrow_each(F f, const xsimd::batch<From, A>& first, const More&... more) {
  buffer<To, A> r;
  index_t at = 0;
  const auto append = [&](const xsimd::batch<From, A>& v) {
    buffer<From, A> lane(v);
    for (index_t i = 0; i < lane.size; ++i) r[at++] = static_cast<To>(f(lane[i]));
  };
  append(first);
  (append(more), ...);
  return r.batch();
}
constexpr std::int32_t clamped(std::int32_t v, std::int32_t lo, std::int32_t hi) {
  return v < lo ? lo : v > hi ? hi : v;
}

template <class A>
QTENSOR_INLINE bytes<A> narrow_i8(any_isa, const ints<A>& a, const ints<A>& b, const ints<A>& c, const ints<A>& d) {
  return narrow_each<A, std::uint8_t>([](std::int32_t v) { return clamped(v, -128, 127); }, a, b, c, d);
}
template <class A>
QTENSOR_INLINE bytes<A> narrow_u8(any_isa, const ints<A>& a, const ints<A>& b, const ints<A>& c, const ints<A>& d) {
  return narrow_each<A, std::uint8_t>([](std::int32_t v) { return clamped(v, 0, 255); }, a, b, c, d);
}
template <class A>
QTENSOR_INLINE bytes<A> low_bytes(any_isa, const words<A>& a, const words<A>& b, const words<A>& c, const words<A>& d) {
  return narrow_each<A, std::uint8_t>([](std::uint32_t v) { return v & 0xff; }, a, b, c, d);
}
template <class A>
QTENSOR_INLINE halves<A> low_halves(any_isa, const words<A>& a, const words<A>& b) {
  return narrow_each<A, std::uint16_t>([](std::uint32_t v) { return v & 0xffff; }, a, b);
}
template <class A>
QTENSOR_INLINE halves<A> narrow_bf16(any_isa, const floats<A>& a, const floats<A>& b) {
  return low_halves(isa<A>{}, bf16_bits(isa<A>{}, a), bf16_bits(isa<A>{}, b));
}
template <class A>
QTENSOR_INLINE words<A> plain_bf16_above(const floats<A>& x) {
  const words<A> bits = bits_as<std::uint32_t>(isa<A>{}, x);
  return bits + (words<A>(0x7fffu) + ((bits >> 16) & words<A>(1u)));
}
template <class A>
QTENSOR_INLINE halves<A> narrow_bf16_plain(any_isa, const floats<A>& a, const floats<A>& b) {
  return upper_halves(isa<A>{}, plain_bf16_above<A>(a), plain_bf16_above<A>(b));
}
template <class A>
QTENSOR_INLINE floats<A> rounded_to_bf16_plain(any_isa, const floats<A>& x) {
  return bits_as<float>(isa<A>{}, plain_bf16_above<A>(x) & words<A>(0xffff0000u));
}
template <class A>
QTENSOR_INLINE halves<A> narrow_f16(any_isa, const floats<A>& a, const floats<A>& b) {
  return low_halves(isa<A>{}, f16_bits(isa<A>{}, a), f16_bits(isa<A>{}, b));
}

template <class A>
QTENSOR_INLINE halves<A> upper_halves(any_isa, const words<A>& a, const words<A>& b) {
  return low_halves(isa<A>{}, a >> 16, b >> 16);
}
/// The signs of four batches in the top bits of bytes, the other bits 0: narrowing with saturation keeps them.
template <class A>
QTENSOR_INLINE bytes<A> sign_bytes(const std::array<floats<A>, 4>& q) {
  const auto v = [&](std::size_t k) QTENSOR_INLINE_LAMBDA { return bits_as<std::int32_t>(isa<A>{}, q[k]); };
  const words<A> narrow = bits_as<std::uint32_t>(isa<A>{}, narrow_i8(isa<A>{}, v(0), v(1), v(2), v(3)));
  return bits_as<std::uint8_t>(isa<A>{}, narrow & words<A>(0x80808080u));
}
// By tables: the codes of magnitudes, and then their signs.
template <class A>
QTENSOR_INLINE bytes<A> binade_magnitudes(any_isa, const halves<A>& a, const halves<A>& b, const binade_steps& steps) {
  buffer<std::uint8_t, A> codes;
  index_t at = 0;
  for (const halves<A>& v : {a, b}) {
    buffer<std::uint16_t, A> lane(v);
    for (index_t i = 0; i < lane.size; ++i) {
      std::uint32_t m = lane[i] & 0x7fffu;
      m = m < steps.low ? steps.low : m > steps.high ? steps.high : m;
      m += steps.half[m >> 7 & 63];
      const std::size_t e = m >> 7 & 63;
      codes[at++] = static_cast<std::uint8_t>((m >> steps.shift[e]) + steps.base[e]);
    }
  }
  return codes.batch();
}

template <class A>
QTENSOR_INLINE bytes<A> binade_codes(any_isa, const std::array<floats<A>, 4>& q, const binade_steps& steps) {
  using isa_type = isa<A>;
  const auto bits = [&](std::size_t k) QTENSOR_INLINE_LAMBDA { return bits_as<std::uint32_t>(isa_type{}, q[k]); };
  const bytes<A> code = binade_magnitudes(isa_type{}, upper_halves(isa_type{}, bits(0), bits(1)),
                                          upper_halves(isa_type{}, bits(2), bits(3)), steps);
  return select(isa_type{}, code == bytes<A>(std::uint8_t{0}), code, code | sign_bytes<A>(q));
}

template <class Isa, class A>
struct half_table16;  // only where there are instructions for it

// Tables stay where they are; native bodies keep them in registers.
template <class Isa, class A>
struct float_table16 {
  explicit float_table16(const float* table) : table_(table) {}
  QTENSOR_INLINE floats<A> operator()(const words<A>& index) const {
    buffer<std::uint32_t, A> k(index);
    buffer<float, A> r;
    for (index_t i = 0; i < r.size; ++i) r[i] = table_[k[i] & 15];
    return r.batch();
  }
  const float* table_;
};
template <class Isa, class A, int Entries>
struct byte_table {
  explicit byte_table(const std::uint8_t* table) : table_(table) {}
  QTENSOR_INLINE bytes<A> operator()(const bytes<A>& index) const {
    buffer<std::uint8_t, A> k(index);
    for (index_t i = 0; i < k.size; ++i)
      k[i] = Entries == 16 && k[i] >= 128 ? std::uint8_t{0} : table_[k[i] & (Entries - 1)];
    return k.batch();
  }
  const std::uint8_t* table_;
};

template <class A>
QTENSOR_INLINE halves<A> each_half(any_isa, std::uint16_t v) {
  return halves<A>(v);
}
/// What pack_signed and pack_unsigned narrow, back in order.
template <class A>
QTENSOR_INLINE bytes<A> packed_halves_in_order(any_isa, const bytes<A>& v) {
  return v;
}
/// binade_codes by slopes, in the order of pack_signed, which narrows two batches of signed halves with saturation.
template <class A, class Isa>
QTENSOR_INLINE bytes<A> packed_binade_codes(Isa isa, const halves<A>& a, const halves<A>& b,
                                            const binade_steps& steps) {
  const byte_table<Isa, A, 16> code_of(steps.code_of.data());
  const auto half = [&](int v) QTENSOR_INLINE_LAMBDA { return each_half<A>(isa, static_cast<std::uint16_t>(v)); };
  const halves<A> smallest = half(steps.smallest()), high = half(steps.high), magnitude = half(0x7fff);
  const auto signed_half = [&](const halves<A>& v) QTENSOR_INLINE_LAMBDA { return bits_as<std::int16_t>(isa, v); };
  // The number of the code, from half a step above zero.
  const auto number = [&](const halves<A>& m) QTENSOR_INLINE_LAMBDA {
    const halves<A> x = xsimd::max(xsimd::min(m, high), smallest) - half(steps.smallest() - 192);
    const halves<A> eights = xsimd::min(xsimd::ssub(x, half(steps.eights)), half(steps.eights_wide));
    const halves<A> fours = xsimd::min(xsimd::ssub(x, half(steps.fours)), half(steps.fours_wide)) + eights + eights;
    return (x + xsimd::ssub(x, half(steps.twos)) + fours + fours) >> 7;
  };
  const auto is_number = [&](const halves<A>& m) QTENSOR_INLINE_LAMBDA {  // all bits where it is not zero
    return halves<A>((signed_half(m) > signed_half(half(steps.smallest() - 129))).data);
  };
  const halves<A> x = a & magnitude, y = b & magnitude;
  const bytes<A> n = pack_signed(isa, number(x), number(y));
  const bytes<A> eighth = bits_as<std::uint8_t>(isa, bits_as<std::uint32_t>(isa, n) >> 3) & bytes<A>(std::uint8_t{15});
  const bytes<A> code = (n ^ code_of(eighth)) | (pack_signed(isa, a, b) & bytes<A>(std::uint8_t{0x80}));
  return code & pack_signed(isa, is_number(x), is_number(y));
}
template <class A>
QTENSOR_INLINE floats<A> lookup(any_isa, const float* table, const words<A>& index) {
  buffer<std::uint32_t, A> k(index);
  buffer<float, A> r;
  for (index_t i = 0; i < r.size; ++i) r[i] = table[k[i]];
  return r.batch();
}

template <class A>
QTENSOR_INLINE bytes<A> interleave_pairs(any_isa, const bytes<A>& v) {
  buffer<std::uint8_t, A> from(v), to;
  constexpr index_t n = lanes<A>;
  for (index_t i = 0; i < n; ++i)
    for (index_t half : {index_t{0}, 2 * n})
      to[half + 2 * i] = from[half + i], to[half + 2 * i + 1] = from[half + n + i];
  return to.batch();
}

template <class A>
QTENSOR_INLINE bytes<A> order_for_floats(any_isa, const bytes<A>& v) {
  return v;
}
template <class A>
QTENSOR_INLINE bytes<A> order_for_halves(any_isa, const bytes<A>& v) {
  return v;
}
template <class A>
QTENSOR_INLINE std::array<halves<A>, 2> halves_from_planes(any_isa, const bytes<A>& high, const bytes<A>& low) {
  buffer<std::uint8_t, A> h(high), l(low);
  std::array<buffer<std::uint16_t, A>, 2> r;
  const index_t n = r[0].size;
  for (index_t i = 0; i < 2 * n; ++i)
    r[static_cast<std::size_t>(i / n)][i % n] = static_cast<std::uint16_t>(h[i] << 8 | l[i]);
  return {r[0].batch(), r[1].batch()};
}
template <class A>
QTENSOR_INLINE std::array<floats<A>, 4> floats_from_planes(any_isa, const bytes<A>& high, const bytes<A>& low) {
  buffer<std::uint8_t, A> h(high), l(low);
  std::array<buffer<float, A>, 4> r;
  const index_t n = lanes<A>;
  for (index_t i = 0; i < 4 * n; ++i)
    r[static_cast<std::size_t>(i / n)][i % n] =
        float_of(static_cast<std::uint32_t>(h[i]) << 24 | static_cast<std::uint32_t>(l[i]) << 16);
  return {r[0].batch(), r[1].batch(), r[2].batch(), r[3].batch()};
}

template <class A>
QTENSOR_INLINE bytes<A> join_nibbles(any_isa, const bytes<A>& a, const bytes<A>& b) {
  buffer<std::uint8_t, A> x(a), y(b), r;
  const index_t half = r.size / 2;
  for (index_t i = 0; i < half; ++i) {
    r[i] = static_cast<std::uint8_t>((x[2 * i] & 15) | x[2 * i + 1] << 4);
    r[half + i] = static_cast<std::uint8_t>((y[2 * i] & 15) | y[2 * i + 1] << 4);
  }
  return r.batch();
}
template <int Half, class A>
QTENSOR_INLINE bytes<A> join_halves(any_isa, const bytes<A>& a, const bytes<A>& b) {
  buffer<std::uint8_t, A> x(a), y(b), r;
  const auto code = [&](index_t i) { return i < x.size ? x[i] : y[i - x.size]; };
  for (index_t i = 0; i < r.size; ++i) {
    const index_t low = i / Half * 2 * Half + i % Half;
    r[i] = static_cast<std::uint8_t>((code(low) & 15) | code(low + Half) << 4);
  }
  return r.batch();
}
template <class A>
QTENSOR_INLINE void put_nibbles(any_isa, std::uint8_t* to, const bytes<A>& v, bool) {
  buffer<std::uint8_t, A> x(v);
  for (index_t i = 0; i < x.size / 2; ++i) to[i] = static_cast<std::uint8_t>((x[2 * i] & 15) | x[2 * i + 1] << 4);
}
template <class A>
QTENSOR_INLINE std::array<bytes<A>, 2> split_nibbles(any_isa, const bytes<A>& v) {
  buffer<std::uint8_t, A> x(v);
  std::array<buffer<std::uint8_t, A>, 2> r;
  for (index_t i = 0; i < 2 * x.size; ++i)
    r[static_cast<std::size_t>(i / x.size)][i % x.size] = (x[i / 2] >> (4 * (i % 2))) & 15;
  return {r[0].batch(), r[1].batch()};
}

template <class T, class A>
QTENSOR_INLINE void stream(any_isa, T* to, const xsimd::batch<T, A>& v) {
  v.store_unaligned(to);
}
QTENSOR_INLINE void stream_fence(any_isa) {}

}  // namespace qtensor::inline QTENSOR_ABI::simd::detail
