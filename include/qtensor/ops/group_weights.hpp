// Weights for products over groups of k: formats that count in powers of two, blocks of packed groups made ready.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <qtensor/ops/packed.hpp>
#include <qtensor/simd/decode.hpp>
#include <qtensor/simd/gemm_group_lines.hpp>
#include <qtensor/simd/gemm_groups_squares.hpp>
#include <qtensor/simd/kernel.hpp>
#include <qtensor/simd/quad_sums.hpp>
#include <qtensor/simd/scales.hpp>

namespace qtensor::inline QTENSOR_ABI {

namespace ops {

/// Codes of a format as integers in [-128, 127] times a power of two, where all of them are: e2m1 (units of 1/2), e2m3
/// (1/8), e1m2, mxint8, your own small ones; integers themselves.
template <format F>
struct counted_codes {
  static constexpr std::size_t size = std::size_t{1} << (F::bits <= 8 ? F::bits : 0);
  /// Values are numbers times 2^-shift; `none` where there is no such power.
  static constexpr int none = 1000;
  static constexpr int shift = [] {
    if (F::bits > 8) return none;
    for (int s = -30; s <= 30; ++s) {
      bool whole = true;
      for (std::size_t c = 0; c < size && whole; ++c) {
        const float v = decode<F>(static_cast<std::uint32_t>(c)) * exp2i(s);
        if (!(v >= -128.f && v <= 127.f)) return none;  // NaN too; larger powers only make it worse
        whole = v == static_cast<float>(static_cast<int>(v));
      }
      if (whole) return s;
    }
    return none;
  }();
  static constexpr bool exist = F::is_integer ? F::bits <= 8 : shift != none;
  static constexpr float unit = F::is_integer || !exist ? 1.f : exp2i(-shift);
  /// The number of every code of a format that is no integer.
  static constexpr auto numbers = [] {
    std::array<std::int8_t, 256> n{};
    if constexpr (!F::is_integer && shift != none)
      for (std::size_t c = 0; c < 256; ++c)
        n[c] = static_cast<std::int8_t>(decode<F>(static_cast<std::uint32_t>(c % size)) * exp2i(shift));
    return n;
  }();
  static constexpr int lowest = *std::min_element(numbers.begin(), numbers.end());
  static constexpr int highest = *std::max_element(numbers.begin(), numbers.end());
  /// Codes are their own numbers (mxint8).
  static constexpr bool plain = [] {
    for (std::size_t c = 0; c < 256; ++c)
      if (numbers[c] != static_cast<std::int8_t>(c)) return false;
    return F::bits == 8;
  }();
};

/// Weights that products over groups take: see counted_codes.
template <class S>
concept counted_weights = quantization_scheme<S> && counted_codes<typename S::code_format>::exist;

/// How the tiles of architecture A read weights of scheme S.
template <counted_weights S, simd::usable_arch A>
struct group_reading {
  using code_format = typename S::code_format;
  using code = packed_code<code_format>;
  using counted = counted_codes<code_format>;
  static constexpr int span = counted::highest - counted::lowest;
  static constexpr bool by_table = !code::is_integer && code::is_nibble && span <= 127;
  /// Codes become signed bytes before the tiles see them.
  static constexpr bool expands = !code::is_integer && !by_table && !counted::plain;
  static constexpr simd::quads_of quads = code::is_integer && code::is_nibble ? simd::quads_of::nibbles
                                          : !by_table                         ? simd::quads_of::bytes
                                          : span <= 31                        ? simd::quads_of::nibble_table
                                                                              : simd::quads_of::wide_nibble_table;
  /// What a weight in the tiles exceeds its number by, where zero points do not say it.
  static constexpr std::int32_t offset = simd::group_bias<A, quads> + (by_table            ? -counted::lowest
                                                                       : S::has_zero_point ? 0
                                                                                           : code::offset);
  static constexpr auto table = [] {
    std::array<std::uint8_t, 16> t{};
    for (std::size_t c = 0; c < 16; ++c) t[c] = static_cast<std::uint8_t>(counted::numbers[c] - counted::lowest);
    return t;
  }();
  /// The largest weight as a ready byte.
  static constexpr std::int32_t highest = code::is_integer && code::is_nibble ? 15 : by_table ? span : 255;
  /// Whether weights less the offset are signed bytes, as matrix registers take them: all but uint8 without zero
  /// points.
  static constexpr bool fits_signed_bytes = highest - offset <= 127;
  /// Bytes of a quad of a panel as tiles read it.
  static constexpr index_t quad_bytes = expands ? packed_layout<S, A>::width * 4 : packed_layout<S, A>::quad_bytes;
};

/// How lines of weights of scheme S, which are not packed, hold their groups: a step of lines has several short ones,
/// and long ones are whole steps.
template <counted_weights S, simd::usable_arch A>
struct line_reading {
  using reading = group_reading<S, A>;
  using code = packed_code<typename S::code_format>;
  using granularity = typename S::granularity_type;
  static constexpr index_t step = simd::line_step<A, reading::quads>, per_byte = code::is_nibble ? 2 : 1;
  /// What makes of codes the weights that tiles see.
  static constexpr auto flip = static_cast<std::uint8_t>(code::is_nibble ? 17 * code::of(0) : code::of(0));
  static constexpr index_t bytes(index_t depth) { return divide_up(depth, per_byte); }

