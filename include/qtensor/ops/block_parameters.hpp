// Neighbouring blocks of a row: their statistics and parameters side by side, as the kernels want them.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <qtensor/ops/known_blocks.hpp>
#include <qtensor/ops/line_array.hpp>
#include <qtensor/ops/narrow_rows.hpp>
#include <qtensor/reference/quantize.hpp>
#include <qtensor/simd/kernel.hpp>
#include <qtensor/simd/memory.hpp>
#include <qtensor/simd/scales.hpp>
#include <qtensor/simd/statistics_columns.hpp>

namespace qtensor::inline QTENSOR_ABI::ops {

/// Statistics of neighbouring blocks, side by side, in the form the rule asks for.
struct statistics_view {
  std::uint32_t* amax;
  float* low;
  float* high;

  reference::block_statistics operator[](index_t block) const {
    return {amax[block], low != nullptr ? low[block] : 0.f, high != nullptr ? high[block] : 0.f};
  }
  /// The same from a block on.
  statistics_view from(index_t block) const {
    return {amax + block, low != nullptr ? low + block : nullptr, high != nullptr ? high + block : nullptr};
  }
  void clear(index_t blocks) const {
    for (index_t b = 0; b < blocks; ++b) amax[b] = 0;
    if (low == nullptr) return;
    for (index_t b = 0; b < blocks; ++b) low[b] = high[b] = 0.f;
  }
  /// Joins those of other elements of the same blocks.
  void join(const statistics_view& other, index_t blocks) const {
    simd::join_maxima<simd::best_arch>(other.amax, blocks, amax);
    if (low == nullptr) return;
    for (index_t b = 0; b < blocks; ++b) {
      low[b] = other.low[b] < low[b] ? other.low[b] : low[b];
      high[b] = other.high[b] > high[b] ? other.high[b] : high[b];
    }
  }
};

template <class S>
inline constexpr bool needs_extremes = extremes_rule<typename S::rule>;
using simd::leaves_out;

/// From which magnitude on (as bits) elements do not count, where some do not.
template <class S>
inline constexpr std::uint32_t least_left_out = infinity_bits +
                                                (std::is_same_v<typename S::nonfinite_block, block_ignores> ? 0 : 1);

/// Whether the rule's formulas run on blocks with infinities, whose extremes then matter.
template <class S>
inline constexpr bool runs_on_infinities = std::is_same_v<typename S::nonfinite_block, block_literal> ||
                                           std::is_same_v<typename S::nonfinite_block, block_ignores_nan>;

/// Joins the n elements of one block to its statistics as the reference does it.
template <class S, simd::float_source From>
void join_one_by_one(const typename From::type* x, index_t n, const statistics_view& seen) {
  reference::block_statistics one = seen[0];
  for (index_t i = 0; i < n; ++i) one.add<S>(simd::number<From>(x[i]));
  seen.amax[0] = one.amax_bits;
  if (needs_extremes<S>) seen.low[0] = one.low, seen.high[0] = one.high;
}

/// Joins n elements, each of which is its own block.
template <class S, simd::float_source From>
void join_each(const typename From::type* x, index_t n, const statistics_view& seen) {
  simd::accumulate_amax_bits<simd::best_arch, From>(x, n, seen.amax);
  if constexpr (needs_extremes<S>) {
    for (index_t i = 0; i < n; ++i) {
      const float v = simd::number<From>(x[i]);
      seen.low[i] = v < seen.low[i] ? v : seen.low[i];
      seen.high[i] = v > seen.high[i] ? v : seen.high[i];
    }
  }
}

/// Joins the elements of a piece to the statistics of its blocks: blocks of `length` from the piece's first element on.
/// `fetches`: how far elements further on are asked for, where blocks are long.
template <class S, simd::float_source From = simd::from_f32>
void join_statistics(const typename From::type* x, index_t n, index_t length, const statistics_view& seen,
                     simd::fetch fetches = simd::fetch::nothing) {
  using arch = simd::best_arch;
  // Blocks without elements that do not count take the kernels' way.
  if (leaves_out<S> && simd::amax_bits<arch, From>(x, n) >= least_left_out<S>) {
    for (index_t first = 0; first < n; first += length)
      join_one_by_one<S, From>(x + first, std::min(length, n - first), seen.from(first / length));
    return;
  }
  if constexpr (!has_one_scale<S>)
    if (length == 1) return join_each<S, From>(x, n, seen);
  for (index_t first = 0, block = 0; first < n; first += length, ++block) {
    const index_t count = n - first < length ? n - first : length;
    if constexpr (needs_extremes<S>) {
      // Blocks begin with 0, which so belongs to their range.
      const auto [low, high] = simd::range_bits<arch, From>(x + first, count, fetches);
      const bool finite = low < infinity_bits && high < infinity_bits;
      if (runs_on_infinities<S> && !finite) {
        join_one_by_one<S, From>(x + first, count, seen.from(block));
        continue;
      }
      const simd::range r =
          finite ? simd::range{0.f - float_of(low), float_of(high), true} : simd::min_max<arch, From>(x + first, count);
      seen.low[block] = r.min < seen.low[block] ? r.min : seen.low[block];
      seen.high[block] = r.max > seen.high[block] ? r.max : seen.high[block];
      seen.amax[block] = finite ? std::max({seen.amax[block], low, high}) : infinity_bits;
    } else {
      const std::uint32_t bits = simd::amax_bits<arch, From>(x + first, count, fetches);
      seen.amax[block] = bits > seen.amax[block] ? bits : seen.amax[block];
    }
  }
}

/// Joins the extremes with 0 of n neighbouring blocks, given by their magnitudes (simd::range_magnitudes), and the
/// largest of these.
inline void join_ranges(const std::uint32_t* of_low, const std::uint32_t* of_high, index_t n,
                        const statistics_view& seen) {
  constexpr index_t lanes = simd::lanes<simd::best_arch>;
  const auto load = [](const auto* from, index_t left) { return simd::load_n<simd::best_arch>(from, left); };
  for (index_t i = 0; i < n; i += lanes) {
    const index_t left = std::min(lanes, n - i);
    const statistics_view to = seen.from(i);
    const auto down = load(of_low + i, left), up = load(of_high + i, left);
    const auto low = simd::sub(simd::floats<simd::best_arch>(0.f), simd::bits_as<float>(down));
    simd::store_n(to.amax, left, simd::max(load(to.amax, left), simd::max(down, up)));
    simd::store_n(to.low, left, simd::min(load(to.low, left), low));
    simd::store_n(to.high, left, simd::max(load(to.high, left), simd::bits_as<float>(up)));
  }
}

/// The extremes with 0 of columns, whose rows lie at x + r * step, by their magnitudes: calls join(first column, how
/// many, magnitudes of low, of high) for some at a time. False, with some of them joined, where one holds a NaN or an
/// infinity.
template <simd::float_source From, class Join>
bool join_column_ranges(const typename From::type* x, index_t step, index_t rows, index_t n, simd::fetch fetches,
                        Join join) {
  using A = simd::best_arch;
  constexpr index_t wide = 2048, lanes = simd::lanes<A>;
  alignas(64) std::uint32_t low[wide], high[wide];
  for (index_t first = 0; first < n; first += wide) {
    const index_t count = std::min(wide, n - first);
    std::fill_n(low, round_up(count, lanes), 0u), std::fill_n(high, round_up(count, lanes), 0u);
    simd::accumulate_range_bits<A, From>(x + first, step, rows, count, low, high, fetches);
    simd::words<A> worst(0u);
    for (index_t i = 0; i < count; i += lanes)
      worst = simd::max(worst, simd::max(simd::load<A>(low + i), simd::load<A>(high + i)));
    if (simd::reduce_max(worst) >= infinity_bits) return false;
    join(first, count, low, high);
  }
  return true;
}

/// Joins the elements of rows at x + r * step to the statistics of their columns, which are blocks of their own. Narrow
/// rows are taken several as one. `fetches`: how far rows further on are asked for.
template <class S, simd::float_source From = simd::from_f32>
void join_column_statistics(const typename From::type* x, index_t step, index_t rows, index_t n,
                            const statistics_view& seen, simd::fetch fetches = simd::fetch::nothing) {
  const auto join = [&](const auto* first, index_t apart, index_t count, index_t cols, const statistics_view& to) {
    if constexpr (!leaves_out<S> && !needs_extremes<S>)
      return simd::accumulate_amax_bits<simd::best_arch, From>(first, apart, count, cols, to.amax, fetches);
    if constexpr (needs_extremes<S>)
      if (count > 1 && join_column_ranges<From>(first, apart, count, cols, fetches,
                                                [&](index_t i, index_t some, const auto* low, const auto* high) {
                                                  join_ranges(low, high, some, to.from(i));
                                                }))
        return;
    for (index_t r = 0; r < count; ++r) join_statistics<S, From>(first + r * apart, cols, 1, to);
  };
  const index_t together = step == n ? rows_as_one(n, rows) : 1;
  if (together == 1) return join(x, step, rows, n, seen);
  constexpr index_t most = widest_row, ends = needs_extremes<S> ? most : 1;
  alignas(64) std::uint32_t amax[most];
  alignas(64) float low[ends], high[ends];
  const statistics_view wide{amax, needs_extremes<S> ? low : nullptr, needs_extremes<S> ? high : nullptr};
  const index_t width = n * together, whole = rows / together;
  wide.clear(width);
  join(x, width, whole, width, wide);
  for (index_t r = 0; r < together; ++r) seen.join(wide.from(r * n), n);
  join(x + whole * width, n, rows % together, n, seen);
}

/// Calls same(constant) for blocks of the length that the type of a granularity tells, or, where they have one at run
/// time, of the most usual one; other() for those of other lengths.
template <granularity G, class Same, class Other>
void by_length(index_t length, Same same, Other other) {
  constexpr index_t known = simd::detail::static_group<G>, usual = known != 0 ? known : std::is_empty_v<G> ? 0 : 32;
  if constexpr (usual != 0)
    if (length == usual) return same(std::integral_constant<index_t, usual>{});
  other();
}

/// Statistics of a piece alone, whose blocks of `length` start at its first element. `fetches`: how far elements
/// further on are asked for, where it is one block, or blocks of f32: half as many bytes come in time as it is.
template <class S, simd::float_source From = simd::from_f32>
void block_statistics(const typename From::type* x, index_t n, index_t length, const statistics_view& seen,
                      simd::fetch fetches = simd::fetch::nothing) {
  using arch = simd::best_arch;
  using G = typename S::granularity_type;
  const index_t whole = n / length;
  const simd::fetch of_blocks = sizeof(*x) == sizeof(float) ? fetches : simd::fetch::nothing;
  const auto join = [&] {
    seen.clear(divide_up(n, length));
    join_statistics<S, From>(x, n, length, seen, fetches);
  };
  if constexpr (has_one_scale<S>) {
    join();
    return;
  } else if (needs_extremes<S> && (leaves_out<S> || whole < 2 || length == 1)) {
    join();
  } else if constexpr (needs_extremes<S>) {
    constexpr index_t most = 64;
    alignas(64) std::uint32_t low[most], high[most];
    for (index_t first = 0; first < whole; first += most) {
      const index_t count = whole - first < most ? whole - first : most;
      const auto* from = x + first * length;
      by_length<G>(
          length, [&](auto same) { simd::range_blocks_of<arch, same, From>(from, count, low, high, of_blocks); },
          [&] { simd::range_blocks<arch, From>(from, count, length, low, high, of_blocks); });
      const std::uint32_t most_of_all =
          simd::ranges_of_magnitudes<arch>(low, high, count, seen.amax + first, seen.low + first, seen.high + first);
      if (!runs_on_infinities<S> || most_of_all < infinity_bits) continue;
      for (index_t b = first; b < first + count; ++b) {
        if (seen.amax[b] < infinity_bits) continue;
        seen.from(b).clear(1);
        join_one_by_one<S, From>(x + b * length, length, seen.from(b));
      }
    }
    if (whole * length < n) {
      seen.from(whole).clear(1);
      join_statistics<S, From>(x + whole * length, n - whole * length, length, seen.from(whole));
    }
  } else if (n <= length) {
    seen.amax[0] = simd::amax_bits<arch, From>(x, n, fetches);
  } else {
    by_length<G>(
        length, [&](auto same) { simd::amax_blocks_of<arch, same, From>(x, whole, seen.amax, of_blocks); },
        [&] { simd::amax_blocks<arch, From>(x, whole, length, seen.amax, of_blocks); });
    if (whole * length < n) seen.amax[whole] = simd::amax_bits<arch, From>(x + whole * length, n - whole * length);
  }
  if constexpr (leaves_out<S> && !needs_extremes<S>)
    if (std::any_of(seen.amax, seen.amax + divide_up(n, length), [](auto m) { return m >= least_left_out<S>; })) join();
}

/// The parameters of neighbouring blocks, side by side, as the encode kernels read them.
struct parameters_view {
  float* scales;
  std::int32_t* zero_points;  // nullptr where the scheme is symmetric

