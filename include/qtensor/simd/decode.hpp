// Codes to floats, four batches at a time: integers by widening, small floats by byte planes, the rest by look-up.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <concepts>
#include <cstdint>
#include <optional>
#include <qtensor/format/table.hpp>
#include <qtensor/format/wide.hpp>
#include <qtensor/scheme/scheme.hpp>
#include <qtensor/simd/arch.hpp>
#include <qtensor/simd/nibbles.hpp>
#include <qtensor/simd/ops.hpp>
#include <qtensor/simd/ops_packed.hpp>

// A decoder turns 4 * lanes codes into four batches of their exact values: NaN, infinities, -0 and subnormals are those
// of decode_table.
namespace qtensor::inline QTENSOR_ABI::simd {

/// 4 * lanes codes in memory, one per byte; the upper bits of narrow ones are clean.
template <usable_arch A>
struct code_bytes {
  const std::uint8_t* from;

  QTENSOR_INLINE bytes<A> batch() const { return simd::load<A>(from); }
  /// Them in memory, one per byte: `room` is for 4 * lanes.
  QTENSOR_INLINE const std::uint8_t* each(std::uint8_t*) const { return from; }
};

/// 4 * lanes codes in memory, packed.
template <int Bits, usable_arch A>
struct code_bits {
  const std::uint8_t* from;

