// The float product's inner loops: register tiles in which every output is one chain of multiply-adds.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <qtensor/core/rounded.hpp>
#include <qtensor/core/support.hpp>
#include <qtensor/format/wide.hpp>
#include <qtensor/simd/arch.hpp>
#include <qtensor/simd/ops.hpp>
#include <qtensor/simd/ops_columns.hpp>
#include <type_traits>
#include <utility>

namespace qtensor {

/// What a product does with the values it finds in its destination.
enum class accumulate { assign, add, subtract };

}  // namespace qtensor

// One operand has its columns in lanes (the panel), the other gives one value at a time to all lanes. No lane ever
// mixes with another and k only ascends, so neither registers, tiles nor blocks change a bit of the result: each output
// is reference::dot, or the same with every product rounded.
namespace qtensor::inline QTENSOR_ABI::simd {

/// Sizes of tiles. `accumulators` is what fits in the registers beside the operands; where fma is emulated it only
/// bounds the code.
template <usable_arch A>
struct float_tile {
  static constexpr index_t accumulators = lanes<A> == 16 || features::neon ? 24 : lanes<A> == 8 ? 12 : 4;
  static constexpr index_t max_rows = accumulators >= 12 ? 6 : 2;
  static constexpr index_t panel_vectors = 4;
  static constexpr index_t panel =
      panel_vectors * lanes<A>;          ///< columns of a packed panel: also the stride of its rows
  static constexpr index_t depth = 128;  ///< rows of a packed panel at most: 32 KB with AVX-512

