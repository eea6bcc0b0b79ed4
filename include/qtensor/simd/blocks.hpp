// Interleaved blocks to floats: scales and codes that share memory are split, many blocks at a time, and decoded.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <qtensor/reference/quantize.hpp>
#include <qtensor/simd/block_arrays.hpp>
#include <qtensor/simd/decode.hpp>
#include <qtensor/simd/kernel.hpp>
#include <qtensor/simd/memory.hpp>
#include <qtensor/simd/nibbles.hpp>
#include <qtensor/simd/scales.hpp>

// A run of blocks is one row, or rows without gaps; it starts at any byte. Groups are short: their codes pass through a
// buffer in L1, one per byte, where whole batches are read and written.
namespace qtensor::inline QTENSOR_ABI::simd {

namespace detail {

/// S with its groups along the only axis of a row.
template <class S, class G>
struct row_scheme {
  using type = qtensor::with<S, G>;
};
template <class S>
struct row_scheme<S, typename S::granularity_type> {
  using type = S;
};
template <class S, class G>
requires(std::same_as<stored<S>, S> && !std::same_as<G, typename S::granularity_type>) struct row_scheme<S, G> {
  using type = stored<qtensor::with<S, static_only, G>>;
};

/// The blocks of an interleaved scheme.
template <class S>
struct blocks_of {
  using place = interleaved_block<S>;
  using code = typename S::code_format;
  using order = typename S::layout::order;
  static constexpr int bits = code::bits;
  static constexpr index_t group = static_group<typename S::granularity_type>, groups = place::groups,
                           elements = groups * group;
  static constexpr index_t code_bytes = place::code_bytes({}), bytes = place::bytes({});
  /// n elements in such blocks as a tensor.
  template <class Access>
  static constexpr auto row(auto* memory, index_t n) {
    using extents = qtensor::extents<dynamic>;
    using scheme = typename row_scheme<S, qtensor::group<group>>::type;
    return basic_tensor_view<scheme, extents, row_major, Access>({extents(n), {}, {}}, {memory, {}, {}, {}, {}});
  }
};

/// Sizes that kernels take: groups of whole batches, that fill whole chunks with whole batches of groups.
inline constexpr index_t block_chunk = 2048;
template <class S>
constexpr bool has_regular_blocks() {
  if constexpr (!S::is_interleaved || S::code_format::bits > 8) {
    return false;
  } else {
    constexpr index_t n = static_group<typename S::granularity_type>;
    if constexpr (n > 0)
      return n % 16 == 0 && block_chunk % (16 * n) == 0 && 4 % blocks_of<S>::groups == 0;
    else
      return false;
  }
}

/// Code c is the number c above the lowest one.
template <class F>
inline constexpr bool counts_from_lowest = [] {
  if constexpr (F::bits <= 8)
    for (std::size_t c = 0; c < decode_table<F>.size(); ++c)
      if (decode_table<F>[c] != static_cast<float>(F::min) + static_cast<float>(c)) return false;
  return F::bits <= 8;
}();

// ---- The codes of one group, one per byte <-> as the layout has them ------------------------------------------------

inline std::uint64_t load_eight(const std::uint8_t* from) {
  std::uint64_t v;
  std::memcpy(&v, from, 8);
  return v;
}
inline void store_eight(std::uint8_t* to, std::uint64_t v) { std::memcpy(to, &v, 8); }
constexpr std::uint64_t eight_of(std::uint64_t byte) { return byte * 0x0101010101010101u; }

/// Sixteen bytes at a time, where compilers would take eight.
using sixteen_bytes [[gnu::vector_size(16)]] = std::uint8_t;
inline sixteen_bytes load_sixteen(const std::uint8_t* from) {
  sixteen_bytes v;
  std::memcpy(&v, from, 16);
  return v;
}
inline void store_sixteen(std::uint8_t* to, sixteen_bytes v) { std::memcpy(to, &v, 16); }
/// The low halves of bytes become their upper ones. (g++ takes shifts of bytes apart.)
inline sixteen_bytes raised_nibbles(sixteen_bytes v) {
  using words [[gnu::vector_size(16)]] = std::uint64_t;
  return reinterpret_cast<sixteen_bytes>(reinterpret_cast<words>(v & 15) << 4);
}

/// The code of a parameter to where it belongs: in one store where bytes run that way.
template <class F>
QTENSOR_INLINE void store_parameter(std::uint8_t* to, std::uint32_t code) {
  if constexpr (std::endian::native == std::endian::little)
    std::memcpy(to, &code, sizeof(storage_t<F>));
  else
    qtensor::detail::store_unit<F>(to, code);
}

/// Bit 4 of eight codes as a byte, and back: code k's is bit k.
constexpr std::uint8_t fifth_bits(std::uint64_t codes) {
  return static_cast<std::uint8_t>(((codes >> 4 & eight_of(1)) * 0x0102040810204080u) >> 56);
}
constexpr std::uint64_t spread_fifth_bits(std::uint8_t bits) {
  const std::uint64_t each = eight_of(bits) & 0x8040201008040201u;  // bit k of byte k
  return ((each + eight_of(0x7f)) >> 3) & eight_of(0x10);
}

template <class S>
inline constexpr bool has_halves = blocks_of<S>::group % 16 == 0 && std::endian::native == std::endian::little &&
                                   ((std::same_as<typename S::layout::order, split_halves> &&
                                     S::code_format::bits == 4) ||
                                    std::same_as<typename S::layout::order, high_bits_then_halves>);

template <class S, class A>
QTENSOR_INLINE void join_codes(const std::uint8_t* codes, std::uint8_t* to) {
  using b = blocks_of<S>;
  constexpr index_t half = b::group / 2;
  if constexpr (b::bits == 8) {
    std::memcpy(to, codes, static_cast<std::size_t>(b::group));
  } else if constexpr (has_halves<S>) {
    if constexpr (b::bits == 5)
      for (index_t i = 0; i < b::group; i += 8) *to++ = fifth_bits(load_eight(codes + i));
    constexpr index_t wide = half / 16 * 16;
    for (index_t i = 0; i < wide; i += 16)
      store_sixteen(to + i, (load_sixteen(codes + i) & 15) | raised_nibbles(load_sixteen(codes + half + i)));
    for (index_t i = wide; i < half; i += 8)
      store_eight(to + i, (load_eight(codes + i) & eight_of(15)) | (load_eight(codes + half + i) & eight_of(15)) << 4);
  } else if constexpr (std::same_as<typename b::order, low_first> && packs_codes<b::bits>) {
    pack_codes<A, b::bits>(codes, b::group, to);
  } else if constexpr (std::same_as<typename b::order, high_first> && (b::bits == 4 || b::bits == 2)) {
    pack_codes<A, b::bits>(codes, b::group, to);
    turn_codes<A, b::bits>(to, b::code_bytes, to);
  } else {
    std::memset(to, 0, static_cast<std::size_t>(b::code_bytes));
    for (index_t i = 0; i < b::group; ++i)
      qtensor::detail::store_bits<b::bits>(to, b::order::bit(i, b::group, b::bits), codes[i]);
  }
}

template <class S, class A>
QTENSOR_INLINE void split_codes(const std::uint8_t* from, std::uint8_t* codes) {
  using b = blocks_of<S>;
  constexpr index_t half = b::group / 2;
  if constexpr (b::bits == 8) {
    std::memcpy(codes, from, static_cast<std::size_t>(b::group));
  } else if constexpr (has_halves<S>) {
    const auto fifth = [&](index_t i) QTENSOR_INLINE_LAMBDA {
      return b::bits == 5 ? spread_fifth_bits(from[i / 8]) : std::uint64_t{0};
    };
    const std::uint8_t* nibbles = from + (b::bits == 5 ? b::group / 8 : 0);
    constexpr index_t wide = b::bits == 4 ? half / 16 * 16 : 0;
#pragma GCC unroll 4
    for (index_t i = 0; i < wide; i += 16) {
      const sixteen_bytes v = load_sixteen(nibbles + i);
      store_sixteen(codes + i, v & 15);
      store_sixteen(codes + half + i, v >> 4);
    }
    for (index_t i = wide; i < half; i += 8) {
      const std::uint64_t v = load_eight(nibbles + i);
      store_eight(codes + i, (v & eight_of(15)) | fifth(i));
      store_eight(codes + half + i, (v >> 4 & eight_of(15)) | fifth(half + i));
    }
  } else if constexpr (std::same_as<typename b::order, low_first> && packs_codes<b::bits>) {
    unpack_codes<A, b::bits>(from, b::group, codes);
  } else if constexpr (std::same_as<typename b::order, high_first> && (b::bits == 4 || b::bits == 2)) {
    std::uint8_t turned[static_cast<std::size_t>(b::code_bytes)];
    turn_codes<A, b::bits>(from, b::code_bytes, turned);
    unpack_codes<A, b::bits>(turned, b::group, codes);
  } else {
    for (index_t i = 0; i < b::group; ++i)
      codes[i] =
          static_cast<std::uint8_t>(qtensor::detail::load_bits<b::bits>(from, b::order::bit(i, b::group, b::bits)));
  }
}

template <class S>
inline constexpr bool has_bit_order = requires(index_t i) {
  S::layout::order::bit(i, i, 4);
};

// ---- Decode --------------------------------------------------------------------------------------------------------

/// Values of codes, one per byte, four batches at a time.
template <class F, class A>
struct block_values {
  decoder<F, A> table;
  QTENSOR_INLINE std::array<floats<A>, 4> operator()(const std::uint8_t* codes) const {
    return table(code_bytes<A>{codes}, no_zero_points<A>{});
  }
};
template <class F, class A>
requires counts_from_lowest<F>
struct block_values<F, A> {
  QTENSOR_INLINE std::array<floats<A>, 4> operator()(const std::uint8_t* codes) const {
    std::array<floats<A>, 4> v;
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k)
      v[k] = simd::to_float(simd::bits_as<std::int32_t>(simd::widen_u8<A>(codes + k * lanes<A>)) +
                            ints<A>(static_cast<std::int32_t>(F::min)));
    return v;
  }
};

template <class S, class A>
class block_decoder {
  using b = blocks_of<S>;
  using scale_format = typename S::scale_format;
  using offset_format = typename S::offset_format;
  static constexpr index_t step = 4 * lanes<A>, most = block_chunk / b::group;
  static constexpr std::size_t offset_room = S::has_offset ? static_cast<std::size_t>(most + step / b::group + 1) : 1;