  QTENSOR_INLINE bytes<A> batch() const {
    if constexpr (spreads_codes<Bits, A>) {
      return simd::spread_codes<Bits, A>(from);
    } else {
      alignas(64) std::uint8_t room[static_cast<std::size_t>(4 * lanes<A>)];
      return simd::load<A>(each(room));
    }
  }
  QTENSOR_INLINE const std::uint8_t* each(std::uint8_t* room) const {
    if constexpr (spreads_codes<Bits, A>)
      simd::store(room, batch());
    else
      unpack_codes<A, Bits>(from, 4 * lanes<A>, room);
    return room;
  }
  /// Batch k as words, where that takes few instructions; bits above the codes are unspecified.
  static constexpr bool has_words = Bits == 4 && std::same_as<A, avx512_arch>;
  QTENSOR_INLINE words<A> word(int k) const requires has_words {
    return simd::nibble_words<A>(from + k * lanes<A> / 2);
  }
};

/// The zero points of formats and schemes without any.
template <usable_arch A>
struct no_zero_points {
  QTENSOR_INLINE ints<A> operator()(int) const { return ints<A>(0); }
};

/// How codes of F lie in memory.
template <class F, class A>
using codes_of = std::conditional_t<F::bits % 8 == 0, code_bytes<A>, code_bits<F::bits, A>>;

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

/// The top bit of a code is a sign, for all codes but that of -0 (0x80 of 8 bits), which may have a meaning of its own.
template <class F>
inline constexpr std::size_t sign_code = decode_table<F>.size() / 2;
template <class F>
inline constexpr bool is_mirrored = [] {
  for (std::size_t c = 1; c < sign_code<F>; ++c)
    if (bits_of(decode_table<F>[c + sign_code<F>]) != (bits_of(decode_table<F>[c]) ^ sign_bit)) return false;
  return true;
}();
template <class F>
inline constexpr bool has_negative_zero = bits_of(decode_table<F>[sign_code<F>]) ==
                                          (bits_of(decode_table<F>[0]) ^ sign_bit);

/// Biased exponents of the finite values of F but 0; none of formats of more than 8 bits.
struct exponent_range {
  int low = 255, high = 0;
};
template <class F>
inline constexpr exponent_range exponents_of = [] {
  exponent_range range;
  if constexpr (F::bits > 8)
    return range;
  else
    for (const float v : decode_table<F>) {
      const int e = static_cast<int>((bits_of(v) & magnitude_bits) >> 23);
      if (v == 0.f || e == 255) continue;
      range.low = e < range.low ? e : range.low;
      range.high = e > range.high ? e : range.high;
    }
  return range;
}();

/// No code is an infinity or a NaN.
template <class F>
inline constexpr bool is_finite_format = [] {
  for (const float v : decode_table<F>)
    if (!is_finite(v)) return false;
  return true;
}();

/// Tables of 128 bytes take few instructions.
template <class A>
inline constexpr bool has_long_tables = (std::same_as<A, avx512_arch> && features::vbmi) || std::same_as<A, neon_arch>;

/// They are made of tables of 16 bytes, in less time than numbers are looked up one by one.
template <class A>
inline constexpr bool has_shuffles = std::same_as<A, avx2_arch> || std::same_as<A, sse42_arch>;

/// How the magnitudes of an 8-bit format come out of their eighths: sixteen runs of eight codes, whose exponents and
/// fractions (the 7 bits of bf16) follow one of four patterns, read in an order of its own and from a first exponent
/// on. One code may be infinity, which no pattern has.
struct code_eighths {
  std::array<std::uint8_t, 16> first{};    ///< exponents, to which those of a pattern are added modulo 256
  std::array<std::uint8_t, 16> pattern{};  ///< its number, in bits 3 and 7; what the lower 3 bits of codes differ by
  std::array<std::array<std::uint8_t, 16>, 2> exponents{}, fractions{};  ///< patterns 0 and 1, patterns 2 and 3
  std::uint32_t infinity = 0;                                            ///< 0: none
};
/// That of F, if it has one.
template <class F>
inline constexpr auto find_eighths = []() -> std::optional<code_eighths> {
  if constexpr (F::bits != 8 || !fits_bf16<F> || !is_mirrored<F>) {
    return std::nullopt;
  } else {
    code_eighths all;
    const auto is_special = [](std::uint32_t code) { return !is_finite(decode_table<F>[code]); };
    const auto exponent = [](std::uint32_t code) {
      return static_cast<std::uint8_t>(bits_of(decode_table<F>[code]) >> 23);
    };
    const auto fraction = [](std::uint32_t code) {
      return static_cast<std::uint8_t>(bits_of(decode_table<F>[code]) >> 16 & 0x7f);
    };
    std::uint32_t patterns = 0;
    for (std::uint32_t run = 0; run < 16; ++run) {
      bool found = false;
      for (std::uint32_t k = 0; k <= patterns && !found; ++k) {
        if (k == 4) return std::nullopt;
        auto *e = all.exponents[k / 2].data() + k % 2 * 8, *f = all.fractions[k / 2].data() + k % 2 * 8;
        if (k == patterns) {  // a new one
          for (std::uint32_t i = 0; i < 8; ++i) {
            if (is_special(8 * run + i)) return std::nullopt;
            e[i] = static_cast<std::uint8_t>(exponent(8 * run + i) - exponent(8 * run + 1));
            f[i] = fraction(8 * run + i);
          }
          ++patterns;
        }
        for (std::uint32_t flip = 0; flip < 8 && !found; ++flip) {
          const auto first = static_cast<std::uint8_t>(exponent(8 * run) - e[flip]);
          found = true;
          for (std::uint32_t i = 0; i < 8; ++i)
            found = found && (is_special(8 * run + i) ||
                              (exponent(8 * run + i) == static_cast<std::uint8_t>(first + e[i ^ flip]) &&
                               fraction(8 * run + i) == f[i ^ flip]));
          all.first[run] = first;
          all.pattern[run] = static_cast<std::uint8_t>(flip | (k % 2) << 3 | (k / 2) << 7);
        }
      }
      for (std::uint32_t code = 8 * run; code < 8 * run + 8; ++code)
        if (is_special(code)) {
          if (all.infinity != 0 || decode_table<F>[code] != infinity) return std::nullopt;
          all.infinity = code;
        }
    }
    return all;
  }
}();

/// 8-bit minifloats whose planes follow from bits of the code, but at the edges: the eight least magnitudes and the
/// eight largest.
///   high plane = high[bits [top, top + 4) of the code] ^ edge_high[edge]
///   low plane  = (code << shift) ^ flipped             ^ edge_low[edge]
/// `edge` is the magnitude + 8 modulo 128, and the tables are 0 from 16 on.
struct code_edges {
  int top, shift;  ///< top 4: with the sign
  std::uint8_t flipped;
  std::array<std::uint8_t, 16> high{}, edge_high{}, edge_low{};
};
/// Those of F by such bits, if its planes are like that.
template <class F, int Top>
constexpr std::optional<code_edges> edges_by() {
  const auto high = [](std::uint32_t c) { return byte_plane<F, 24>[c]; };
  const auto low = [](std::uint32_t c) { return byte_plane<F, 16>[c]; };
  constexpr std::uint32_t end = Top == 4 ? 256 : 128, middle = 8;
  code_edges all{Top, 7 - F::mantissa_bits, 0, {}, {}, {}};
  const auto moved = [&](std::uint32_t c) { return static_cast<std::uint8_t>(c << all.shift); };
  all.flipped = static_cast<std::uint8_t>(low(middle) ^ moved(middle));
  std::array<bool, 16> known{};
  for (std::uint32_t c = 0; c < end; ++c) {
    const std::uint32_t edge = (c + 8) % 128, run = c >> Top;
    if (edge < 16) continue;
    if (known[run] && all.high[run] != high(c)) return std::nullopt;
    if ((moved(c) ^ all.flipped) != low(c)) return std::nullopt;
    all.high[run] = high(c), known[run] = true;
  }
  for (std::uint32_t c = 0; c < end; ++c) {
    const std::uint32_t edge = (c + 8) % 128;
    if (edge >= 16 || c == sign_code<F>) continue;  // that one is mended where it is not -0
    const auto h = static_cast<std::uint8_t>(high(c) ^ all.high[c >> Top]);
    const auto l = static_cast<std::uint8_t>(low(c) ^ moved(c) ^ all.flipped);
    if (c >= 128 && (all.edge_high[edge] != h || all.edge_low[edge] != l)) return std::nullopt;
    all.edge_high[edge] = h, all.edge_low[edge] = l;
  }
  return all;
}
template <class F>
inline constexpr std::optional<code_edges> find_edges = [] {
  std::optional<code_edges> found;
  if constexpr (minifloat_format<F> && F::bits == 8 && F::mantissa_bits <= 6 && fits_bf16<F> && is_mirrored<F>) {
    found = edges_by<F, 4>();
    if (!found) found = edges_by<F, 3>();
  }
  return found;
}();

enum class decoding {
  integers,
  wide_floats,
  planes,
  mirrored_planes,
  edges,
  sixteenths,
  eighths,
  few_floats,
  many_floats
};

/// How codes of F become floats with architecture A.
template <class F, class A>
constexpr decoding decoding_of() {
  if constexpr (F::is_integer || requires { F::fraction_bits; }) {
    return decoding::integers;
  } else if constexpr (F::bits > 8) {
    return decoding::wide_floats;
  } else if constexpr (F::bits < 8) {
    constexpr bool few = F::bits == 4 && (std::same_as<A, avx512_arch> || !fits_bf16<F>);
    return few ? decoding::few_floats : fits_bf16<F> ? decoding::planes : decoding::many_floats;
  } else if constexpr (!fits_bf16<F>) {
    return decoding::many_floats;
  } else if constexpr (has_long_tables<A>) {
    return is_mirrored<F> ? decoding::mirrored_planes : decoding::planes;
  } else if constexpr (minifloat_format<F>) {
    return find_edges<F>.has_value()                 ? decoding::edges
           : is_mirrored<F> && F::mantissa_bits <= 4 ? decoding::sixteenths
                                                     : decoding::many_floats;
  } else {
    constexpr bool shuffles = is_mirrored<F> && has_shuffles<A>;
    return shuffles && find_eighths<F>.has_value() ? decoding::eighths
           : shuffles                              ? decoding::mirrored_planes
                                                   : decoding::many_floats;
  }
}

/// The same where values are wanted as two bytes.
template <class F, class A>
constexpr decoding planes_of() {
  constexpr decoding how = decoding_of<F, A>();
  if constexpr (how == decoding::few_floats)
    return fits_bf16<F> ? decoding::planes : how;
  else
    return how;
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

/// Code 0x80 is mended where it is not -0.
template <class F, class A>
QTENSOR_INLINE byte_planes<A> with_zero(const bytes<A>& codes, bytes<A> high, bytes<A> low) {
  if constexpr (!has_negative_zero<F>) {
    const auto at = codes == bytes<A>(std::uint8_t{0x80});
    high = simd::select(at, bytes<A>(byte_plane<F, 24>[128]), high);
    low = simd::select(at, bytes<A>(byte_plane<F, 16>[128]), low);
  }
  return {high, low};
}
/// The sign of mirrored codes joins the upper plane.
template <class F, class A>
QTENSOR_INLINE byte_planes<A> with_signs(const bytes<A>& codes, const bytes<A>& high, const bytes<A>& low) {
  return with_zero<F>(codes, high | (codes & bytes<A>(std::uint8_t{0x80})), low);
}
template <class A>
QTENSOR_INLINE std::array<floats<A>, 4> floats_of(const byte_planes<A>& p) {
  return simd::floats_from_planes(p.high, p.low);
}

template <class Codes>
inline constexpr bool has_words = requires(const Codes& c) {
  c.word(0);
};

template <class F, class A, decoding How>
struct value_decoder;

/// Integers of 16 and 32 bits, in the bytes that they are. (Zero points are subtracted in 32 bits: callers see to it
/// that differences fit.)
template <class F, class A>
requires(F::bits > 8) struct value_decoder<F, A, decoding::integers> {
  static QTENSOR_INLINE ints<A> count(const std::uint8_t* codes) {
    if constexpr (F::bits == 32)
      return simd::load<A>(reinterpret_cast<const std::int32_t*>(codes));
    else if constexpr (F::is_signed)
      return simd::widen_i16<A>(reinterpret_cast<const std::int16_t*>(codes));
    else
      return simd::bits_as<std::int32_t>(simd::widen_u16<A>(reinterpret_cast<const std::uint16_t*>(codes)));
  }
  template <class Zero>
  QTENSOR_INLINE std::array<floats<A>, 4> operator()(const code_bytes<A>& codes, const Zero& zero) const {
    std::array<floats<A>, 4> v;
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) {
      ints<A> c = count(codes.from + F::bits / 8 * k * lanes<A>);
      if constexpr (!std::same_as<Zero, no_zero_points<A>>) c = c - zero(k);
      v[static_cast<std::size_t>(k)] = simd::to_float(c);
    }
    return v;
  }
};
/// Floats of 16 bits; of NaN the sign counts.
template <class F, class A>
struct value_decoder<F, A, decoding::wide_floats> {
  template <class Zero>
  QTENSOR_INLINE std::array<floats<A>, 4> operator()(const code_bytes<A>& codes, const Zero&) const {
    const auto* from = reinterpret_cast<const std::uint16_t*>(codes.from);
    std::array<floats<A>, 4> v;
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) v[static_cast<std::size_t>(k)] = source_of<F>::template load<A>(from + k * lanes<A>);
    const auto numbers = [&](std::size_t k) QTENSOR_INLINE_LAMBDA { return simd::mask_as<std::int32_t>(v[k] == v[k]); };
    if (!simd::all(numbers(0) & numbers(1) & numbers(2) & numbers(3))) [[unlikely]] {
#pragma GCC unroll 4
      for (std::size_t k = 0; k < 4; ++k) {
        const words<A> sign = simd::bits_as<std::uint32_t>(v[k]) & words<A>(sign_bit);
        v[k] = simd::select(v[k] == v[k], v[k], simd::bits_as<float>(sign | words<A>(bits_of(quiet_nan))));
      }
    }
    return v;
  }
};
/// Narrower integers; a zero point is subtracted exactly, before the conversion.
template <class F, class A>
requires(F::bits <= 8) struct value_decoder<F, A, decoding::integers> {
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
  /// Sixteen values, or counts in the bits of floats, for words whose upper bits are unspecified.
  struct few {
    alignas(64) std::array<float, 16> values{}, counts{};
    constexpr few() {
      for (std::uint32_t c = 0; c < 16; ++c) {
        values[c] = decode_table<F>[c % decode_table<F>.size()];
        counts[c] = std::bit_cast<float>(static_cast<std::int32_t>(c) - (F::is_signed && c >= 8 ? 16 : 0));
      }
    }
  };
  static constexpr few table{};

  template <class Codes, class Zero>
  QTENSOR_INLINE std::array<floats<A>, 4> operator()(const Codes& codes, const Zero& zero) const {
    constexpr bool plain = std::same_as<Zero, no_zero_points<A>>;
    if constexpr (plain && F::bits <= 4 && !has_words<Codes> && has_shuffles<A>)
      return value_decoder<F, A, decoding::planes>{}(codes, zero);
    std::array<floats<A>, 4> v;
    alignas(64) std::uint8_t room[static_cast<std::size_t>(4 * lanes<A>)];
    [[maybe_unused]] const std::uint8_t* each = nullptr;
    if constexpr (!has_words<Codes>) each = codes.each(room);
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) {
      if constexpr (has_words<Codes> && plain) {
        v[k] = simd::float_table16<A>(table.values.data())(codes.word(k));
        continue;
      }
      ints<A> c;
      if constexpr (has_words<Codes>)
        c = simd::bits_as<std::int32_t>(simd::float_table16<A>(table.counts.data())(codes.word(k)));
      else
        c = count(each + k * lanes<A>);
      v[k] = simd::to_float(c - zero(k));
      if constexpr (requires { F::fraction_bits; }) v[k] = simd::mul(v[k], floats<A>(exp2i(-F::fraction_bits)));
    }
    return v;
  }
};