  /// Vectors of columns that one tile of `rows` rows computes: 1, 2 or 4.
  static constexpr index_t vectors(index_t rows) {
    return rows * 4 <= accumulators ? 4 : rows * 2 <= accumulators ? 2 : 1;
  }
  /// The next tile of `left` rows: 6, 4, 2 or 1. Eight are two of 4: two rows alone wait for their sums.
  static constexpr index_t rows(index_t left) {
    if (max_rows == 6 && left >= 6 && left != 8) return 6;
    return max_rows == 6 && left >= 4 ? 4 : left >= 2 ? 2 : 1;
  }
};

/// How a chain takes its next term: in one rounding, ...
struct fused_step {
  template <class A>
  static QTENSOR_INLINE floats<A> add(const floats<A>& sum, const floats<A>& x, const floats<A>& w) {
    return simd::fma(x, w, sum);
  }
};
/// ... or the product rounded, and then the sum.
struct rounded_step {
  template <class A>
  static QTENSOR_INLINE floats<A> add(const floats<A>& sum, const floats<A>& x, const floats<A>& w) {
    return simd::add(sum, simd::mul(x, w));
  }
};

/// ... or product and sum rounded to f16 or bf16, of which x, w and sum are numbers: f32 before that changes nothing,
/// for its 24 digits are at least twice theirs and two more.
template <class F>
struct narrow_step {
  static_assert(std::is_same_v<F, f16> || std::is_same_v<F, bf16>);
  template <class A>
  static QTENSOR_INLINE floats<A> narrowed(const floats<A>& x) {
    if constexpr (std::is_same_v<F, f16>)
      return simd::rounded_to_f16(x);
    else
      return simd::rounded_to_bf16_plain(x);  // a NaN has bits in its upper half, as its terms had: it stays one
  }
  template <class A>
  static QTENSOR_INLINE floats<A> add(const floats<A>& sum, const floats<A>& x, const floats<A>& w) {
    return narrowed(simd::add(sum, narrowed(simd::mul(x, w))));
  }
};

/// The operand whose values go to all lanes: element (row, k) is data[row * row_stride + k * depth_stride].
struct broadcast_block {
  const float* data;
  index_t row_stride, depth_stride;
};

namespace detail {

// Calls f(0), ..., f(N - 1) with compile-time indices: keeps arrays of batches in registers at every -O level.
template <index_t N, class F>
QTENSOR_INLINE void repeat(F f) {
  [&]<index_t... I>(std::integer_sequence<index_t, I...>) QTENSOR_INLINE_LAMBDA {
    (f(std::integral_constant<index_t, I>{}), ...);
  }
  (std::make_integer_sequence<index_t, N>{});
}

// The same for f(r, v), r < M and v < N: row by row.
template <index_t M, index_t N, class F>
QTENSOR_INLINE void repeat(F f) {
  repeat<M>([&](auto r) QTENSOR_INLINE_LAMBDA { repeat<N>([&](auto v) QTENSOR_INLINE_LAMBDA { f(r, v); }); });
}

// Calls run(std::integral_constant<index_t, count>) for a count from Least to Most.
template <index_t Most, index_t Least = 1, class Run>
QTENSOR_INLINE void with_count(index_t count, const Run& run) {
  if constexpr (Most > Least)
    if (count < Most) return with_count<Most - 1, Least>(count, run);
  run(std::integral_constant<index_t, Most>{});
}

template <class A, class Step, index_t Rows, index_t Vectors>
[[gnu::noinline]] void fma_registers(const float* panel, index_t panel_stride, const broadcast_block& rows,
                                     index_t depth, float* sums, bool first) {
  constexpr index_t step = lanes<A>, width = float_tile<A>::panel;
  broadcast_block x = rows;  // a copy made by the caller would wait for what it has just written
  floats<A> sum[Rows][Vectors];
  repeat<Rows>([&](auto r) QTENSOR_INLINE_LAMBDA {
    repeat<Vectors>([&](auto v) QTENSOR_INLINE_LAMBDA {
      sum[r][v] = first ? floats<A>(0.f) : simd::load<A>(sums + r * width + v * step);
    });
  });
  for (index_t k = 0; k < depth; ++k) {
    floats<A> column[Vectors];
    // rounded: g++ 12 otherwise repeats the load in every row.
    repeat<Vectors>([&](auto v) QTENSOR_INLINE_LAMBDA { column[v] = simd::rounded(simd::load<A>(panel + v * step)); });
    repeat<Rows>([&](auto r) QTENSOR_INLINE_LAMBDA {
      const floats<A> value(x.data[r * x.row_stride]);
      repeat<Vectors>([&](auto v)
                          QTENSOR_INLINE_LAMBDA { sum[r][v] = Step::template add<A>(sum[r][v], value, column[v]); });
    });
    panel += panel_stride;
    x.data += x.depth_stride;
  }
  repeat<Rows>([&](auto r) QTENSOR_INLINE_LAMBDA {
    repeat<Vectors>([&](auto v) QTENSOR_INLINE_LAMBDA { simd::store(sums + r * width + v * step, sum[r][v]); });
  });
}

/// Cuts a tile of `vectors` columns in batches into runs that fit the registers beside `Rows` rows: calls
/// run(std::integral_constant<index_t, 1, 2 or 4>, first column).
template <class A, index_t Rows, class Run>
QTENSOR_INLINE void for_each_register_tile(index_t vectors, const Run& run) {
  constexpr index_t most = float_tile<A>::vectors(Rows);
  for (index_t v = 0, done; v < vectors; v += done) {
    const auto some = [&]<index_t Vectors>(std::integral_constant<index_t, Vectors> n) {
      run(n, v * lanes<A>);
      done = Vectors;
    };
    if (most == 4 && vectors - v >= 4)
      some(std::integral_constant < index_t, most >= 4 ? 4 : 1 > {});
    else if (most >= 2 && vectors - v >= 2)
      some(std::integral_constant < index_t, most >= 2 ? 2 : 1 > {});
    else
      some(std::integral_constant<index_t, 1>{});
  }
}
/// Calls run(std::integral_constant<index_t, rows>) for a number of rows that float_tile<A>::rows returns.
template <class A, class Run>
QTENSOR_INLINE void with_tile_rows(index_t rows, const Run& run) {
  if constexpr (float_tile<A>::max_rows == 6) {
    if (rows == 6) return run(std::integral_constant<index_t, 6>{});
    if (rows == 4) return run(std::integral_constant<index_t, 4>{});
  }
  if (rows == 2) return run(std::integral_constant<index_t, 2>{});
  run(std::integral_constant<index_t, 1>{});
}

}  // namespace detail

/// sums(r, c) = fma(x(r, k), panel(k, c), sums(r, c)) for k = 0 .. depth-1, from +0 if `first`; another Step rounds
/// more often, or to fewer digits.
///
/// r < rows, which float_tile<A>::rows returned; c < vectors * lanes, vectors <= panel_vectors. Row k of the panel
/// starts at panel + k * panel_stride, row r of sums at sums + r * float_tile<A>::panel. Any alignment. Reads and
/// writes these elements and nothing else.
template <usable_arch A, class Step = fused_step>
void fma_tile(const float* panel, index_t panel_stride, index_t vectors, const broadcast_block& x, index_t rows,
              index_t depth, float* sums, bool first) {
  detail::with_tile_rows<A>(rows, [&]<index_t Rows>(std::integral_constant<index_t, Rows>) {
    detail::for_each_register_tile<A, Rows>(
        vectors, [&]<index_t Vectors>(std::integral_constant<index_t, Vectors>, index_t col) {
          detail::fma_registers<A, Step, Rows, Vectors>(panel + col, panel_stride, x, depth, sums + col, first);
        });
  });
}

namespace detail {

template <class A, class Step, index_t Rows, index_t Vectors>
[[gnu::noinline]] void fma_columns(const float* columns, index_t stride, const broadcast_block& rows, index_t depth,
                                   float* sums, bool first) {
  constexpr index_t step = lanes<A>, width = float_tile<A>::panel;
  broadcast_block x = rows;
  floats<A> sum[Rows][Vectors];
  repeat<Rows>([&](auto r) QTENSOR_INLINE_LAMBDA {
    repeat<Vectors>([&](auto v) QTENSOR_INLINE_LAMBDA {
      sum[r][v] = first ? floats<A>(0.f) : simd::load<A>(sums + r * width + v * step);
    });
  });
  index_t k = 0;
  for (; k + 4 <= depth; k += 4) {
    repeat<Vectors>([&](auto v) QTENSOR_INLINE_LAMBDA {
      const auto column = simd::load_columns<A>(columns + v * step * stride + k, stride);
      repeat<Rows>([&](auto r) QTENSOR_INLINE_LAMBDA {
        const float* value = x.data + r * x.row_stride;
        repeat<4>([&](auto i) QTENSOR_INLINE_LAMBDA {
          sum[r][v] = Step::template add<A>(sum[r][v], floats<A>(value[i * x.depth_stride]), column[i]);
        });
      });
    });
    x.data += 4 * x.depth_stride;
  }
  for (; k < depth; ++k, x.data += x.depth_stride) {
    repeat<Vectors>([&](auto v) QTENSOR_INLINE_LAMBDA {
      alignas(64) float lane[step];
      for (index_t i = 0; i < step; ++i) lane[i] = columns[(v * step + i) * stride + k];
      const floats<A> column = simd::load<A>(lane);
      repeat<Rows>([&](auto r) QTENSOR_INLINE_LAMBDA {
        sum[r][v] = Step::template add<A>(sum[r][v], floats<A>(x.data[r * x.row_stride]), column);
      });
    });
  }
  repeat<Rows>([&](auto r) QTENSOR_INLINE_LAMBDA {
    repeat<Vectors>([&](auto v) QTENSOR_INLINE_LAMBDA { simd::store(sums + r * width + v * step, sum[r][v]); });
  });
}

}  // namespace detail

/// The same for few rows and a panel whose columns, not rows, are contiguous: panel(k, c) is columns[c * stride + k].
/// The columns are turned into lanes in registers, once for all rows.
///
/// rows is 1, 2 or 4; vectors is 1 or 2, and all vectors * lanes columns exist.
template <usable_arch A, class Step = fused_step>
void fma_tile_across(const float* columns, index_t stride, index_t vectors, const broadcast_block& x, index_t rows,
                     index_t depth, float* sums, bool first) {
  const bool two = vectors == 2;
  if (rows == 4) {
    detail::fma_columns<A, Step, 4, 1>(columns, stride, x, depth, sums, first);
    if (two) detail::fma_columns<A, Step, 4, 1>(columns + lanes<A> * stride, stride, x, depth, sums + lanes<A>, first);
  } else if (rows == 2) {
    if (two)
      detail::fma_columns<A, Step, 2, 2>(columns, stride, x, depth, sums, first);
    else
      detail::fma_columns<A, Step, 2, 1>(columns, stride, x, depth, sums, first);
  } else {
    if (two)
      detail::fma_columns<A, Step, 1, 2>(columns, stride, x, depth, sums, first);
    else
      detail::fma_columns<A, Step, 1, 1>(columns, stride, x, depth, sums, first);
  }
}

/// Element (r, c) of a tile leaves for y[r * row_stride + c * col_stride]: times alpha (one rounding, none for alpha =
/// 1), then assigned, added or subtracted (one rounding). Row r of sums starts at sums + r * width; whole batches of it
/// are read.
template <usable_arch A>
void finish_tile(const float* sums, index_t rows, index_t cols, float* y, index_t row_stride, index_t col_stride,
                 float alpha, accumulate mode, index_t width = float_tile<A>::panel) {
  constexpr index_t step = lanes<A>;
  if (col_stride == 1) {
    const floats<A> factor(alpha);
    const auto value = [&](const float* from) {
      const floats<A> v = simd::load<A>(from);
      return alpha == 1.f ? v : simd::mul(v, factor);
    };
    const auto merged = [&](const floats<A>& old, const floats<A>& v) {
      return mode == accumulate::add ? simd::add(old, v) : simd::sub(old, v);
    };
    for (index_t r = 0; r < rows; ++r, sums += width, y += row_stride) {
      index_t c = 0;
      for (; c + step <= cols; c += step) {
        const floats<A> v = value(sums + c);
        simd::store(y + c, mode == accumulate::assign ? v : merged(simd::load<A>(y + c), v));
      }
      if (c < cols) {
        const floats<A> v = value(sums + c);
        simd::store_n(y + c, cols - c, mode == accumulate::assign ? v : merged(simd::load_n<A>(y + c, cols - c), v));
      }
    }
    return;
  }
  for (index_t c = 0; c < cols; ++c)
    for (index_t r = 0; r < rows; ++r) {
      float& to = y[r * row_stride + c * col_stride];
      float v = sums[r * width + c];
      if (alpha != 1.f) v = qtensor::rounded(v * alpha);
      to = mode == accumulate::assign ? v : mode == accumulate::add ? to + v : to - v;
    }
}

}  // namespace qtensor::inline QTENSOR_ABI::simd
