// The integer product's inner loop: register tiles of exact 32-bit sums, columns of packed weights in lanes.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstring>
#include <qtensor/simd/gemm_float.hpp>
#include <qtensor/simd/memory.hpp>
#include <qtensor/simd/ops_dot.hpp>

namespace qtensor::inline QTENSOR_ABI::simd {

/// Sizes of integer tiles. A panel is the columns that are packed together and computed at once.
template <usable_arch A>
struct int_tile {
  static constexpr bool many_registers = lanes<A> == 16 || features::neon;
  /// A tile's sums leave room for a quad of the weights of all columns: where those take a register a vector.
  static constexpr bool holds_weights = many_registers || sizeof(typename quad_dot<A>::weights) == sizeof(ints<A>);
  static constexpr index_t vectors = many_registers ? 4 : 2;
  static constexpr index_t max_rows = many_registers || lanes<A> == 8 ? 6 : 4;
  static constexpr index_t panel = vectors * lanes<A>;  ///< AVX-512 64, AVX2 and NEON 16, others 8

  /// Terms that a 32-bit sum holds exactly whatever the codes: 2^31 / (255 * 255).
  static constexpr index_t exact_depth = 32768;
};

/// Cuts m rows into tiles of at most `height`: as many full ones as there can be while the rest is split evenly (128
/// rows by 6: 20 of 6 and 2 of 4, not 21 of 6 and one of 2). Calls f(first row, rows).
template <class F>
QTENSOR_INLINE void for_each_row_tile(index_t m, index_t height, const F& f) {
  const index_t tiles = divide_up(m, height), missing = tiles * height - m;
  const index_t full = missing == 0 ? tiles : tiles < 2 ? 0 : tiles - 2;
  index_t row = 0;
  for (index_t t = 0; t < full; ++t, row += height) f(row, height);
  for (index_t left = tiles - full; left > 0; --left) {
    const index_t rows = divide_up(m - row, left);
    f(row, rows);
    row += rows;
  }
}

/// The same in tiles of nearly as many rows each: height or height - 1 where m >= (height - 1)^2.
template <class F>
QTENSOR_INLINE void for_each_even_tile(index_t m, index_t height, const F& f) {
  index_t row = 0;
  for (index_t left = divide_up(m, height); left > 0; --left) {
    const index_t rows = divide_up(m - row, left);
    f(row, rows);
    row += rows;
  }
}

/// Memory that will be read after a tile, which asks for it meanwhile: from each quad to the next `step` bytes more, of
/// at most 128. Spread evenly over what is computed, requests keep memory as busy as the sums.
struct reading_ahead {
  const std::int8_t* from = nullptr;  ///< null: nothing
  index_t step = 0;
};

/// Rows of units as the tiles read them: row r begins at data + r * stride.
template <usable_arch A>
struct unit_rows {
  const typename quad_dot<A>::unit* data;
  index_t stride;
};

namespace detail {

/// What is asked for beside one quad: as far as the second cache, for a panel fills the first one.
template <int Lines>
QTENSOR_INLINE void ask_for([[maybe_unused]] reading_ahead& ahead) {
  if constexpr (Lines > 0) simd::prefetch_second_level(ahead.from);
  if constexpr (Lines > 1) simd::prefetch_second_level(ahead.from + 64);
  if constexpr (Lines > 0) ahead.from += ahead.step;
}

/// sum[r][v] += one quad of the weights of vector v times the four units at row(r), in the order that suits the
/// registers.
template <class A, index_t Rows, index_t Vectors, class Row>
QTENSOR_INLINE void add_quad(ints<A> (&sum)[Rows][Vectors], const std::int8_t* panel, const Row& row) {
  using dot = quad_dot<A>;
  constexpr index_t vector_bytes = 4 * lanes<A>;
  if constexpr (int_tile<A>::holds_weights) {
    typename dot::weights w[Vectors];
    repeat<Vectors>([&](auto v) QTENSOR_INLINE_LAMBDA { w[v] = dot::load(panel + v * vector_bytes); });
    repeat<Rows>([&](auto r) QTENSOR_INLINE_LAMBDA {
      const auto four = dot::broadcast(row(r));
      repeat<Vectors>([&](auto v) QTENSOR_INLINE_LAMBDA { sum[r][v] = dot::dot(sum[r][v], w[v], four); });
    });
  } else if constexpr (requires { typename dot::half; }) {
    repeat<2>([&](auto odd) QTENSOR_INLINE_LAMBDA {
      typename dot::half w[Vectors];
      repeat<Vectors>(
          [&](auto v) QTENSOR_INLINE_LAMBDA { w[v] = dot::template load_half<int{odd}>(panel + v * vector_bytes); });
      repeat<Rows>([&](auto r) QTENSOR_INLINE_LAMBDA {
        const auto two = dot::template broadcast_half<int{odd}>(row(r));
        repeat<Vectors>([&](auto v) QTENSOR_INLINE_LAMBDA { sum[r][v] = dot::dot_half(sum[r][v], w[v], two); });
      });
    });
  } else {
    repeat<Vectors>([&](auto v) QTENSOR_INLINE_LAMBDA {
      const auto w = dot::load(panel + v * vector_bytes);
      repeat<Rows>([&](auto r) QTENSOR_INLINE_LAMBDA { sum[r][v] = dot::dot(sum[r][v], w, dot::broadcast(row(r))); });
    });
  }
}

/// From how many rows on squares are used: arranging the weights costs what they save of two rows' sums.
inline constexpr index_t square_rows = 4;

/// The sums of a tile as squares. A last row without a partner is computed twice.
template <class A, index_t Rows, index_t Vectors>
struct square_sums {
  using dot = square_dot<A>;
  static constexpr index_t pairs = divide_up(Rows, 2);
  ints<A> sum[pairs][Vectors][2];