/// Two byte look-ups for all codes of the format, or for their magnitudes where longer tables cost more.
template <class F, class A>
struct value_decoder<F, A, decoding::planes> {
  static constexpr bool looks_magnitudes_up = F::bits == 6 && has_shuffles<A> && is_mirrored<F> && has_negative_zero<F>;
  static constexpr int entries = looks_magnitudes_up ? 32 : std::max(1 << F::bits, 16);
  simd::byte_table<A, entries> high{part_of_plane<F, 24, 0, entries>.data()},
      low{part_of_plane<F, 16, 0, entries>.data()};

  QTENSOR_INLINE byte_planes<A> planes(const bytes<A>& c) const {
    if constexpr (looks_magnitudes_up) {
      const bytes<A> m = c & bytes<A>(std::uint8_t{0x1f});
      const words<A> sign = (simd::bits_as<std::uint32_t>(c) << 2) & words<A>(0x80808080u);
      return {high(m) | simd::bits_as<std::uint8_t>(sign), low(m)};
    } else {
      return {high(c), low(c)};
    }
  }
  template <class Codes, class Zero>
  QTENSOR_INLINE std::array<floats<A>, 4> operator()(const Codes& codes, const Zero&) const {
    return floats_of(planes(simd::order_for_floats(codes.batch())));
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
  template <class Codes, class Zero>
  QTENSOR_INLINE std::array<floats<A>, 4> operator()(const Codes& codes, const Zero&) const {
    return floats_of(planes(simd::order_for_floats(codes.batch())));
  }
};

/// Minifloats of 8 bits where only tables of 16 bytes are cheap.
template <class F, class A>
struct value_decoder<F, A, decoding::edges> {
  static constexpr code_edges edges = *find_edges<F>;
  simd::byte_table<A, 16> high{edges.high.data()}, edge_high{edges.edge_high.data()}, edge_low{edges.edge_low.data()};