  /// Words of a line to a group: some of a step where it is short, else all.
  static constexpr index_t words(index_t group) {
    constexpr index_t all = simd::lanes<A>, word = step / all;
    for (index_t words = 2; words < all; words *= 2)
      if (group == words * word) return words;
    return all;
  }
  /// Short groups that products are compiled for: those of the scheme, or, of any size, the usual ones.
  static constexpr index_t known = simd::detail::static_group<granularity>;
  static constexpr index_t usual = known != 0 ? known : has_static_blocks<granularity> ? step : 32;
  static constexpr bool has_short = words(usual) < simd::lanes<A>, has_long = known % step == 0;
  /// Whether tiles can read lines of any groups. Zero points are factors of a byte.
  static constexpr bool exist =
      simd::takes_group_lines<A> && !reading::expands && packed_zero_of<S>::fits_a_byte && (has_short || has_long);
  /// Whether lines so long take such groups.
  static bool take(index_t group, index_t depth) {
    if (depth == 0 || depth % step != 0) return false;
    return (has_short && group == usual) || (has_long && group % step == 0);
  }
  /// Calls f(the words of a group that it takes).
  template <class F>
  static void with_words(index_t group, const F& f) {
    if constexpr (has_short)
      if (!has_long || group == usual) return f(std::integral_constant<index_t, words(usual)>{});
    if constexpr (has_long) f(std::integral_constant<index_t, simd::lanes<A>>{});
  }
  /// How many rows are faster than packing panels: each reads the lines again. Measured on Zen 5.
  static constexpr index_t most_rows(index_t group) {
    const bool widens = reading::quads == simd::quads_of::bytes && !simd::nibble_dot<A>::takes_bytes;
    return widens || words(group) == 2 ? 1 : 2;
  }
};

/// How tiles get the weights of a block: as they are packed, as ready bytes, or as signed bytes for matrix registers.
enum class block_form { packed, ready, squares };

/// A block of groups of one panel, made ready for tiles. Groups may be cut: `parts` groups of the product to each group
/// of the weights.
template <class Panels>
class group_block {
  using S = typename Panels::scheme_type;
  using A = typename Panels::arch;
  using layout_type = typename Panels::layout_type;
  using reading = group_reading<S, A>;
  using code = packed_code<typename S::code_format>;
  static constexpr index_t width = layout_type::width, tile_columns = simd::group_tile<A>::columns;
  static constexpr index_t block_bytes = 16384;

