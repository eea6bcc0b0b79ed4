// Codes to floats, four batches at a time: integers by widening, small floats by byte planes, the rest by look-up.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <qtensor/format/table.hpp>
#include <qtensor/scheme/scheme.hpp>
#include <qtensor/simd/arch.hpp>
#include <qtensor/simd/ops.hpp>

// A decoder turns 4 * lanes codes, one per byte, into four batches of their exact values: NaN, infinities, -0 and
// subnormals are those of decode_table. Codes narrower than a byte come with clean upper bits (unpack_codes).
namespace qtensor::inline QTENSOR_ABI::simd {

namespace detail {

/// Byte `Shift / 8` of every value's f32 bits: bits [Shift, Shift + 8).
template <class F, int Shift>
inline constexpr auto byte_plane = [] {
  std::array<std::uint8_t, decode_table<F>.size()> plane{};
  for (std::size_t c = 0; c < plane.size(); ++c)
    plane[c] = static_cast<std::uint8_t>(bits_of(decode_table<F>[c]) >> Shift);
  return plane;
}();

/// Every value is a bf16 number: two byte planes hold it.
template <class F>
inline constexpr bool fits_bf16 = [] {
  for (float v : decode_table<F>)
    if ((bits_of(v) & 0xffffu) != 0) return false;
  return true;
}();

/// The top bit of an 8-bit code is a sign, for all codes but 0x80, which may have a meaning of its own.
template <class F>
inline constexpr bool is_mirrored = [] {
  for (std::size_t c = 1; c < 128; ++c)
    if (bits_of(decode_table<F>[c + 128]) != (bits_of(decode_table<F>[c]) ^ sign_bit)) return false;
  return true;
}();
template <class F>
inline constexpr bool has_negative_zero = bits_of(decode_table<F>[128]) == (bits_of(decode_table<F>[0]) ^ sign_bit);

/// Tables of 128 bytes take few instructions.
template <class A>
inline constexpr bool has_long_tables = (std::same_as<A, avx512_arch> && features::vbmi) || std::same_as<A, neon_arch>;

enum class decoding { integers, planes, mirrored_planes, sixteenths, few_floats, many_floats };

/// How codes of F become floats with architecture A.
template <class F, class A>
constexpr decoding decoding_of() {
  if constexpr (F::is_integer || requires { F::fraction_bits; }) {
    return decoding::integers;
  } else if constexpr (F::bits < 8) {
    return fits_bf16<F> ? decoding::planes : F::bits == 4 ? decoding::few_floats : decoding::many_floats;
  } else if constexpr (!fits_bf16<F>) {
    return decoding::many_floats;
  } else if constexpr (has_long_tables<A>) {
    return is_mirrored<F> ? decoding::mirrored_planes : decoding::planes;
  } else if constexpr (minifloat_format<F>) {
    return is_mirrored<F> && F::mantissa_bits <= 4 ? decoding::sixteenths : decoding::many_floats;
  } else {
    return decoding::many_floats;
  }
}

/// Entries of a plane from `First` on, at least 16: short ones repeat.
template <class F, int Shift, int First, int Entries>
inline constexpr auto part_of_plane = [] {
  std::array<std::uint8_t, static_cast<std::size_t>(Entries)> part{};
  for (std::size_t c = 0; c < part.size(); ++c)
    part[c] = byte_plane<F, Shift>[(First + c) % byte_plane<F, Shift>.size()];
  return part;
}();

/// The upper two bytes of values.
template <class A>
struct byte_planes {
  bytes<A> high, low;
};

/// The sign of mirrored codes joins the upper plane; code 0x80 is mended where it is not -0.
template <class F, class A>
QTENSOR_INLINE byte_planes<A> with_signs(const bytes<A>& codes, bytes<A> high, bytes<A> low) {
  high = high | (codes & bytes<A>(std::uint8_t{0x80}));
  if constexpr (!has_negative_zero<F>) {
    const auto at = codes == bytes<A>(std::uint8_t{0x80});
    high = simd::select(at, bytes<A>(byte_plane<F, 24>[128]), high);
    low = simd::select(at, bytes<A>(byte_plane<F, 16>[128]), low);
  }
  return {high, low};
}
template <class A>
QTENSOR_INLINE std::array<floats<A>, 4> floats_of(const byte_planes<A>& p) {
  return simd::floats_from_planes(p.high, p.low);
}

template <class F, class A, decoding How>
struct value_decoder;

/// Integers; a zero point is subtracted exactly, before the conversion.
template <class F, class A>
struct value_decoder<F, A, decoding::integers> {
  static QTENSOR_INLINE ints<A> count(const std::uint8_t* codes) {
    if constexpr (F::is_signed && F::bits == 8) {
      return simd::widen_i8<A>(codes);
    } else {
      const ints<A> c = simd::bits_as<std::int32_t>(simd::widen_u8<A>(codes));
      if constexpr (!F::is_signed) return c;
      constexpr std::int32_t sign = 1 << (F::bits - 1);
      return (c ^ ints<A>(sign)) - ints<A>(sign);
    }
  }
  template <class Zero>
  QTENSOR_INLINE std::array<floats<A>, 4> operator()(const std::uint8_t* codes, const Zero& zero) const {
    std::array<floats<A>, 4> v;
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) {
      v[k] = simd::to_float(count(codes + k * lanes<A>) - zero(k));
      if constexpr (requires { F::fraction_bits; }) v[k] = simd::mul(v[k], floats<A>(exp2i(-F::fraction_bits)));
    }
    return v;
  }
};

/// Two byte look-ups for all codes of the format.
template <class F, class A>
struct value_decoder<F, A, decoding::planes> {
  static constexpr int entries = F::bits <= 4 ? 16 : F::bits == 6 ? 64 : 256;
  simd::byte_table<A, entries> high{part_of_plane<F, 24, 0, entries>.data()},
      low{part_of_plane<F, 16, 0, entries>.data()};