  explicit QTENSOR_INLINE square_sums(const std::int32_t* start) {
    repeat<Vectors>([&](auto v) QTENSOR_INLINE_LAMBDA {
      const ints<A> first = simd::load<A>(start + v * lanes<A>);
      repeat<pairs>([&](auto p) QTENSOR_INLINE_LAMBDA {
        sum[p][v][0] = dot::template spread<0>(first);
        sum[p][v][1] = dot::template spread<1>(first);
      });
    });
  }
  /// Adds one quad or two of the weights times as many of the units at row(r).
  template <index_t Quads, class Row>
  QTENSOR_INLINE void add(const std::int8_t* panel, const Row& row) {
    constexpr index_t vector_bytes = 4 * lanes<A>, quad_bytes = 4 * int_tile<A>::panel;
    typename dot::rows x[pairs];
    repeat<pairs>([&](auto p) QTENSOR_INLINE_LAMBDA {
      constexpr index_t first = 2 * p, second = first + 1 < Rows ? first + 1 : first;
      x[p] = dot::template load_rows<Quads>(row(first), row(second));
    });
    repeat<Vectors>([&](auto v) QTENSOR_INLINE_LAMBDA {
      const auto w = dot::template load<Quads>(panel, panel + quad_bytes);
      repeat<pairs>([&](auto p) QTENSOR_INLINE_LAMBDA {
        sum[p][v][0] = dot::dot(sum[p][v][0], w.columns[0], x[p]);
        sum[p][v][1] = dot::dot(sum[p][v][1], w.columns[1], x[p]);
        panel = dot::after(sum[p][v], panel);
      });
      panel += vector_bytes;
    });
  }
  QTENSOR_INLINE void store(std::int32_t* sums) const {
    constexpr index_t step = lanes<A>, width = int_tile<A>::panel;
    repeat<pairs>([&](auto p) QTENSOR_INLINE_LAMBDA {
      repeat<Vectors>([&](auto v) QTENSOR_INLINE_LAMBDA {
        std::int32_t* const to = sums + 2 * p * width + v * step;
        simd::store(to, dot::template row<0>(sum[p][v]));
        if constexpr (2 * p + 1 < Rows) simd::store(to + width, dot::template row<1>(sum[p][v]));
      });
    });
  }
};

template <class A, index_t Rows, int LinesAhead>
[[gnu::noinline]] void dot_squares(const std::int8_t* panel, unit_rows<A> x, index_t quads, const std::int32_t* start,
                                   std::int32_t* sums, [[maybe_unused]] reading_ahead ahead) {
  square_sums<A, Rows, int_tile<A>::vectors> all(start);
  index_t q = 0;
  const auto row = [&](index_t r) QTENSOR_INLINE_LAMBDA { return x.data + r * x.stride + 4 * q; };
  for (; q + 2 <= quads; q += 2) {
    repeat<2>([&](auto) QTENSOR_INLINE_LAMBDA { ask_for<LinesAhead>(ahead); });
    all.template add<2>(panel, row);
    panel += 2 * int_tile<A>::panel * 4;
  }
  if (q < quads) all.template add<1>(panel, row);
  all.store(sums);
}

/// `put(r, c, sum)` gets the sums of a row and a vector of columns, in registers still.
template <class A, index_t Rows, int LinesAhead, class Put>
[[gnu::noinline]] void dot_registers(const std::int8_t* panel, unit_rows<A> x, index_t quads, const std::int32_t* start,
                                     [[maybe_unused]] reading_ahead ahead, const Put put) {
  constexpr index_t step = lanes<A>, vectors = int_tile<A>::vectors, width = int_tile<A>::panel;
  ints<A> sum[Rows][vectors];
  repeat<vectors>([&](auto v) QTENSOR_INLINE_LAMBDA {
    const ints<A> first = simd::load<A>(start + v * step);
    repeat<Rows>([&](auto r) QTENSOR_INLINE_LAMBDA { sum[r][v] = first; });
  });
  const auto* row = x.data;
  for (index_t q = 0; q < quads; ++q) {
    ask_for<LinesAhead>(ahead);
    add_quad<A, Rows, vectors>(sum, panel, [&](auto r) QTENSOR_INLINE_LAMBDA { return row + r * x.stride; });
    panel += width * 4;
    row += 4;
  }
  repeat<Rows>([&](auto r) QTENSOR_INLINE_LAMBDA {
    repeat<vectors>([&](auto v) QTENSOR_INLINE_LAMBDA { put(index_t{r}, index_t{v * step}, sum[r][v]); });
  });
}

/// Sums that stay sums, row by row.
template <class A>
struct put_sums {
  std::int32_t* sums;
  QTENSOR_INLINE void operator()(index_t r, index_t c, const ints<A>& sum) const {
    simd::store(sums + r * int_tile<A>::panel + c, sum);
  }
};

/// Calls run(number of lines that are asked for beside each quad).
template <class Run>
QTENSOR_INLINE void with_lines(const reading_ahead& ahead, const Run& run) {
  if (ahead.from == nullptr) return run(std::integral_constant<int, 0>{});
  return ahead.step <= 64 ? run(std::integral_constant<int, 1>{}) : run(std::integral_constant<int, 2>{});
}

// One row: the sums of four quads at a time are independent, so that latency does not count.
template <class A>
[[gnu::noinline]] void dot_one_row(const std::int8_t* panel, const typename quad_dot<A>::unit* row, index_t quads,
                                   const std::int32_t* start, std::int32_t* sums) {
  using dot = quad_dot<A>;
  constexpr index_t step = lanes<A>, vectors = int_tile<A>::vectors, width = int_tile<A>::panel;
  constexpr index_t chains = int_tile<A>::many_registers ? 4 : 2;
  ints<A> sum[chains][vectors];
  repeat<vectors>([&](auto v) QTENSOR_INLINE_LAMBDA {
    sum[0][v] = simd::load<A>(start + v * step);
    repeat<chains - 1>([&](auto u) QTENSOR_INLINE_LAMBDA { sum[u + 1][v] = ints<A>(0); });
  });
  const auto add = [&](index_t q, auto u) QTENSOR_INLINE_LAMBDA {
    const auto four = dot::broadcast(row + 4 * (q + u));
    repeat<vectors>([&](auto v) QTENSOR_INLINE_LAMBDA {
      sum[u][v] = dot::dot(sum[u][v], dot::load(panel + (q + u) * width * 4 + v * step * 4), four);
    });
  };
  index_t q = 0;
  for (; q + chains <= quads; q += chains) repeat<chains>([&](auto u) QTENSOR_INLINE_LAMBDA { add(q, u); });
  for (; q < quads; ++q) add(q, std::integral_constant<index_t, 0>{});
  repeat<vectors>([&](auto v) QTENSOR_INLINE_LAMBDA {
    ints<A> all = sum[0][v];
    repeat<chains - 1>([&](auto u) QTENSOR_INLINE_LAMBDA { all = all + sum[u + 1][v]; });
    simd::store(sums + v * step, all);
  });
}

template <class A, index_t Rows>
void dot_rows(const std::int8_t* panel, const unit_rows<A>& x, index_t quads, const std::int32_t* start,
              std::int32_t* sums, const reading_ahead& ahead) {
  if constexpr (Rows == 1)
    dot_one_row<A>(panel, x.data, quads, start, sums);
  else
    with_lines(ahead, [&](auto lines) {
      if constexpr (square_dot<A>::exists && Rows >= square_rows)
        dot_squares<A, Rows, lines>(panel, x, quads, start, sums, ahead);
      else
        dot_registers<A, Rows, lines>(panel, x, quads, start, ahead, put_sums<A>{sums});
    });
}

}  // namespace detail

/// sums[r * panel + c] = start[c] + sum over k < 4 * quads of unit(r, k) * weight(k, c), for r < rows <= max_rows and
/// all columns c of a panel; modulo 2^32. Weight (4q + i, c) is panel_codes[(q * panel + c) * 4 + i]. `ahead` is memory
/// that will be read next.
template <usable_arch A>
void dot_tile(const std::int8_t* panel_codes, const unit_rows<A>& x, index_t rows, index_t quads,
              const std::int32_t* start, std::int32_t* sums, const reading_ahead& ahead = {}) {
  detail::with_count<int_tile<A>::max_rows>(
      rows, [&]<index_t Rows>(std::integral_constant<index_t, Rows>)
                QTENSOR_INLINE_LAMBDA { detail::dot_rows<A, Rows>(panel_codes, x, quads, start, sums, ahead); });
}

/// The same of max_rows rows, whose sums `put(r, c, sum)` gets as vectors of columns from c on, in registers still.
template <usable_arch A, class Put>
requires(!square_dot<A>::exists) void dot_tile_to(const std::int8_t* panel_codes, const unit_rows<A>& x, index_t quads,
                                                  const std::int32_t* start, const Put& put,
                                                  const reading_ahead& ahead = {}) {
  detail::with_lines(ahead, [&](auto lines) {
    detail::dot_registers<A, int_tile<A>::max_rows, lines>(panel_codes, x, quads, start, ahead, put);
  });
}

/// A row of units as dot_split_row reads it: to[0, 8 * quads), and from there to a whole step whatever comes.
template <usable_arch A>
requires(split_dot<A>::exists) void split_row(const typename split_dot<A>::unit* units, index_t quads,
                                              std::uint8_t* to) {
  using dot = split_dot<A>;
  constexpr index_t step = dot::split_units;
  index_t k = 0;
  for (; k + step <= 4 * quads; k += step) dot::split(units + k, to + 2 * k);
  if (k < 4 * quads) {
    typename dot::unit rest[step] = {};
    std::memcpy(rest, units + k, static_cast<std::size_t>(4 * quads - k) * sizeof *rest);
    dot::split(rest, to + 2 * k);
  }
}

/// sums[p * panel + c] = sum over k < 4 * quads of (unit(k) + 128) * weight(k, c) of panel p, modulo 2^32, for one row,
/// which comes from split_row, and `Panels` panels, of which the next begins `apart` bytes behind the last: two of them
/// are two streams of memory. Asks: memory behind them is asked for, whether there is any or not.
template <usable_arch A, index_t Panels, bool Asks>
requires(split_dot<A>::exists)
    [[gnu::noinline]] void dot_split_row(const std::int8_t* panel_codes, index_t apart, const std::uint8_t* row,
                                         index_t quads, std::int32_t* sums) {
  using dot = split_dot<A>;
  constexpr index_t step = lanes<A>, vectors = int_tile<A>::vectors, quad_bytes = 4 * int_tile<A>::panel;
  constexpr index_t together = dot::quads_together, bytes_ahead = Panels == 1 ? 6144 : 4096;
  ints<A> all[Panels][vectors];
  const auto each = [](const auto& f) QTENSOR_INLINE_LAMBDA {
    detail::repeat<Panels>(
        [&](auto p) QTENSOR_INLINE_LAMBDA { detail::repeat<vectors>([&](auto v) QTENSOR_INLINE_LAMBDA { f(p, v); }); });
  };
  each([&](auto p, auto v) QTENSOR_INLINE_LAMBDA { all[p][v] = ints<A>(0); });
  const auto add = [&](auto count, index_t q) QTENSOR_INLINE_LAMBDA {
    typename dot::parts sum[Panels][vectors];
    detail::repeat<decltype(count)::value>([&](auto i) QTENSOR_INLINE_LAMBDA {
      const std::int8_t* quads_of_row = panel_codes + (q + i) * quad_bytes;
      const auto four = dot::broadcast(row + 8 * (q + i));
      if constexpr (Asks)
        detail::repeat<Panels>([&](auto p)
                                   QTENSOR_INLINE_LAMBDA { simd::prefetch(quads_of_row + p * apart + bytes_ahead); });
      each([&](auto p, auto v) QTENSOR_INLINE_LAMBDA {
        const auto w = dot::load(quads_of_row + p * apart + v * (4 * step));
        sum[p][v] = i == 0 ? dot::dot(w, four) : dot::add(sum[p][v], w, four);
      });
    });
    each([&](auto p, auto v) QTENSOR_INLINE_LAMBDA { all[p][v] = dot::fold(all[p][v], sum[p][v]); });
  };
  index_t q = 0;
  for (; q + together <= quads; q += together) add(std::integral_constant<index_t, together>{}, q);
  for (; q < quads; ++q) add(std::integral_constant<index_t, 1>{}, q);
  each([&](auto p, auto v) QTENSOR_INLINE_LAMBDA { simd::store(sums + (p * vectors + v) * step, all[p][v]); });
}

namespace detail {

template <class A, index_t Rows, index_t Columns>
[[gnu::noinline]] void dot_lines(const std::uint8_t* w, index_t w_stride, std::uint8_t flip, const std::int8_t* x,
                                 index_t x_stride, index_t depth, const std::uint8_t* to_come, std::int32_t* sums,
                                 index_t sums_stride) {
  using dot = line_dot<A>;
  constexpr index_t step = dot::step;
  ints<A> sum[Rows][Columns];
  repeat<Rows>([&](auto r) QTENSOR_INLINE_LAMBDA {
    repeat<Columns>([&](auto c) QTENSOR_INLINE_LAMBDA { sum[r][c] = ints<A>(0); });
  });
  const auto add = [&](const std::uint8_t* from, index_t from_stride, index_t k) QTENSOR_INLINE_LAMBDA {
    typename dot::row values[Rows];
    repeat<Rows>([&](auto r) QTENSOR_INLINE_LAMBDA { values[r] = dot::load(x + r * x_stride + k); });
    repeat<Columns>([&](auto c) QTENSOR_INLINE_LAMBDA {
      repeat<Rows>([&](auto r) QTENSOR_INLINE_LAMBDA {
        sum[r][c] = dot::dot(sum[r][c], from + c * from_stride, flip, values[r]);
      });
    });
  };
  index_t k = 0;
  for (; k + step <= depth; k += step) {
    if (to_come != nullptr) simd::fetch_lines<Columns * step>(to_come, Columns * k);
    add(w + k, w_stride, k);
  }
  if (k < depth) {
    alignas(64) std::uint8_t rest[Columns * step];
    std::memset(rest, flip, sizeof rest);
    for (index_t c = 0; c < Columns; ++c)
      std::memcpy(rest + c * step, w + c * w_stride + k, static_cast<std::size_t>(depth - k));
    add(rest, step, k);
  }
  repeat<Rows>([&](auto r) QTENSOR_INLINE_LAMBDA {
    repeat<Columns>([&](auto c) QTENSOR_INLINE_LAMBDA {
      sums[r * sums_stride + c] = static_cast<std::int32_t>(simd::reduce_add(simd::bits_as<std::uint32_t>(sum[r][c])));
    });
  });
}

}  // namespace detail

/// How many rows dot_along takes faster than panels are packed and multiplied, and with so many terms, of which each
/// sum has to be worth adding its lanes. Measured on Zen 5, 64 to 4096 columns: with AVX-512 VNNI these or a few more;
/// with AVX2 4, and 8 from memory.
template <usable_arch A>
inline constexpr index_t most_line_rows = int_tile<A>::many_registers && (line_dot<A>::step == 4 * lanes<A>) ? 12 : 4;
template <usable_arch A>
constexpr index_t line_rows(index_t depth) {
  return std::clamp(depth / 64, index_t{3}, most_line_rows<A>);
}

/// The same for weights that are not packed and few rows: column c's weights lie at w + c * w_stride, one k after the
/// other, the signed code of a byte is w ^ flip. sums[r * sums_stride + c] = sum over k < depth of (weight(k, c) +
/// line_dot<A>::weight_offset) * x(r, k), modulo 2^32, for r < rows and c < columns. Rows are signed codes, row r at
/// x + r * x_stride; up to a whole step is read beyond depth and must be 0. `asks`: for the memory behind columns that
/// lie without gaps, whether there is any or not: in its order, which is not that in which it will be read.
template <usable_arch A>
void dot_along(const std::uint8_t* w, index_t w_stride, index_t columns, std::uint8_t flip, const std::int8_t* x,
               index_t x_stride, index_t rows, index_t depth, bool asks, std::int32_t* sums, index_t sums_stride) {
  const auto some_columns = [&]<index_t Columns>(std::integral_constant<index_t, Columns>, index_t c) {
    // 16 sums are as many as AVX-512 and NEON hold with the operands.
    constexpr index_t most_rows = std::min(16 / Columns, index_t{4});
    const std::uint8_t* const from = w + c * w_stride;
    const std::uint8_t* to_come = asks && w_stride == depth && Columns > 1 ? from + Columns * depth : nullptr;
    for_each_even_tile(rows, most_rows, [&](index_t r, index_t count) {
      detail::with_count<most_rows>(count, [&]<index_t Rows>(std::integral_constant<index_t, Rows>) {
        detail::dot_lines<A, Rows, Columns>(from, w_stride, flip, x + r * x_stride, x_stride, depth, to_come,
                                            sums + r * sums_stride + c, sums_stride);
      });
      to_come = nullptr;
    });
  };
  // More columns at once hide more of the way to memory.
  index_t c = 0;
  if constexpr (int_tile<A>::many_registers)
    for (; rows <= 2 && c + 8 <= columns; c += 8) some_columns(std::integral_constant<index_t, 8>{}, c);
  for (; c + 4 <= columns; c += 4) some_columns(std::integral_constant<index_t, 4>{}, c);
  for (; c < columns; ++c) some_columns(std::integral_constant<index_t, 1>{}, c);
}

/// Rows of exact sums on their way to memory, some at every call: `Columns` of them, a multiple of `lanes`.
///   Zeros: less rests[r] * zeros[c], modulo 2^32
///   RowZeros: less row_zeros[r] * column_sums[c], where there are some
///   To float: RN(RN(float(sum) * row_scales[r]) * scales[c]); int32: as they are
template <usable_arch A, index_t Columns, bool Zeros, class To, bool RowZeros = true>
struct sums_in_turn {
  static constexpr index_t columns = Columns;
  const std::int32_t* sums = nullptr;
  index_t stride = 0, rows = 0;
  To* to = nullptr;
  index_t to_stride = 0;
  const float *row_scales = nullptr, *scales = nullptr;
  const std::int32_t *rests = nullptr, *zeros = nullptr, *row_zeros = nullptr, *column_sums = nullptr;

