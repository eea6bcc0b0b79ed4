// Products with a scale per group of k: register tiles of exact group dots that are scaled and added up in f32.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <qtensor/simd/gemm_int8.hpp>
#include <qtensor/simd/memory.hpp>
#include <qtensor/simd/ops_nibble_dot.hpp>

// Columns of weights stand in lanes, two vectors of them to a tile. Integers are exact inside a group and the chain of
// groups is one fma a column, so tiles, blocks of k and architectures give the same bits.
namespace qtensor::inline QTENSOR_ABI::simd {

/// How words hold weights. `nibbles`: integers of at most 4 bits as they are; `nibble_table`: 4-bit codes of 16 entries
/// that tell what each weighs, `wide_nibble_table` where entries exceed 31; `bytes`: signed bytes; `ready_bytes`: what
/// make_ready leaves of any of these, which costs tiles nothing to read.
enum class quads_of { nibbles, nibble_table, wide_nibble_table, bytes, ready_bytes };

/// Sizes of tiles over groups.
template <usable_arch A>
struct group_tile {
  static constexpr bool many_registers = lanes<A> == 16 || features::neon;
  static constexpr index_t vectors = 2;
  static constexpr index_t columns = vectors * lanes<A>;
  static constexpr index_t max_rows = many_registers ? 6 : lanes<A> == 8 ? 4 : 2;
  static constexpr index_t wide_rows = 3;  ///< of twice as many columns
  /// Of ready bytes, which leave registers free.
  static constexpr index_t ready_rows = many_registers ? 7 : nibble_dot<A>::takes_bytes ? 6 : max_rows;
};

/// Rows of activations as tiles over groups read them. Entry (row, g) of an array is [g * entries + row].
template <class Unit>
struct group_rows {
  const Unit* units;                          ///< row r begins at r * stride; a group begins a quad
  index_t stride, entries;                    ///< entries: from one group's entries to the next's
  std::array<const std::int32_t*, 2> starts;  ///< what the dots of either vector start from
  const std::int32_t* sums;                   ///< sum of the codes, a large_factor; used where columns have zeros
  const std::int32_t* zeros;                  ///< less the zero point, a small_factor; null: none
  const float* scales;                        ///< null: one scale a row, which the tile leaves out
  const float* terms;                         ///< what offsets are multiplied by; used where columns have offsets

  /// The same from another row and group on; a group is `units_of_group` long.
  group_rows from(index_t row, index_t group, index_t units_of_group) const {
    const index_t at = group * entries + row;
    return {units + row * stride + group * units_of_group,
            stride,
            entries,
            {starts[0] + at, starts[1] + at},
            sums + at,
            zeros != nullptr ? zeros + at : nullptr,
            scales != nullptr ? scales + at : nullptr,
            terms != nullptr ? terms + at : nullptr};
  }
};

/// Columns of weights for some groups: group_tile::columns, or of bytes twice as many. Entry (g, c) of an array is [g *
/// stride + c].
struct group_columns {
  const std::uint8_t* codes;  ///< words of quad q begin at q * quad_bytes
  index_t quad_bytes, stride;
  const std::uint8_t* table;  ///< 16 entries; null where codes count themselves
  const float* scales;
  const float* offsets;       ///< null: none
  const std::int32_t* zeros;  ///< less the zero point, a small_factor; null: none
  const std::int32_t* sums;   ///< sum of the weights less their zero points, a large_factor; used where rows have zeros
  index_t ahead = 0;          ///< codes that far behind are asked for, to the first cache; 0: none

  group_columns from(index_t group, index_t quads_of_group) const {
    const index_t at = group * stride;
    return {codes + group * quads_of_group * quad_bytes,
            quad_bytes,
            stride,
            table,
            scales + at,
            offsets != nullptr ? offsets + at : nullptr,
            zeros != nullptr ? zeros + at : nullptr,
            sums != nullptr ? sums + at : nullptr,
            ahead};
  }
  /// What columns from `col` on have besides codes, from another group on.
  group_columns parameters_from(index_t col, index_t group) const {
    group_columns c = from(group, 0);
    c.scales += col;
    if (c.offsets != nullptr) c.offsets += col;
    if (c.zeros != nullptr) c.zeros += col;
    if (c.sums != nullptr) c.sums += col;
    return c;
  }
};

/// Where the sums of a tile come from and where they go; rows begin so many elements behind each other.
struct group_sums {
  const float* from;  ///< null: sums begin at +0
  index_t from_stride;
  float* to;
  index_t to_stride;
  const float* row_scales = nullptr;  ///< what the sums of a row are multiplied by in the end; null: nothing
  float last = 1.f;                   ///< what all are multiplied by after that