  QTENSOR_INLINE byte_planes<A> planes(const bytes<A>& c) const { return {high(c), low(c)}; }
  template <class Zero>
  QTENSOR_INLINE std::array<floats<A>, 4> operator()(const std::uint8_t* codes, const Zero&) const {
    return floats_of(planes(simd::order_for_floats(simd::load<A>(codes))));
  }
};

/// The same for magnitudes.
template <class F, class A>
struct value_decoder<F, A, decoding::mirrored_planes> {
  simd::byte_table<A, 128> high{byte_plane<F, 24>.data()}, low{byte_plane<F, 16>.data()};

  QTENSOR_INLINE byte_planes<A> planes(const bytes<A>& c) const {
    const bytes<A> m = c & bytes<A>(std::uint8_t{0x7f});
    return with_signs<F>(c, high(m), low(m));
  }
  template <class Zero>
  QTENSOR_INLINE std::array<floats<A>, 4> operator()(const std::uint8_t* codes, const Zero&) const {
    return floats_of(planes(simd::order_for_floats(simd::load<A>(codes))));
  }
};

/// Minifloats of 8 bits where only tables of 16 bytes are cheap: the planes are arithmetic for ordinary codes, the
/// first 16 (subnormals) and the last 16 (infinity and NaN) are looked up.
///   upper half of the float = (magnitude code << (7 - m)) + ((127 - bias) << 7)
template <class F, class A>
struct value_decoder<F, A, decoding::sixteenths> {
  static constexpr int m = F::mantissa_bits;
  static constexpr std::uint32_t rebias = static_cast<std::uint32_t>(127 - F::bias) << 7;
  static constexpr bool special_end = F::special_values == specials::nan_only || F::special_values == specials::ieee;
  static constexpr std::uint32_t each(std::uint32_t byte) { return byte * 0x01010101u; }

  simd::byte_table<A, 16> first_high{part_of_plane<F, 24, 0, 16>.data()}, first_low{part_of_plane<F, 16, 0, 16>.data()};
  simd::byte_table<A, 16> last_high{part_of_plane<F, 24, 112, 16>.data()},
      last_low{part_of_plane<F, 16, 112, 16>.data()};