  template <class Codes, class Zero>
  QTENSOR_INLINE std::array<floats<A>, 4> operator()(const Codes& codes, const Zero&) const {
    return floats_of(planes(simd::order_for_floats(codes.batch())));
  }
  QTENSOR_INLINE byte_planes<A> planes(const bytes<A>& c) const {
    const auto byte = [](std::uint32_t v) { return bytes<A>(static_cast<std::uint8_t>(v)); };
    const auto each = [](std::uint32_t v) { return words<A>(v * 0x01010101u); };
    const auto bytes_of = [](const words<A>& v) QTENSOR_INLINE_LAMBDA { return simd::bits_as<std::uint8_t>(v); };
    const words<A> w = simd::bits_as<std::uint32_t>(c);
    const bytes<A> edge = ((c + byte(8)) & byte(0x7f)) + byte(0x70);  // 128 and more in the middle
    const bytes<A> h = high(bytes_of((w >> edges.top) & each(0x0f))) ^ edge_high(edge);
    bytes<A> l = bytes_of((w << edges.shift) & each(0xffu << edges.shift & 0xffu)) ^ edge_low(edge);
    if constexpr (edges.flipped != 0) l = l ^ byte(edges.flipped);
    if constexpr (edges.top == 4)
      return with_zero<F>(c, h, l);
    else
      return with_signs<F>(c, h, l);
  }
};

/// Those with more than eight codes of a kind at an edge: the planes are arithmetic for ordinary codes, the first 16
/// (subnormals) and the last 16 (infinity and NaN) are looked up.
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