 public:
  /// At most block_chunk elements.
  template <number_format F>
  void chunk(const std::uint8_t* from, index_t blocks, storage_t<F>* out, traffic t) {
    const index_t n = blocks * b::elements, whole = n / step * step;
    find_parameters(from, blocks);
    if (std::same_as<F, bf16> && !S::has_offset && products_are_plain<S, A>(scales_, n / b::group, 1.f))
      values<F, numbers_are::plain>(from, blocks, whole, out, t);
    else
      values<F, numbers_are::any>(from, blocks, whole, out, t);
    if (whole == n) return;
    std::memset(codes_ + n, 0, static_cast<std::size_t>(whole + step - n));
    std::fill(scales_ + n / b::group, scales_ + divide_up(whole + step, b::group), 0.f);
    if constexpr (S::has_offset) std::fill(offsets_ + n / b::group, offsets_ + divide_up(whole + step, b::group), 0.f);
    storage_t<F> last[static_cast<std::size_t>(step)];
    store_four<F, numbers_are::any, A>(last, four(whole));
    std::copy_n(last, n - whole, out + whole);
  }

 private:
  void find_parameters(const std::uint8_t* from, index_t blocks) {
    storage_t<scale_format> units[static_cast<std::size_t>(most)];
    [[maybe_unused]] qtensor::detail::unit_t<offset_format> offset_units[offset_room];
    index_t g = 0;
    QTENSOR_KEEP_LOOP
    for (index_t block = 0; block < blocks; ++block, from += b::bytes)
#pragma GCC unroll 4
      for (index_t k = 0; k < b::groups; ++k, ++g) {
        std::memcpy(units + g, from + k * b::place::scale_bytes, sizeof *units);
        if constexpr (S::has_offset) std::memcpy(offset_units + g, from + b::place::offset_at, sizeof *offset_units);
      }
    decode_scales<scale_format, A>(units, g, scales_);
    if constexpr (S::has_offset) decode_scales<offset_format, A>(offset_units, g, offsets_);
  }
  /// The first n values, whole steps; and all codes. Codes are taken apart a few blocks at a time, while others become
  /// values: different units of the CPU do it, as long as parts of registers have left the store buffer before they are
  /// loaded together.
  template <number_format F, numbers_are Known>
  QTENSOR_INLINE void values(const std::uint8_t* from, index_t blocks, index_t n, storage_t<F>* out, traffic t) {
    constexpr index_t piece = 8 * std::max(step, b::elements), of_piece = piece / b::elements;
    static_assert(piece % step == 0 && piece % b::elements == 0);
    for (index_t block = 0, i = 0; block < blocks; block += of_piece, i += piece) {
      QTENSOR_KEEP_LOOP
      for (index_t k = block; k < std::min(block + of_piece, blocks); ++k) {
        fetch_ahead<b::bytes>(from + k * b::bytes, t);
        split(from + k * b::bytes, k * b::elements);
      }
      for (index_t at = i; at < std::min(i + piece, n); at += step)
        store_four<F, Known, A>(out + at, four(at), t.streams);
    }
  }
  /// The codes of one block, one per byte.
  QTENSOR_INLINE void split(const std::uint8_t* block, index_t at) {
#pragma GCC unroll 4
    for (index_t k = 0; k < b::groups; ++k)
      split_codes<S, A>(block + b::place::codes_at + k * b::code_bytes, codes_ + at + k * b::group);
  }
  /// Values from element i on.
  QTENSOR_INLINE std::array<floats<A>, 4> four(index_t i) const {
    std::array<floats<A>, 4> v = value_(codes_ + i);
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) {
      const index_t g = (i + k * lanes<A>) / b::group;
      v[k] = simd::mul(v[k], floats<A>(scales_[g]));
      if constexpr (S::has_offset) v[k] = simd::add(v[k], floats<A>(offsets_[g]));
    }
    return v;
  }