 public:
  /// Groups of a block: 16 KB of codes, or of bytes, so that they stay in the first cache while rows pass by; matrix
  /// registers read a few at a time.
  static index_t size(index_t group, block_form form = block_form::packed) {
    const index_t bytes = form == block_form::squares ? 65536 : block_bytes;
    const index_t quad_bytes = form == block_form::packed ? reading::quad_bytes : 4 * width;
    return std::clamp(bytes / (divide_up(group, 4) * quad_bytes), index_t{1}, index_t{128});
  }
  /// Whether groups can come in a form, and gain by it: nibbles that share cost long groups little as they are, and
  /// what is made ready should stay in a cache.
  static bool makes(block_form form, index_t group) {
    if (form == block_form::packed) return true;
    const bool squares = form == block_form::squares;
    const index_t most_bytes = squares ? 1 << 20 : reading::quads == simd::quads_of::nibbles ? 4096 : 131072;
    const index_t quads = divide_up(group, 4);
    return simd::takes_ready_bytes<A> && quads * 4 * width <= most_bytes &&
           (!squares ||
            (simd::square_unit<A>::exists && reading::fits_signed_bytes && simd::fits_group_squares(quads)));
  }
  /// Floats of memory that a block needs; `any_form`: not of packed groups alone; `line_groups`: what it may have of
  /// them where weights are read in lines, and only parameters of it.
  static index_t space(index_t group, bool any_form, index_t line_groups = 0) {
    const room needed(group, any_form, line_groups);
    return arrays * needed.entries + needed.sums + (needed.expanded + needed.bytes) / 4;
  }

  group_block(const layout_type& layout, index_t group, bool any_form, float* space, index_t line_groups = 0)
      : layout_(layout), group_(group), parts_(divide_up(layout.group, group)) {
    const room has(group, any_form, line_groups);
    scales_ = space;
    offsets_ = space + (S::has_offset ? has.entries : 0);
    zeros_ = reinterpret_cast<std::int32_t*>(space + (arrays - 1) * has.entries);
    sums_ = reinterpret_cast<std::int32_t*>(space + arrays * has.entries);
    expanded_ = reinterpret_cast<std::uint8_t*>(sums_ + has.sums);
    ready_ = expanded_ + has.expanded;
  }

  /// Groups [first, first + count) of a panel, at most size(group, form); `one_scale`: their scales are left for
  /// later; `form`: packed, or one of any that makes(form, group) allows. Codes `ahead` bytes behind are asked for by
  /// the last tile that reads these, or, where there is `one_tile`, while they are expanded for it.
  void load(const packed_panel<S, A>& panel, index_t first, index_t count, bool one_scale, bool rows_have_zeros,
            block_form form = block_form::packed, index_t ahead = 0, bool one_tile = false) {
    const index_t skipped = first * divide_up(group_, 4);
    const std::uint8_t* codes = panel.codes + skipped * layout_type::quad_bytes;
    quads_ = std::min(count * divide_up(group_, 4), layout_.quads() - skipped);
    ahead_ = ahead;
    if constexpr (reading::expands) {
      expand(codes, quads_, one_tile ? ahead : 0);
      // A tile that reads what is expanded asks for codes all the same, where they are as long.
      const auto apart = reinterpret_cast<std::intptr_t>(codes) - reinterpret_cast<std::intptr_t>(expanded_);
      ahead_ = code::is_nibble || one_tile || ahead == 0 ? 0 : ahead + apart;
      codes = expanded_;
    }
    const float* scales = scales_;
    if (one_scale) {
      std::fill_n(scales_, count * width, 1.f);
    } else {
      using F = typename S::scale_format;
      if (std::same_as<F, f32> && parts_ == 1) {
        if constexpr (std::same_as<F, f32>) scales = panel.scales + first * width;
      } else {
        for_each_group(first, count, [&](index_t from, index_t n, index_t to) {
          simd::decode_scales<F, A>(panel.scales + from * width, n * width, scales_ + to * width);
        });
      }
    }
    const float* offsets = nullptr;
    if constexpr (S::has_offset) {
      offsets = offsets_;
      for_each_group(first, count, [&](index_t from, index_t n, index_t to) {
        std::copy_n(panel.offsets + from * width, n * width, offsets_ + to * width);
      });
    }
    if constexpr (S::has_zero_point)
      for_each_group(first, count, [&](index_t from, index_t n, index_t to) {
        simd::negated_small_factors<A>(panel.zeros + from * width, n * width, zeros_ + to * width);
      });
    if (rows_have_zeros) load_sums(panel, first, count, codes);
    columns_ = {codes,
                reading::quad_bytes,
                width,
                reading::table.data(),
                scales,
                offsets,
                S::has_zero_point ? zeros_ : nullptr,
                rows_have_zeros ? sums_ : nullptr,
                0};
    is_ready_ = form != block_form::packed;
    if constexpr (simd::takes_ready_bytes<A>)
      for (index_t c = 0; c < width && is_ready_; c += tile_columns)
        make_ready(codes + code_column(c), ready_ + 4 * c * quads_, form);
  }
  /// How far behind the codes of the block the last tile that reads it asks for more; the first one, where the block
  /// does not stay in the first cache until then.
  index_t ahead() const { return ahead_; }
  bool stays_near() const { return quads_ * reading::quad_bytes <= block_bytes; }
  /// Columns [col, col + group_tile::columns) of the panel.
  simd::group_columns columns(index_t col) const {
    simd::group_columns c = columns_.parameters_from(col, 0);
    c.codes = is_ready_ ? ready_ + 4 * col * quads_ : c.codes + code_column(col);
    if (is_ready_) c.quad_bytes = 4 * tile_columns;
    return c;
  }