  template <class Codes, class Zero>
  QTENSOR_INLINE std::array<floats<A>, 4> operator()(const Codes& codes, const Zero&) const {
    return floats_of(planes(simd::order_for_floats(codes.batch())));
  }
  QTENSOR_INLINE byte_planes<A> planes(const bytes<A>& c) const {
    const auto byte = [](std::uint32_t v) { return bytes<A>(static_cast<std::uint8_t>(v)); };
    const bytes<A> magnitude = c & byte(0x7f), index = c & byte(0x0f);
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
    return with_signs<F>(c, high, low);
  }
};

/// 8-bit floats of other forms where only tables of 16 bytes are cheap: exponents and fractions by their eighths.
template <class F, class A>
struct value_decoder<F, A, decoding::eighths> {
  static constexpr code_eighths eighths = *find_eighths<F>;
  simd::byte_table<A, 16> first{eighths.first.data()}, pattern{eighths.pattern.data()};
  simd::byte_table<A, 16> exponents0{eighths.exponents[0].data()}, exponents1{eighths.exponents[1].data()},
      fractions0{eighths.fractions[0].data()}, fractions1{eighths.fractions[1].data()};

  template <class Codes, class Zero>
  QTENSOR_INLINE std::array<floats<A>, 4> operator()(const Codes& codes, const Zero&) const {
    return floats_of(planes(simd::order_for_floats(codes.batch())));
  }
  QTENSOR_INLINE byte_planes<A> planes(const bytes<A>& c) const {
    const auto byte = [](std::uint32_t v) { return bytes<A>(static_cast<std::uint8_t>(v)); };
    const auto words_of = [](const bytes<A>& v) QTENSOR_INLINE_LAMBDA { return simd::bits_as<std::uint32_t>(v); };
    const auto bytes_of = [](const words<A>& v) QTENSOR_INLINE_LAMBDA { return simd::bits_as<std::uint8_t>(v); };
    const bytes<A> run = bytes_of((words_of(c) >> 3) & words<A>(0x0f0f0f0fu));
    // One of the two has the upper bit, for which tables of 16 give 0.
    const bytes<A> in0 = (c & byte(7)) ^ pattern(run), in1 = in0 ^ byte(0x80);
    bytes<A> exponent = first(run) + (exponents0(in0) | exponents1(in1)), fraction = fractions0(in0) | fractions1(in1);
    if constexpr (eighths.infinity != 0) {
      const bytes<A> at = simd::select((c & byte(0x7f)) == byte(eighths.infinity), byte(0xff), byte(0));
      exponent = exponent | at, fraction = fraction & ~at;
    }
    const bytes<A> high = bytes_of((words_of(exponent) >> 1) & words<A>(0x7f7f7f7fu)),
                   low = bytes_of((words_of(exponent) << 7) & words<A>(0x80808080u)) | fraction;
    return with_signs<F>(c, high, low);
  }
};