  const block_values<typename S::code_format, A> value_{};
  alignas(64) float scales_[static_cast<std::size_t>(most + step / b::group + 1)];
  alignas(64) float offsets_[offset_room];
  alignas(64) std::uint8_t codes_[static_cast<std::size_t>(block_chunk + step)];
};

}  // namespace detail

/// Interleaved schemes whose blocks vectors decode: groups of 16, 32, 64 or 128 along the row, at most four in a block,
/// codes that count up from the lowest value or are of any other format of 2 to 8 bits.
template <class S>
concept block_decodable = quantization_scheme<S> && detail::has_regular_blocks<S>() &&
    (detail::has_bit_order<S> || std::same_as<typename S::layout::order, high_bits_then_halves>)&&(
        S::code_format::bits != 8 ||
        std::same_as<typename S::layout::order, low_first>)&&(detail::counts_from_lowest<typename S::code_format> ||
                                                              vector_decodable_format<typename S::code_format>);

/// What one group of interleaved blocks has, the blocks of a row starting at `row`.
template <block_decodable S>
struct group_in_blocks {
  using b = detail::blocks_of<S>;
  static constexpr index_t elements = b::group;
  const std::uint8_t* block;
  index_t number;  ///< of the group in its block

  group_in_blocks(const std::uint8_t* row, index_t group)
      : block(row + group / b::groups * b::bytes), number(group % b::groups) {}
  /// The codes, one per byte, of a whole group.
  void codes(std::uint8_t* to) const {
    detail::split_codes<S, best_arch>(block + b::place::codes_at + number * b::code_bytes, to);
  }
  storage_t<typename S::scale_format> scale() const {
    return unit<typename S::scale_format>(number * b::place::scale_bytes);
  }
  qtensor::detail::unit_t<typename S::offset_format> offset() const requires(S::has_offset) {
    return unit<typename S::offset_format>(b::place::offset_at);
  }