  parameters_view from(index_t block) const {
    return {scales + block, zero_points != nullptr ? zero_points + block : nullptr};
  }
};

/// Statistics of a row's blocks, with their memory.
template <class S>
class statistics_memory {
 public:
  explicit statistics_memory(index_t blocks) : amax_(blocks) {
    if constexpr (needs_extremes<S>) low_ = line_array<float>(blocks), high_ = line_array<float>(blocks);
  }
  statistics_view view() {
    return {amax_.data(), needs_extremes<S> ? low_.data() : nullptr, needs_extremes<S> ? high_.data() : nullptr};
  }
  /// Joins those of other elements of the same blocks.
  void join(statistics_memory& other) { view().join(other.view(), amax_.size()); }

 private:
  line_array<std::uint32_t> amax_;
  line_array<float> low_, high_;
};

/// Parameters of a row's blocks, with their memory.
template <class S>
class parameters_memory {
 public:
  explicit parameters_memory(index_t blocks) : scales_(line_array<float>::for_overwrite(blocks)) {
    if constexpr (S::has_zero_point) zeros_ = line_array<std::int32_t>::for_overwrite(blocks);
  }
  parameters_view view() { return {scales_.data(), S::has_zero_point ? zeros_.data() : nullptr}; }

 private:
  line_array<float> scales_;
  line_array<std::int32_t> zeros_;
};

/// Scales that are stored side by side, from that of the element at an index on, as floats.
template <tensor_view_type View>
void load_adjacent_scales(const View& w, const typename View::index_array& at, index_t count, float* out) {
  simd::decode_scales<typename View::scheme_type::scale_format>(w.storage_scales(at), count, out);
}
/// The zero points that units of a format are.
template <format zero>
void decode_zero_points(const detail::unit_t<zero>* units, index_t count, std::int32_t* out) {
  using plain = integer<zero::bits, std::conditional_t<zero::is_signed, signed, unsigned>>;
  index_t b = 0;
  if constexpr (zero::bits <= 8 && std::derived_from<zero, plain>) {
    using A = simd::best_arch;
    constexpr int unused = 32 - zero::bits;
    for (; b + simd::lanes<A> <= count; b += simd::lanes<A>) {
      const auto top = simd::widen_u8<A>(units + b) << unused;
      if constexpr (zero::is_signed)
        simd::store(out + b, simd::bits_as<std::int32_t>(top) >> unused);
      else
        simd::store(out + b, simd::bits_as<std::int32_t>(top >> unused));
    }
  }
  for (; b < count; ++b) out[b] = static_cast<std::int32_t>(zero::decode(detail::code_of<zero>(units[b])));
}
/// Zero points that are stored, likewise.
template <tensor_view_type View>
void load_adjacent_zero_points(const View& w, const typename View::index_array& at, index_t count, std::int32_t* out) {
  decode_zero_points<typename View::scheme_type::zero_point_format>(w.storage_zero_points(at), count, out);
}

/// Scales (and zero points) that are stored, of all blocks of n rows or panels of a tile (padded_rows, narrow_panels)
/// from the one at an index on.
template <tensor_view_type View, class Tile>
void load_tile(const View& w, const typename View::index_array& at, index_t n, const Tile& tile,
               const parameters_view& p) {
  tile.load_entries(at, n, p.scales, [&](index_t count, float* to) { load_adjacent_scales(w, at, count, to); });
  if constexpr (View::scheme_type::has_zero_point)
    tile.load_entries(at, n, p.zero_points,
                      [&](index_t count, std::int32_t* to) { load_adjacent_zero_points(w, at, count, to); });
}

/// out[i] = entry for i < n, by vectors: some at a time are too few for a call, and too many one by one.
template <class T>
void fill_entries(T entry, index_t n, T* out) {
  using A = simd::best_arch;
  constexpr index_t step = simd::lanes<A>;
  const xsimd::batch<T, A> all(entry);
  index_t i = 0;
  for (; i + step <= n; i += step) simd::store(out + i, all);
  if (i < n) simd::store_n(out + i, n - i, all);
}

/// Of `count` entries, for every `length` elements of a row from `col` on, those that lie in one block: calls
/// visit(b, first, n) for entries [first, first + n), which lie b blocks behind that of `col`.
template <class Visit>
void for_each_entry(index_t block, index_t col, index_t count, index_t length, Visit visit) {
  const index_t inside = col % block;
  if (length > 1) {
    for (index_t i = 0; i < count; ++i) visit((inside + i * length) / block, i, index_t{1});
  } else {
    for (index_t b = 0, first = 0, end = block - inside; first < count; ++b, first = end, end += block)
      visit(b, first, std::min(end, count) - first);
  }
}

/// Entries of every `length` elements of a row from `col` on, of which `units` begin with that of the first one:
/// adjacent(units) where they lie side by side, else one(unit) of each.
template <class Grid, class Unit, class T, class Adjacent, class One>
void load_entries(const Grid& grid, const Unit* units, index_t col, index_t count, index_t length, T* out,
                  const Adjacent& adjacent, const One& one) {
  const index_t block = grid.block[grid.block.size() - 1], step = grid.stride[grid.stride.size() - 1];
  if (step == 1 && length == block) return adjacent(units);
  for_each_entry(block, col, count, length,
                 [&](index_t b, index_t first, index_t n) { fill_entries(one(units[b * step]), n, out + first); });
}

/// Scales that are stored, of every `length` elements of a row from `col` on, as floats.
template <tensor_view_type View>
void load_scales(const View& w, typename View::index_array at, index_t col, index_t count, index_t length, float* out) {
  using format = typename View::scheme_type::scale_format;
  at[at.size() - 1] = col;
  load_entries(
      w.scale_grid(), w.storage_scales(at), col, count, length, out,
      [&](const auto*) { load_adjacent_scales(w, at, count, out); },
      [](auto unit) { return decode<format>(detail::code_of<format>(unit)); });
}

/// Offsets that are stored, likewise: they are shared as scales are.
template <tensor_view_type View>
requires(View::scheme_type::has_offset) void load_offsets(const View& w, typename View::index_array at, index_t col,
                                                          index_t count, index_t length, float* out) {
  using format = typename View::scheme_type::offset_format;
  at[at.size() - 1] = col;
  load_entries(
      w.scale_grid(), w.memory().offsets + w.scale_grid().entry(at), col, count, length, out,
      [&](const auto* units) { simd::decode_scales<format>(units, count, out); },
      [](auto unit) { return decode<format>(detail::code_of<format>(unit)); });
}

/// Zero points that are stored, of every `length` elements of a row from `col` on.
template <tensor_view_type View>
void load_zero_points(const View& w, typename View::index_array at, index_t col, index_t count, index_t length,
                      std::int32_t* out) {
  using format = typename View::scheme_type::zero_point_format;
  at[at.size() - 1] = col;
  load_entries(
      w.zero_grid(), w.storage_zero_points(at), col, count, length, out,
      [&](const auto* units) { decode_zero_points<format>(units, count, out); },
      [](auto unit) { return static_cast<std::int32_t>(format::decode(detail::code_of<format>(unit))); });
}

/// A block all of whose codes are +0, whatever its scale says: kernels make them with a scale of 0.
template <class S>
constexpr bool is_zeroed(const reference::block_parameters& p) {
  constexpr bool poison_is_zero = std::is_same_v<typename S::nonfinite_block, block_to_zero> ||
                                  !qtensor::detail::format_has_nan<typename S::code_format>();
  return simd::scale_0_gives_zeros<S> && ((p.poisoned && poison_is_zero) || (p.plus_zeros && !leaves_out<S>));
}

/// A block whose codes kernels do not make of its scale: poisoned, zeros in a way of their own, under an infinite or
/// NaN scale, whose NaNs would have the CPU's sign, or under 0 where numbers are rounded at random.
template <class S>
constexpr bool is_special(const reference::block_parameters& p) {
  if (is_zeroed<S>(p)) return false;
  const bool has_scale = is_finite(p.code_scale) && (p.code_scale > 0.f || !random_rounding<typename S::rounding>);
  return p.poisoned || p.zero_codes || p.plus_zeros || !has_scale;
}

}  // namespace qtensor::inline QTENSOR_ABI::ops