  /// The same from another row or column on.
  group_sums at(index_t row, index_t col) const {
    return {
        from != nullptr ? from + row * from_stride + col : nullptr, from_stride, to + row * to_stride + col, to_stride,
        row_scales != nullptr ? row_scales + row : nullptr,         last};
  }
  /// The same for a part that another one follows, or that follows this one.
  group_sums without_end() const { return {from, from_stride, to, to_stride}; }
  group_sums behind() const { return {to, to_stride, to, to_stride, row_scales, last}; }
};

namespace detail {

/// A vector of columns from the low nibbles, one from the high ones.
template <class A, quads_of Q>
struct quad_reader : nibble_dot<A> {
  using base = nibble_dot<A>;
  using unit = std::int8_t;
  using weights = typename base::codes;
  static constexpr std::int32_t bias = 0;
  /// The second vector holds 16 times its own sum more than the first's: one `and` a word less.
  static constexpr bool shares = Q == quads_of::nibbles && base::takes_bytes;
  static constexpr std::size_t at_once = Q == quads_of::wide_nibble_table ? 1 : base::quads_at_once;

  explicit QTENSOR_INLINE quad_reader(const std::uint8_t* table) {
    if constexpr (Q != quads_of::nibbles) entries = base::table_of(table);
  }
  struct pair {
    weights of[2];
  };
  QTENSOR_INLINE pair read(const std::uint8_t* words) const {
    const weights both = base::load(words);
    if constexpr (shares)
      return {{base::low(both), both}};
    else
      return apart(both);
  }
  /// What either vector weighs, nothing shared.
  QTENSOR_INLINE pair read_apart(const std::uint8_t* words) const { return apart(base::load(words)); }
  QTENSOR_INLINE pair apart(const weights& both) const {
    if constexpr (Q == quads_of::nibbles)
      return {{base::low(both), base::high(both)}};
    else
      return {{base::low(both, entries), base::high(both, entries)}};
  }
  typename base::table entries{};
};

/// Bytes where rows are bytes too. Signed weights are flipped, which is 128 more.
template <class A, bool Signed>
struct byte_reader : nibble_dot<A> {
  using base = nibble_dot<A>;
  using unit = std::int8_t;
  using weights = typename base::codes;
  static constexpr std::int32_t bias = Signed ? 128 : 0;
  static constexpr bool shares = false;
  static constexpr std::size_t at_once = 1;
  explicit byte_reader(const std::uint8_t*) {}
  struct pair {
    weights of[2];
  };
  QTENSOR_INLINE pair read(const std::uint8_t* words) const {
    const pair both{{base::load(words), base::load(words + 4 * lanes<A>)}};
    if constexpr (Signed)
      return {{base::flipped(both.of[0]), base::flipped(both.of[1])}};
    else
      return both;
  }
  QTENSOR_INLINE pair read_apart(const std::uint8_t* words) const { return read(words); }
};
template <class A>
requires(nibble_dot<A>::takes_bytes) struct quad_reader<A, quads_of::bytes> : byte_reader<A, true> {
  using byte_reader<A, true>::byte_reader;
};
template <class A>
requires(nibble_dot<A>::takes_bytes) struct quad_reader<A, quads_of::ready_bytes> : byte_reader<A, false> {
  using byte_reader<A, false>::byte_reader;
};
/// Elsewhere as quad_dot has it.
template <class A>
requires(!nibble_dot<A>::takes_bytes) struct quad_reader<A, quads_of::bytes> {
  using base = quad_dot<A>;
  static_assert(base::unit_offset == 0);
  using unit = typename base::unit;
  using weights = typename base::weights;
  using row = typename base::row;
  static constexpr std::int32_t bias = 0;
  static constexpr bool shares = false;
  static constexpr std::size_t at_once = 1;
  explicit quad_reader(const std::uint8_t*) {}
  struct pair {
    weights of[2];
  };
  QTENSOR_INLINE pair read(const std::uint8_t* words) const {
    const auto* quads = reinterpret_cast<const std::int8_t*>(words);
    return {{base::load(quads), base::load(quads + 4 * lanes<A>)}};
  }
  static QTENSOR_INLINE row broadcast(const unit* four) { return base::broadcast(four); }
  static QTENSOR_INLINE ints<A> dot(const ints<A>& sum, const weights (&w)[1], const row (&x)[1]) {
    return base::dot(sum, w[0], x[0]);
  }
};

/// What the loops of a tile are compiled for: quads of a group to one step; whether groups are whole steps; whether
/// codes may be asked for before they are read; whether there are no zeros or offsets to look for.
struct group_loops {
  index_t unroll;
  bool whole, asks, plain;
};

/// The float sums of a tile: in registers, or where these are few, where they go.
template <class A, index_t Rows, index_t Vectors>
struct tile_sums {
  static constexpr bool in_registers = group_tile<A>::many_registers;
  static constexpr index_t step = lanes<A>;
  group_sums place;
  floats<A> total[in_registers ? Rows : 1][Vectors];