  QTENSOR_INLINE void some(index_t count) {
    const index_t n = count < rows ? count : rows;
    for (index_t r = 0; r < n; ++r) {
      detail::repeat<Columns / lanes<A>>(
          [&](auto v) QTENSOR_INLINE_LAMBDA { put(r, v * lanes<A>, to, simd::load<A>(sums + v * lanes<A>)); });
      sums += stride, to += to_stride;
    }
    rows -= n;
    if constexpr (std::same_as<To, float>) row_scales += n;
    if constexpr (Zeros) rests += n;
    if constexpr (RowZeros)
      if (row_zeros != nullptr) row_zeros += n;
  }

  /// Sums of row r and of a vector of columns from c on that come from registers instead.
  QTENSOR_INLINE void operator()(index_t r, index_t c, const ints<A>& sum) const { put(r, c, to + r * to_stride, sum); }

 private:
  QTENSOR_INLINE void put(index_t r, index_t c, To* row, ints<A> sum) const {
    if constexpr (RowZeros)
      if (row_zeros != nullptr) sum = sum - ints<A>(row_zeros[r]) * simd::load<A>(column_sums + c);
    if constexpr (Zeros) sum = sum - ints<A>(rests[r]) * simd::load<A>(zeros + c);
    if constexpr (std::same_as<To, float>)
      simd::store(row + c,
                  simd::mul(simd::mul(simd::to_float(sum), floats<A>(row_scales[r])), simd::load<A>(scales + c)));
    else
      simd::store(row + c, sum);
  }
};

}  // namespace qtensor::inline QTENSOR_ABI::simd
