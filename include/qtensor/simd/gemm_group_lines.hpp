// Products over groups with weights that are not packed: a few rows meet codes in the lines where they lie.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <qtensor/simd/gemm_groups.hpp>
#include <qtensor/simd/ops_columns.hpp>

namespace qtensor::inline QTENSOR_ABI::simd {

/// Whether there are such products: where registers are wide enough to be worth adding up their words.
template <usable_arch A>
inline constexpr bool takes_group_lines = lanes<A> >= 8;

/// Lines of codes, one a column, k after k.
struct group_lines {
  const std::uint8_t* first;  ///< of column 0
  index_t stride, bytes;      ///< from one line to the next, in bytes; of a line, whole steps
  index_t count;              ///< columns that there are, at most `lanes`; those beyond get sums of no meaning
  std::uint8_t flip;          ///< a byte xor it: nibbles that count or number entries, or a signed byte
  const std::uint8_t* next;   ///< what is asked for, step by step, `lanes` times as much as a line has; null: nothing
};

/// Codes of a line that meet a row at once.
template <usable_arch A, quads_of Q>
inline constexpr index_t line_step = Q == quads_of::bytes ? line_dot<A>::step : 8 * lanes<A>;

namespace detail {

/// to[i] and to[Pairs + i] are the pair from[2 * i], from[2 * i + 1].
template <index_t Pairs>
[[gnu::flatten]] QTENSOR_VECTOR_LOOPS void part_pairs(const std::int8_t* from, std::int8_t* to) {
  for (index_t i = 0; i < Pairs; ++i) to[i] = from[2 * i];
  for (index_t i = 0; i < Pairs; ++i) to[Pairs + i] = from[2 * i + 1];
}

/// The dots of a step of a line with a row: nibbles are those of even k and of odd k, as part_line leaves rows.
template <class A, quads_of Q>
struct step_dot {
  using reader = quad_reader<A, Q>;
  struct row {
    typename reader::row even[1], odd[1];
  };
  reader read;
  bytes<A> flip;
  step_dot(const std::uint8_t* table, std::uint8_t f) : read(table), flip(f) {}

  static QTENSOR_INLINE row load(const std::int8_t* row) {
    return {{simd::load<A>(row).data}, {simd::load<A>(row + 4 * lanes<A>).data}};
  }
  QTENSOR_INLINE ints<A> operator()(const ints<A>& sum, const std::uint8_t* line, const row& x) const {
    const auto both = read.apart((simd::load<A>(line) ^ flip).data);
    if constexpr (Q == quads_of::wide_nibble_table)  // too large to be added up in fewer bits
      return reader::dot(reader::dot(sum, {both.of[0]}, x.even), {both.of[1]}, x.odd);
    else
      return reader::dot(sum, {both.of[0], both.of[1]}, {x.even[0], x.odd[0]});
  }
};
template <class A>
struct step_dot<A, quads_of::bytes> : line_dot<A> {
  using base = line_dot<A>;
  static_assert(base::weight_offset == quad_reader<A, quads_of::bytes>::bias);
  std::uint8_t flip;
  step_dot(const std::uint8_t*, std::uint8_t f) : flip(f) {}
  QTENSOR_INLINE ints<A> operator()(const ints<A>& sum, const std::uint8_t* line, const typename base::row& x) const {
    return base::dot(sum, line, flip, x);
  }
};

/// `steps` steps of lines to a group, or one to `lanes` / Words groups.
template <class A, quads_of Q, index_t Words>
[[gnu::noinline]] void sum_lines(const group_lines& lines, const group_columns& columns,
                                 const group_rows<typename quad_reader<A, Q>::unit>& row, index_t groups, index_t steps,
                                 const group_sums& place) {
  constexpr index_t codes = line_step<A, Q>, step = Q == quads_of::bytes ? codes : codes / 2;  // bytes
  constexpr index_t together = lanes<A> / Words;
  // Copies, which nothing that is stored can change.
  const std::uint8_t *const first = lines.first, *const next = lines.next;
  const index_t stride = lines.stride, bytes = lines.bytes, last = lines.count - 1;
  const group_columns w = columns;
  const auto x = row;
  const auto* const by = reinterpret_cast<const std::int8_t*>(x.units);
  const step_dot<A, Q> add(w.table, lines.flip);

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
  const auto sum_groups = [&](floats<A> y, auto asks) QTENSOR_INLINE_LAMBDA {
    index_t at = 0;  // of the lines
    for (index_t g = 0; g < groups; g += together) {
      ints<A> dot[lanes<A>];
      repeat<lanes<A>>([&](auto b) QTENSOR_INLINE_LAMBDA { dot[b] = ints<A>(0); });
      for (index_t s = 0; s < steps && at < bytes; ++s, at += step) {
        const auto values = add.load(by + at / step * codes);
        repeat<lanes<A>>([&](auto b) QTENSOR_INLINE_LAMBDA {
          if constexpr (asks && b * step % 64 == 0) simd::prefetch(next + at * lanes<A> + b * step);
          dot[b] = add(dot[b], first + std::min(index_t{b}, last) * stride + at, values);
        });
      }
      const auto sums = simd::sum_parts_each<A, Words>(
          [&](index_t b) QTENSOR_INLINE_LAMBDA { return simd::bits_as<std::uint32_t>(dot[b]); });
      repeat<together>([&](auto p) QTENSOR_INLINE_LAMBDA {
        if (g + p < groups) y = add_group(g + p, simd::bits_as<std::int32_t>(sums[p]), y);
      });
    }
    return y;
  };
  floats<A> y(0.f);
  if (place.from != nullptr) y = simd::load<A>(place.from);
  y = next != nullptr ? sum_groups(y, std::true_type{}) : sum_groups(y, std::false_type{});
  if (place.row_scales != nullptr) y = simd::mul(y, floats<A>(*place.row_scales));
  if (place.last != 1.f) y = simd::mul(y, floats<A>(place.last));
  simd::store(place.to, y);
}

}  // namespace detail

/// A row of n codes, whole steps, as lines meet it, in the memory of units: of nibbles, in each step those of even k
/// come before those of odd k. `codes` may be where they go.
template <usable_arch A, quads_of Q>
void part_line(const std::int8_t* codes, index_t n, group_unit<A, Q>* units) {
  constexpr index_t step = line_step<A, Q>;
  auto* const to = reinterpret_cast<std::int8_t*>(units);
  if (to != codes) std::copy_n(codes, n, to);
  if constexpr (Q != quads_of::bytes)
    for (index_t k = 0; k < n; k += step) {
      std::int8_t parted[step];
      detail::part_pairs<step / 2>(to + k, parted);
      std::copy_n(parted, step, to + k);
    }
}

/// As dot_groups, of `lanes` columns whose codes lie in lines of whole steps: groups of 4 * quads codes that are Words
/// words of a line, or whole steps where Words is `lanes`, of which the last group may have fewer. Rows come from
/// part_line and have no zero points; `columns` says all but codes.
template <usable_arch A, quads_of Q, index_t Words>
requires takes_group_lines<A>
void dot_group_lines(group_lines lines, const group_columns& columns, const group_rows<group_unit<A, Q>>& x,
                     index_t rows, index_t groups, index_t quads, const group_sums& place) {
  const index_t steps = Words == lanes<A> ? divide_up(4 * quads, line_step<A, Q>) : 1;
  for (index_t r = 0; r < rows; ++r, lines.next = nullptr)
    detail::sum_lines<A, Q, Words>(lines, columns, x.from(r, 0, 0), groups, steps, place.at(r, 0));
}

}  // namespace qtensor::inline QTENSOR_ABI::simd