 private:
  template <class F>
  storage_t<F> unit(index_t at) const {
    storage_t<F> u;
    std::memcpy(&u, block + at, sizeof u);
    return u;
  }
};

/// Values of the n elements whose blocks start at `bytes`; the last block may be short. Element i is
/// dequantize_element<S>, bit for bit, as bf16 or f16 rounded once more; only the sign and payload of a NaN that
/// comes of a NaN or infinite scale are the CPU's.
///
/// Reads the bytes of the codes and scales of n elements, writes out[0, n), past the caches on demand.
template <block_decodable S, usable_arch A = best_arch, number_format F = f32>
void decode_interleaved(const std::uint8_t* bytes, index_t n, storage_t<F>* out, bool past_caches = false) {
  using b = detail::blocks_of<S>;
  constexpr index_t most = detail::block_chunk / b::elements;
  const index_t blocks = n / b::elements;
  const traffic t = past_caches ? reads_once(begins_line(out, most * b::elements)) : traffic{};
  detail::block_decoder<S, A> decode;
  for (index_t first = 0; first < blocks; first += most)
    decode.template chunk<F>(bytes + first * b::bytes, std::min(most, blocks - first), out + first * b::elements, t);
  if (const index_t rest = n - blocks * b::elements; rest > 0)
    reference::dequantize(
        b::template row<read_only>(bytes + blocks * b::bytes, rest),
        [to = out + blocks * b::elements](const auto& i, float value) { to[i[0]] = round_to<F>(value); });
}

}  // namespace qtensor::inline QTENSOR_ABI::simd
