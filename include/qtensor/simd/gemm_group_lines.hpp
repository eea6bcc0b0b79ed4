// Products over groups with weights that are not packed: a few rows meet codes in the lines where they lie.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <qtensor/simd/gemm_groups.hpp>
#include <qtensor/simd/ops_columns.hpp>

namespace qtensor::inline QTENSOR_ABI::simd {

/// Whether there are such products: where registers are wide enough to be worth adding up their words, and rows of
/// bytes meet bytes.
template <usable_arch A, quads_of Q>
inline constexpr bool takes_group_lines = lanes<A> >= 8 && (Q != quads_of::bytes || nibble_dot<A>::takes_bytes);

/// Lines of codes, one a column, k after k.
struct group_lines {
  const std::uint8_t* first;  ///< of column 0
  index_t stride, bytes;      ///< from one line to the next, in bytes; of a line
  index_t count;              ///< columns that there are, at most `lanes`; those beyond get sums of no meaning
  std::uint8_t flip;          ///< what makes weights of codes, bit by bit; of signed bytes 0x80 more
  const std::uint8_t* next;   ///< what is asked for, step by step, `lanes` times as much as a line has; null: nothing
};

/// Codes of a line that meet a row at once.
template <usable_arch A, quads_of Q>
inline constexpr index_t line_step = (Q == quads_of::bytes ? 4 : 8) * lanes<A>;

namespace detail {

/// to[i] and to[Pairs + i] are the pair from[2 * i], from[2 * i + 1].
template <index_t Pairs>
[[gnu::flatten]] QTENSOR_VECTOR_LOOPS void part_pairs(const std::int8_t* from, std::int8_t* to) {
  for (index_t i = 0; i < Pairs; ++i) to[i] = from[2 * i];
  for (index_t i = 0; i < Pairs; ++i) to[Pairs + i] = from[2 * i + 1];
}

/// `steps` steps of lines to a group, or one to `lanes` / Words groups.
template <class A, quads_of Q, index_t Words>
[[gnu::noinline]] void sum_lines(const group_lines& lines, const group_columns& columns,
                                 const group_rows<typename quad_reader<A, Q>::unit>& row, index_t groups, index_t steps,
                                 const group_sums& place) {
  using reader = quad_reader<A, Q>;
  constexpr index_t step = 4 * lanes<A>, codes = line_step<A, Q>;
  constexpr index_t together = lanes<A> / Words;
  const group_lines l = lines;  // copies, which nothing that is stored can change
  const group_columns w = columns;
  const auto x = row;
  const reader read(w.table);
  const bytes<A> flip(l.flip);
  const index_t last = l.count - 1;

  // Adds the dots of one step, `whole` or what there is of it, with each line.
  const auto add_step = [&](auto whole, auto asks, index_t at, ints<A>(&dot)[lanes<A>]) QTENSOR_INLINE_LAMBDA {
    const std::int8_t* const units = x.units + at / step * codes;
    const auto values = [&](index_t i) QTENSOR_INLINE_LAMBDA { return simd::load<A>(units + i * step).data; };
    repeat<lanes<A>>([&](auto b) QTENSOR_INLINE_LAMBDA {
      const std::uint8_t* const line = l.first + (whole ? index_t{b} : std::min(index_t{b}, last)) * l.stride + at;
      const bytes<A> of = (whole ? simd::load<A>(line) : simd::load_n<A>(line, std::min(step, l.bytes - at))) ^ flip;
      if (asks) simd::prefetch(l.next + at * lanes<A> + b * step);
      if constexpr (Q == quads_of::bytes) {
        dot[b] = reader::dot(dot[b], {of.data}, {values(0)});
      } else {
        const auto both = read.apart(of.data);
        if constexpr (Q == quads_of::wide_nibble_table)  // too large to be added up in fewer bits
          dot[b] = reader::dot(reader::dot(dot[b], {both.of[0]}, {values(0)}), {both.of[1]}, {values(1)});
        else
          dot[b] = reader::dot(dot[b], {both.of[0], both.of[1]}, {values(0), values(1)});
      }
    });
  };
  const auto add_group = [&](index_t g, ints<A> dot, const floats<A>& y) QTENSOR_INLINE_LAMBDA {
    const index_t at = g * w.stride, entry = g * x.entries;
    dot = dot + ints<A>(x.starts[0][entry]);
    if (w.zeros != nullptr) dot = simd::multiply_add(dot, simd::load<A>(w.zeros + at), ints<A>(x.sums[entry]));
    floats<A> scale = simd::load<A>(w.scales + at);
    if (x.scales != nullptr) scale = simd::mul(scale, floats<A>(x.scales[entry]));
    const floats<A> sum = simd::fma(simd::to_float(dot), simd::rounded(scale), y);
    if (w.offsets == nullptr) return sum;
    return simd::fma(floats<A>(x.terms[entry]), simd::load<A>(w.offsets + at), sum);
  };

  floats<A> y(0.f);
  if (place.from != nullptr) y = simd::load<A>(place.from);
  index_t at = 0;  // of the lines
  for (index_t g = 0; g < groups; g += together) {
    ints<A> dot[lanes<A>];
    repeat<lanes<A>>([&](auto b) QTENSOR_INLINE_LAMBDA { dot[b] = ints<A>(0); });
    for (index_t s = 0; s < steps && at < l.bytes; ++s, at += step)
      if (at + step > l.bytes || last < lanes<A> - 1)
        add_step(std::false_type{}, std::false_type{}, at, dot);
      else if (l.next != nullptr)
        add_step(std::true_type{}, std::true_type{}, at, dot);
      else
        add_step(std::true_type{}, std::false_type{}, at, dot);
    const auto sums = simd::sum_parts_each<A, Words>(
        [&](index_t b) QTENSOR_INLINE_LAMBDA { return simd::bits_as<std::uint32_t>(dot[b]); });
    repeat<together>([&](auto p) QTENSOR_INLINE_LAMBDA {
      if (g + p < groups) y = add_group(g + p, simd::bits_as<std::int32_t>(sums[p]), y);
    });
  }
  if (place.row_scales != nullptr) y = simd::mul(y, floats<A>(*place.row_scales));
  if (place.last != 1.f) y = simd::mul(y, floats<A>(place.last));
  simd::store(place.to, y);
}

}  // namespace detail

/// A row of n codes as steps of lines meet it: of nibbles, in each step those of even k come before those of odd k.
/// What fills up the last step is 0; n is a multiple of line_step. In place.
template <usable_arch A, quads_of Q>
void part_line(std::int8_t* codes, index_t n) {
  constexpr index_t step = line_step<A, Q>;
  if constexpr (Q != quads_of::bytes)
    for (index_t k = 0; k < n; k += step) {
      std::int8_t parted[step];
      detail::part_pairs<step / 2>(codes + k, parted);
      std::copy_n(parted, step, codes + k);
    }
}

/// As dot_groups, of `lanes` columns whose codes lie in lines: groups of 4 * quads codes that are Words words of a
/// line, or whole steps where Words is `lanes`, or one group of any length. Rows come from part_line and have no zero
/// points; `columns` says all but codes.
template <usable_arch A, quads_of Q, index_t Words>
requires takes_group_lines<A, Q>
void dot_group_lines(group_lines lines, const group_columns& columns, const group_rows<group_unit<A, Q>>& x,
                     index_t rows, index_t groups, index_t quads, const group_sums& place) {
  const index_t steps = Words == lanes<A> ? divide_up(4 * quads, line_step<A, Q>) : 1;
  for (index_t r = 0; r < rows; ++r, lines.next = nullptr)
    detail::sum_lines<A, Q, Words>(lines, columns, x.from(r, 0, 0), groups, steps, place.at(r, 0));
}

}  // namespace qtensor::inline QTENSOR_ABI::simd