  explicit QTENSOR_INLINE tile_sums(const group_sums& at) : place(at) {
    repeat<Rows, Vectors>([&](auto r, auto v) QTENSOR_INLINE_LAMBDA {
      floats<A> before(0.f);
      if (place.from != nullptr) before = simd::load<A>(place.from + r * place.from_stride + v * step);
      if constexpr (in_registers)
        total[r][v] = before;
      else
        simd::store(to(r, v), before);
    });
  }
  QTENSOR_INLINE float* to(index_t r, index_t v) const { return place.to + r * place.to_stride + v * step; }

  template <class Row, class Vector, class F>
  QTENSOR_INLINE void change(Row r, Vector v, const F& f) {
    if constexpr (in_registers)
      total[r][v] = f(total[r][v]);
    else
      simd::store(to(r, v), f(simd::load<A>(to(r, v))));
  }
  /// What comes after the last group.
  QTENSOR_INLINE void finish() {
    const auto multiply_by = [&](auto factor) QTENSOR_INLINE_LAMBDA {
      repeat<Rows>([&](auto r) QTENSOR_INLINE_LAMBDA {
        const floats<A> f(factor(r));
        repeat<Vectors>([&](auto v) QTENSOR_INLINE_LAMBDA {
          change(r, v, [&](const floats<A>& y) QTENSOR_INLINE_LAMBDA { return simd::mul(y, f); });
        });
      });
    };
    if (place.row_scales != nullptr) multiply_by([&](auto r) { return place.row_scales[r]; });
    if (place.last != 1.f) multiply_by([&](auto) { return place.last; });
    if constexpr (in_registers) {
      // g++ 12 otherwise keeps the addresses of all rows from above, in vector registers.
      asm("" : "+r"(place.to), "+r"(place.to_stride));
      repeat<Rows, Vectors>([&](auto r, auto v) QTENSOR_INLINE_LAMBDA { simd::store(to(r, v), total[r][v]); });
    }
  }
};

/// The exact dots of a tile's group, over its quads.
template <class A, quads_of Q, index_t Rows, index_t Pairs, group_loops Loops>
struct tile_dots {
  using reader = quad_reader<A, Q>;
  static constexpr index_t vectors = 2 * Pairs;
  static constexpr index_t word_bytes =
      (Q == quads_of::bytes || Q == quads_of::ready_bytes ? 8 : 4) * lanes<A>;  // of two vectors
  /// The dots of one row wait for each other: every second quad has sums of its own.
  static constexpr index_t chains = group_tile<A>::many_registers && Rows == 1 && Loops.unroll > 1 ? 2 : 1;
  static constexpr bool stays = group_tile<A>::many_registers || nibble_dot<A>::takes_bytes;
  ints<A> dot[Rows * chains][vectors];