  template <class Zero>
  QTENSOR_INLINE std::array<floats<A>, 4> operator()(const std::uint8_t* codes, const Zero&) const {
    const auto byte = [](std::uint32_t v) { return bytes<A>(static_cast<std::uint8_t>(v)); };
    const bytes<A> c = simd::order_for_floats(simd::load<A>(codes)), magnitude = c & byte(0x7f), index = c & byte(0x0f);
    const words<A> w = simd::bits_as<std::uint32_t>(magnitude);
    bytes<A> low = simd::bits_as<std::uint8_t>((w << (7 - m)) & words<A>(each(0xffu << (7 - m) & 0xffu)));
    bytes<A> high = simd::bits_as<std::uint8_t>((w >> (m + 1)) & words<A>(each(0x7fu >> (m + 1)))) + byte(rebias >> 8);
    if constexpr ((rebias & 0xffu) != 0) {  // 0x80: a carry goes up
      high = high + simd::bits_as<std::uint8_t>((simd::bits_as<std::uint32_t>(low) >> 7) & words<A>(each(1u)));
      low = low ^ byte(0x80);
    }
    const auto first = (c & byte(0x70)) == byte(0);
    high = simd::select(first, first_high(index), high);
    low = simd::select(first, first_low(index), low);
    if constexpr (special_end) {
      const auto last = (c & byte(0x70)) == byte(0x70);
      high = simd::select(last, last_high(index), high);
      low = simd::select(last, last_low(index), low);
    }
    return floats_of(with_signs<F>(c, high, low));
  }
};

/// Sixteen floats kept in registers.
template <class F, class A>
struct value_decoder<F, A, decoding::few_floats> {
  simd::float_table16<A> table{decode_table<F>.data()};

  template <class Zero>
  QTENSOR_INLINE std::array<floats<A>, 4> operator()(const std::uint8_t* codes, const Zero&) const {
    std::array<floats<A>, 4> v;
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) v[k] = table(simd::widen_u8<A>(codes + k * lanes<A>));
    return v;
  }
};

/// A load for each value.
template <class F, class A>
struct value_decoder<F, A, decoding::many_floats> {
  template <class Zero>
  QTENSOR_INLINE std::array<floats<A>, 4> operator()(const std::uint8_t* codes, const Zero&) const {
    std::array<floats<A>, 4> v;
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) v[k] = simd::lookup<A>(decode_table<F>.data(), simd::widen_u8<A>(codes + k * lanes<A>));
    return v;
  }
};

}  // namespace detail

/// Formats with a vector decoder: 2, 4, 6 or 8 bits, whatever they mean.
template <class F>
concept vector_decodable_format = format<F> &&(F::bits == 2 || F::bits == 4 || F::bits == 6 || F::bits == 8);

/// Schemes with one: their codes lie in order in an array of their own.
template <class S>
concept vector_decodable = quantization_scheme<S> && std::same_as<typename S::layout, planar<low_first>> &&
    vector_decodable_format<typename S::code_format>;

/// decoder(codes, zero) gives the values of 4 * lanes codes, one per byte: decode<F>(code), for integers code - zero(k)
/// in batch k. It holds its tables: make one for a run. Cost for 4 batches: integers 8, 8-bit floats 12 with tables of
/// 128 bytes (AVX-512 VBMI, NEON), 27 without; 4 bits 9.
template <vector_decodable_format F, usable_arch A>
using decoder = detail::value_decoder<F, A, detail::decoding_of<F, A>()>;

/// Formats whose values a decoder gives as bf16 without a detour: two look-ups and an interleaving.
template <class F, class A>
concept bf16_decodable = vector_decodable_format<F> && usable_arch<A> && requires(const decoder<F, A>& d, bytes<A> c) {
  d.planes(c);
};

/// bf16 numbers of 4 * lanes codes, one per byte, in order: exactly decode<F>(code).
template <class F, class A>
requires bf16_decodable<F, A> QTENSOR_INLINE std::array < halves<A>,
2 > decode_bf16(const decoder<F, A>& decode, const std::uint8_t* codes) {
  const auto planes = decode.planes(simd::order_for_halves(simd::load<A>(codes)));
  return simd::halves_from_planes(planes.high, planes.low);
}

}  // namespace qtensor::inline QTENSOR_ABI::simd