/// Sixteen floats kept in registers.
template <class F, class A>
struct value_decoder<F, A, decoding::few_floats> {
  simd::float_table16<A> table{decode_table<F>.data()};

  template <class Codes, class Zero>
  QTENSOR_INLINE std::array<floats<A>, 4> operator()(const Codes& codes, const Zero&) const {
    std::array<floats<A>, 4> v;
    alignas(64) std::uint8_t room[static_cast<std::size_t>(4 * lanes<A>)];
    [[maybe_unused]] const std::uint8_t* each = nullptr;
    if constexpr (!has_words<Codes>) each = codes.each(room);
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) {
      if constexpr (has_words<Codes>)
        v[k] = table(codes.word(k));
      else
        v[k] = table(simd::widen_u8<A>(each + k * lanes<A>));
    }
    return v;
  }
};

/// A load for each value.
template <class F, class A>
struct value_decoder<F, A, decoding::many_floats> {
  template <class Codes, class Zero>
  QTENSOR_INLINE std::array<floats<A>, 4> operator()(const Codes& codes, const Zero&) const {
    std::array<floats<A>, 4> v;
    alignas(64) std::uint8_t room[static_cast<std::size_t>(4 * lanes<A>)];
    const std::uint8_t* each = codes.each(room);
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) v[k] = simd::lookup<A>(decode_table<F>.data(), simd::widen_u8<A>(each + k * lanes<A>));
    return v;
  }
};

}  // namespace detail