 private:
  /// Scales, and zero points and offsets where there are any.
  static constexpr index_t arrays = 1 + S::has_zero_point + S::has_offset;
  /// What blocks need: entries of each of these and sums, codes that are expanded, bytes that are made ready.
  struct room {
    index_t entries = 0, sums = 0, expanded = 0, bytes = 0;
    room(index_t group, bool any_form, index_t line_groups) {
      const index_t quads = divide_up(group, 4);
      for (const block_form form : {block_form::packed, block_form::ready, block_form::squares}) {
        const bool is_packed = form == block_form::packed;
        if (!is_packed && (!any_form || !makes(form, group))) continue;
        const index_t groups = size(group, form);
        entries = std::max(entries, groups * width);
        if (reading::expands) expanded = std::max(expanded, groups * quads * reading::quad_bytes);
        if (!is_packed) bytes = std::max(bytes, groups * quads * 4 * width);
      }
      sums = entries;
      entries = std::max(entries, line_groups * width);
    }
  };
  /// Where codes of a column begin in a quad: nibbles of a panel are one tile.
  static constexpr index_t code_column(index_t col) { return reading::quads == simd::quads_of::bytes ? 4 * col : 0; }
  /// Calls f(group of the weights, how many, group of the block) for runs that lie side by side in both.
  template <class F>
  void for_each_group(index_t first, index_t count, const F& f) const {
    if (parts_ == 1) return f(first, count, index_t{0});
    for (index_t g = 0; g < count; ++g) f((first + g) / parts_, index_t{1}, g);
  }
  /// Bytes of a tile: vectors of columns side by side, or one behind the other for matrix registers.
  void make_ready(const std::uint8_t* codes, std::uint8_t* to, block_form form) const {
    constexpr index_t vector = 2 * tile_columns;
    const bool squares = form == block_form::squares;
    const simd::ready_place place{to, squares ? vector : 2 * vector, squares ? vector * quads_ : vector};
    simd::make_ready<A, reading::quads>(codes, reading::quad_bytes, reading::table.data(), quads_, place,
                                        squares ? reading::offset : 0);
  }
  void expand(const std::uint8_t* codes, index_t quads, [[maybe_unused]] index_t ahead) {
    using counted = counted_codes<typename S::code_format>;
    if constexpr (code::is_nibble) {
      for (index_t q = 0; q < quads; ++q)
        for (index_t b = 0; b < 2 * width; ++b) {
          const std::uint8_t byte = codes[q * 2 * width + b];
          expanded_[q * 4 * width + b] = static_cast<std::uint8_t>(counted::numbers[byte & 15u]);
          expanded_[q * 4 * width + 2 * width + b] = static_cast<std::uint8_t>(counted::numbers[byte >> 4]);
        }
    } else {
      static constexpr auto table = [] {
        std::array<std::uint8_t, 256> t{};
        for (std::size_t c = 0; c < 256; ++c) t[c] = static_cast<std::uint8_t>(counted::numbers[c]);
        return t;
      }();
      const simd::byte_table<A, S::code_format::bits <= 6 ? 64 : 256> number(table.data());
      std::uint8_t* const to = expanded_;  // bytes that are stored might be of the member
      constexpr index_t step = 4 * simd::lanes<A>;
      for (index_t at = 0; at < quads * 4 * width; at += step) {
        if (ahead != 0) simd::fetch_lines<step>(codes + at, ahead);
        simd::store(to + at, number(simd::load<A>(codes + at)));
      }
    }
  }
  /// Sums of the weights less their zero points: those of integers are packed with them, unless groups are cut.
  void load_sums(const packed_panel<S, A>& panel, index_t first, index_t count, const std::uint8_t* codes) {
    for (index_t g = 0; g < count; ++g) {
      const auto n = static_cast<std::int32_t>(std::min(group_, layout_.depth - (first + g) * group_));
      alignas(64) std::int32_t own[width];
      const std::int32_t* sums = own;
      std::int32_t added = -n * code::offset;  // what sums have too little
      if (code::is_integer && parts_ == 1) {
        if constexpr (code::is_integer) sums = panel.sums + (first + g) * width;
      } else {
        added += sum_numbers(codes + g * divide_up(group_, 4) * reading::quad_bytes, n, own);
      }
      if constexpr (S::has_zero_point)
        simd::large_factors<A>(sums, width, n, panel.zeros + (first + g) / parts_ * width, sums_ + g * width);
      else
        simd::large_factors<A>(sums, width, added, sums_ + g * width);
    }
  }
  /// The packed numbers of integers, or the numbers of other codes, of each column in the quads of n elements; returns
  /// what is to be added to them.
  static std::int32_t sum_numbers(const std::uint8_t* codes, std::int32_t n, std::int32_t* sums) {
    constexpr index_t quad_bytes = reading::quad_bytes;
    const index_t quads = divide_up(index_t{n}, 4);
    if constexpr (code::is_integer && code::is_nibble) {
      simd::sum_nibble_quads<A>(codes, quad_bytes, quads, sums);
      return 0;
    } else {
      using counted = counted_codes<typename S::code_format>;
      // What fills up the last quad are codes 0, of which floats may make any number.
      const std::int32_t filled = static_cast<std::int32_t>(4 * quads) - n, less = filled * counted::numbers[0];
      if constexpr (reading::by_table) {
        simd::sum_nibble_quads<A>(codes, quad_bytes, quads, reading::table.data(), sums);
        return static_cast<std::int32_t>(4 * quads) * counted::lowest - less;
      } else {
        simd::sum_byte_quads<A>(codes, quad_bytes, quads, sums);
        return -less;
      }
    }
  }

 public:
  /// The packed number of an integer, the number of any other code: element k of column c behind a quad of `codes`.
  static std::int32_t packed_number(const std::uint8_t* codes, index_t quad, index_t k, index_t c) {
    const std::uint8_t* at = codes + (quad + k / 4) * reading::quad_bytes + k % 4;
    if constexpr (!code::is_nibble || reading::expands) {
      return static_cast<std::int8_t>(at[4 * c]);
    } else {
      const int nibble = at[c % (width / 2) * 4] >> (c < width / 2 ? 0 : 4) & 15;
      if constexpr (code::is_integer)
        return nibble;
      else
        return counted_codes<typename S::code_format>::numbers[static_cast<std::size_t>(nibble)];
    }
  }

 private:
  layout_type layout_;
  index_t group_, parts_, quads_ = 0, ahead_ = 0;
  bool is_ready_ = false;
  float *scales_, *offsets_;
  std::int32_t *zeros_, *sums_;
  std::uint8_t *expanded_, *ready_;
  simd::group_columns columns_{};
};

}  // namespace ops

}  // namespace qtensor::inline QTENSOR_ABI