  /// Starts of row r, of the first vector of a pair and of the second.
  QTENSOR_INLINE tile_dots(const std::int32_t* first, const std::int32_t* second) {
    repeat<Rows, vectors>([&](auto r, auto v) QTENSOR_INLINE_LAMBDA {
      dot[r][v] = ints<A>((v % 2 == 0 ? first : second)[r]);
      if constexpr (chains == 2) dot[1][v] = ints<A>(0);
    });
  }
  /// Adds the products of `Count` quads.
  template <index_t Count, index_t Chain, class Unit>
  QTENSOR_INLINE void add(const reader& read, const std::uint8_t* codes, index_t quad_bytes, index_t ahead,
                          const Unit* units, index_t stride) {
    typename reader::weights weights[vectors][static_cast<std::size_t>(Count)];
    repeat<Count>([&](auto i) QTENSOR_INLINE_LAMBDA {
      repeat<Pairs>([&](auto p) QTENSOR_INLINE_LAMBDA {
        const std::uint8_t* words = codes + i * quad_bytes + p * word_bytes;
        if constexpr (Loops.asks) fetch_lines<word_bytes>(words, ahead);
        const auto both = read.read(words);
        weights[2 * p][i] = both.of[0];
        weights[2 * p + 1][i] = both.of[1];
      });
    });
    repeat<Rows>([&](auto r) QTENSOR_INLINE_LAMBDA {
      typename reader::row values[static_cast<std::size_t>(Count)];
      repeat<Count>([&](auto i) QTENSOR_INLINE_LAMBDA { values[i] = reader::broadcast(units + r * stride + 4 * i); });
      repeat<vectors>([&](auto v) QTENSOR_INLINE_LAMBDA {
        dot[r + Chain][v] = reader::dot(dot[r + Chain][v], weights[v], values);
      });
    });
  }
  /// Sums stay where they are: g++ 12 otherwise moves them about, and to memory, at every end of a loop.
  QTENSOR_INLINE void stay() {
    if constexpr (stays)
      repeat<Rows * chains, vectors>([&](auto r, auto v) QTENSOR_INLINE_LAMBDA {
        dot[r][v] = simd::bits_as<std::int32_t>(simd::rounded(simd::bits_as<float>(dot[r][v])));
      });
  }
  /// One dot a row and column from what the loops left.
  QTENSOR_INLINE void join() {
    if constexpr (chains == 2)
      repeat<vectors>([&](auto v) QTENSOR_INLINE_LAMBDA { dot[0][v] = dot[0][v] + dot[1][v]; });
    if constexpr (reader::shares)
      repeat<Rows>([&](auto r) QTENSOR_INLINE_LAMBDA { dot[r][1] = (dot[r][1] - dot[r][0]) >> 4; });
  }
  /// Adds those of the rows * those of the columns, both of which are large or small factors.
  QTENSOR_INLINE void add_products(const std::int32_t* of_rows, const std::int32_t* of_columns) {
    ints<A> column[vectors];
    repeat<vectors>([&](auto v) QTENSOR_INLINE_LAMBDA { column[v] = simd::load<A>(of_columns + v * lanes<A>); });
    repeat<Rows>([&](auto r) QTENSOR_INLINE_LAMBDA {
      const ints<A> row(of_rows[r]);
      repeat<vectors>([&](auto v) QTENSOR_INLINE_LAMBDA { dot[r][v] = simd::multiply_add(dot[r][v], column[v], row); });
    });
  }
};

template <class A, quads_of Q, index_t Rows, index_t Pairs, group_loops Loops>
[[gnu::noinline]] void group_registers(const group_columns& columns,
                                       const group_rows<typename quad_reader<A, Q>::unit>& rows, index_t groups,
                                       index_t quads, const group_sums& place) {
  using dots = tile_dots<A, Q, Rows, Pairs, Loops>;
  group_columns w = columns;  // copies, which nothing that is stored can change
  auto x = rows;
  constexpr index_t step = lanes<A>, vectors = dots::vectors;
  constexpr auto at_once = static_cast<index_t>(dots::reader::at_once);
  const index_t quad_bytes = Q == quads_of::bytes ? w.quad_bytes : dots::word_bytes;
  const typename dots::reader read(w.table);
  tile_sums<A, Rows, vectors> sums(place);

  for (index_t g = 0; g < groups; ++g) {
    const index_t row = g * x.entries, column = g * w.stride;
    dots group(x.starts[0] + row, x.starts[1] + row);
    const auto add = [&]<index_t Count, index_t Chain>(index_t q) QTENSOR_INLINE_LAMBDA {
      group.template add<Count, Chain>(read, w.codes + q * quad_bytes, quad_bytes, w.ahead, x.units + 4 * q, x.stride);
    };
    index_t q = 0;
    for (; q + Loops.unroll <= quads; q += Loops.unroll) {
      repeat<Loops.unroll / at_once>(
          [&](auto u) QTENSOR_INLINE_LAMBDA { add.template operator()<at_once, u % dots::chains>(q + u * at_once); });
      group.stay();
    }
    if constexpr (!Loops.whole) {
      for (; q < quads; ++q) add.template operator()<1, 0>(q);
      group.stay();
    }
    x.units += 4 * quads;
    w.codes += quads * quad_bytes;
    group.join();
    if (!Loops.plain && w.zeros != nullptr) group.add_products(x.sums + row, w.zeros + column);
    if (!Loops.plain && x.zeros != nullptr) group.add_products(x.zeros + row, w.sums + column);

    const auto scale_by = [&](auto factor) QTENSOR_INLINE_LAMBDA {
      repeat<vectors>([&](auto v) QTENSOR_INLINE_LAMBDA {
        const floats<A> of_column = simd::rounded(simd::load<A>(w.scales + column + v * step));
        repeat<Rows>([&](auto r) QTENSOR_INLINE_LAMBDA {
          const floats<A> exact = simd::to_float(group.dot[r][v]), scale = factor(of_column, r);
          sums.change(r, v, [&](const floats<A>& y) QTENSOR_INLINE_LAMBDA { return simd::fma(exact, scale, y); });
        });
      });
    };
    if (x.scales != nullptr)
      scale_by([&](const floats<A>& of_column, auto r)
                   QTENSOR_INLINE_LAMBDA { return simd::mul(of_column, floats<A>(x.scales[row + r])); });
    else
      scale_by([&](const floats<A>& of_column, auto) QTENSOR_INLINE_LAMBDA { return of_column; });
    if (!Loops.plain && w.offsets != nullptr)
      repeat<vectors>([&](auto v) QTENSOR_INLINE_LAMBDA {
        const floats<A> offset = simd::load<A>(w.offsets + column + v * step);
        repeat<Rows>([&](auto r) QTENSOR_INLINE_LAMBDA {
          const floats<A> term(x.terms[row + r]);
          sums.change(r, v, [&](const floats<A>& y) QTENSOR_INLINE_LAMBDA { return simd::fma(term, offset, y); });
        });
      });
  }
  sums.finish();
}

template <group_loops Loops>
using loops_are = std::integral_constant<group_loops, Loops>;

/// The same by the loops that suit it. g++ 12 spills where quads are rolled that are one instruction each, or unrolled
/// that are several. Many rows are short of registers and one row is a stream of memory: both do without what they do
/// not need, and one row without requests where there are none. Bytes are unrolled less: CPUs see a stream by the steps
/// of each load, which would be of 2 KB.
template <class A, quads_of Q, index_t Rows, index_t Pairs>
void group_registers_of(const group_columns& w, const group_rows<typename quad_reader<A, Q>::unit>& x, index_t groups,
                        index_t quads, const group_sums& sums) {
  constexpr bool unrolls =
      group_tile<A>::many_registers || nibble_dot<A>::takes_bytes || quad_reader<A, Q>::at_once > 1;
  constexpr index_t most = Q == quads_of::bytes ? 4 : 8;
  const auto run = [&]<group_loops Loops>(loops_are<Loops>) {
    group_registers<A, Q, Rows, Pairs, Loops>(w, x, groups, quads, sums);
  };
  if constexpr (Q == quads_of::ready_bytes) {
    if (quads % 8 == 0) return run(loops_are<group_loops{8, true, false, false}>{});
    run(loops_are<group_loops{4, false, false, false}>{});
  } else {
    const bool plain = w.zeros == nullptr && x.zeros == nullptr && w.offsets == nullptr;
    if constexpr (Rows >= 4 && group_tile<A>::many_registers)
      if (plain && quads % 4 == 0) {
        if (quads % most == 0) return run(loops_are<group_loops{most, true, true, true}>{});
        return run(loops_are<group_loops{4, true, true, true}>{});
      }
    if constexpr (Rows == 1 && unrolls)
      if (plain) {
        if (quads < most) return run(loops_are<group_loops{4, false, true, true}>{});
        if (w.ahead == 0) return run(loops_are<group_loops{most, false, false, true}>{});
        return run(loops_are<group_loops{most, false, true, true}>{});
      }
    if (quads >= most)
      run(loops_are<group_loops{unrolls ? most : 1, false, true, false}>{});
    else
      run(loops_are<group_loops{unrolls ? 4 : 1, false, true, false}>{});
  }
}

}  // namespace detail

/// What a row's signed code becomes for tiles of such weights.
template <usable_arch A, quads_of Q>
using group_unit = typename detail::quad_reader<A, Q>::unit;
/// What tiles add to every weight by themselves; starts take it back.
template <usable_arch A, quads_of Q>
inline constexpr std::int32_t group_bias = detail::quad_reader<A, Q>::bias;
/// Whether the dots of the second vector start from 17 times what those of the first do.
template <usable_arch A, quads_of Q>
inline constexpr bool group_shares = detail::quad_reader<A, Q>::shares;

/// Whether there are tiles of ready bytes.
template <usable_arch A>
inline constexpr bool takes_ready_bytes = nibble_dot<A>::takes_bytes;

/// How many rows read weights: by the way that is faster on this CPU, or, for tests, by one of them. No bit depends on
/// it.
enum class group_way { fastest, packed, ready, squares };
inline std::atomic<group_way> group_way_taken{group_way::fastest};

/// Whether many rows read ready bytes. Intel's vector units take what unpacks words where they could dot; AMD's have
/// others for it.
template <usable_arch A>
bool prefers_ready_bytes() {
  const group_way way = group_way_taken.load(std::memory_order_relaxed);
  return takes_ready_bytes<A> && (way == group_way::fastest ? simd::is_intel() : way != group_way::packed);
}

/// Where ready bytes of two vectors of columns go: quad q of vector v to [v * apart + q * quad_bytes].
struct ready_place {
  std::uint8_t* to;
  index_t quad_bytes, apart;
};

/// The weights of `quads` quads of a tile's columns as ready_bytes, less `less` modulo 2^8: tiles of many rows would do
/// it again for every few of them. Tiles read them side by side, 4 * group_tile::columns a quad.
template <usable_arch A, quads_of Q>
requires takes_ready_bytes<A>
void make_ready(const std::uint8_t* codes, index_t quad_bytes, const std::uint8_t* table, index_t quads,
                ready_place place, std::int32_t less = 0) {
  using bytes = xsimd::batch<std::uint8_t, A>;
  const detail::quad_reader<A, Q> read(table);
  const bytes below(static_cast<std::uint8_t>(less));
  for (index_t q = 0; q < quads; ++q, codes += quad_bytes, place.to += place.quad_bytes) {
    const auto both = read.read_apart(codes);
    simd::store(place.to, bytes(both.of[0]) - below);
    simd::store(place.to + place.apart, bytes(both.of[1]) - below);
  }
}

/// A tile of sums: a chain over groups g of `quads` quads each, from sums.from(r, c) or +0:
///   dot = starts(r, g) + sum over the group's k of unit(r, k) * weight(k, c) + sums(r, g) * zeros(g, c)
///         + zeros(r, g) * sums(g, c), modulo 2^32
///   y = fma(float(dot), RN(scales(g, c) * scales(r, g)), y), the row's scale left out where it has none a group
///   y = fma(terms(r, g), offsets(g, c), y) where there are offsets
/// and in the end RN(y * row_scales(r)), RN of that times last, each where there is one.
/// For r < rows <= max_rows (of ready bytes: ready_rows or one less) and c < group_tile::columns. sums.from and sums.to
/// are the same or lie apart.
template <usable_arch A, quads_of Q>
void dot_groups(const group_columns& w, const group_rows<group_unit<A, Q>>& x, index_t rows, index_t groups,
                index_t quads, const group_sums& sums) {
  constexpr bool ready = Q == quads_of::ready_bytes;
  constexpr index_t most = ready ? group_tile<A>::ready_rows : group_tile<A>::max_rows;
  detail::with_count<most, ready ? most - 1 : 1>(
      rows, [&]<index_t Rows>(std::integral_constant<index_t, Rows>)
                QTENSOR_INLINE_LAMBDA { detail::group_registers_of<A, Q, Rows, 1>(w, x, groups, quads, sums); });
}
/// The same for at most wide_rows rows and 2 * group_tile::columns columns of bytes: memory is read in order.
template <usable_arch A>
void dot_groups_wide(const group_columns& w, const group_rows<group_unit<A, quads_of::bytes>>& x, index_t rows,
                     index_t groups, index_t quads, const group_sums& sums) {
  detail::with_count<group_tile<A>::wide_rows>(
      rows, [&]<index_t Rows>(std::integral_constant<index_t, Rows>) QTENSOR_INLINE_LAMBDA {
        detail::group_registers_of<A, quads_of::bytes, Rows, 2>(w, x, groups, quads, sums);
      });
}

}  // namespace qtensor::inline QTENSOR_ABI::simd