/// Formats with a vector decoder: 2 to 8 bits, whatever they mean; and those of wide_code_format.
template <class F>
concept vector_decodable_format = format<F> && F::bits >= 2 && F::bits <= 8;

/// Schemes with one: their codes lie in order in an array of their own.
template <class S>
concept vector_decodable = quantization_scheme<S> && std::same_as<typename S::layout, planar<low_first>> &&
    (vector_decodable_format<typename S::code_format> || wide_code_format<typename S::code_format>);

/// decoder(codes, zero) gives the values of 4 * lanes codes (code_bytes, code_bits): decode<F>(code), for integers
/// code - zero(k) in batch k. It holds its tables: make one for a run. Cost for 4 batches: integers 8, 8-bit floats 12
/// with tables of 128 bytes (AVX-512 VBMI, NEON), without 20 (HiFloat8 30); 4 bits 12.
template <format F, usable_arch A>
requires(vector_decodable_format<F> ||
         wide_code_format<F>) using decoder = detail::value_decoder<F, A, detail::decoding_of<F, A>()>;

/// The same where values are wanted as two bytes, if F's are bf16 numbers: its planes(codes) are theirs.
template <vector_decodable_format F, usable_arch A>
using plane_decoder = detail::value_decoder<F, A, detail::planes_of<F, A>()>;
template <class F, class A>
concept bf16_decodable = vector_decodable_format<F> && usable_arch<A> &&
    requires(const plane_decoder<F, A>& d, bytes<A> c) {
  d.planes(c);
};

}  // namespace qtensor::inline QTENSOR_ABI::simd
