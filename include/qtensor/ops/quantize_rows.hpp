// The passes of quantize over the rows of a source: one, two, or along columns.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <qtensor/ops/row_quantizer.hpp>

namespace qtensor::inline QTENSOR_ABI::ops {

/// Codes of rows [start, start + rows) and columns [col, col + n), every column with an entry of p, which is made ready
/// once for all rows (once for every tile of rows where they do not lie in memory). False, with nothing written, where
/// rows of codes do not lie at one distance.
template <tile_source X, class Quantizer>
bool encode_columns(const X& x, const Quantizer& q, index_t start, index_t rows, index_t col, index_t n,
                    const parameters_view& p) {
  if (!q.rows_are_even() || q.is_flat()) return false;
  if (const std::optional<index_t> step = row_step(x)) {
    q.encode_columns(q.index_of_row(start), rows, col, n, x.direct(start, col), *step, p);
    return true;
  }
  constexpr index_t height = tile_rows, width = tile_floats / tile_rows;
  alignas(64) element_of<X> tile[tile_floats];
  for (index_t row = 0; row < rows; row += height)
    for (index_t at = 0; at < n; at += width) {
      const index_t down = rows - row < height ? rows - row : height, across = n - at < width ? n - at : width;
      x.read(start + row, down, col + at, across, tile, width);
      q.encode_columns(q.index_of_row(start + row), down, col + at, across, tile, width, p.from(at));
    }
  return true;
}

/// The same for scales that are stored already: panel by panel, as many columns at a time as p has entries.
template <tile_source X, class Quantizer>
bool encode_static_columns(const X& x, const Quantizer& q, const parameters_view& p) {
  if (!q.rows_are_even() || q.is_flat()) return false;
  q.for_each_panel([&](const auto& first, const auto& count) {
    for_each_row_run(first, count, q.extents(), [&](index_t start, index_t rows) {
      for (index_t col = 0; col < x.cols(); col += tile_floats) {
        const index_t n = x.cols() - col < tile_floats ? x.cols() - col : tile_floats;
        q.load(q.index_of_row(start), col, n, 1, p);
        encode_columns(x, q, start, rows, col, n, p);
      }
    });
  });
  return true;
}

/// The largest finite magnitude of a source, 0 if there is none.
template <tile_source X>
float finite_amax(const X& x) {
  std::uint32_t most = 0;
  using from = source_elements<X>;
  for_each_piece(x, 0, x.rows(), 1, [&](index_t, index_t, index_t n, const auto* elements) {
    std::uint32_t bits = simd::amax_bits<simd::best_arch, from>(elements, n);
    if (bits >= infinity_bits) [[unlikely]] {
      bits = 0;
      for (index_t i = 0; i < n; ++i) {
        const std::uint32_t one = bits_of(simd::number<from>(elements[i])) & magnitude_bits;
        if (one < infinity_bits && one > bits) bits = one;
      }
    }
    most = bits > most ? bits : most;
  });
  return float_of(most);
}

/// One pass: every row has its own scales, and its blocks are short enough for a tile. Statistics, scales and codes of
/// a tile are done while it is in L1.
template <tile_source X, class Quantizer>
void quantize_in_one_pass(const X& x, const Quantizer& q, index_t step) {
  using S = typename Quantizer::scheme_type;
  constexpr std::size_t most = static_cast<std::size_t>(tile_floats);
  std::uint32_t amax[most];
  float low[needs_extremes<S> ? most : 1], high[needs_extremes<S> ? most : 1], scales[most];
  std::int32_t zeros[S::has_zero_point ? most : 1];
  const statistics_view seen{amax, needs_extremes<S> ? low : nullptr, needs_extremes<S> ? high : nullptr};
  const parameters_view p{scales, S::has_zero_point ? zeros : nullptr};
  for_each_quantizer_piece(x, q, step, q.tile_length(), [&](index_t row, index_t col, index_t n, const auto* elements) {
    const auto at = q.index_of_row(row);
    const index_t first = col / q.block_length(), count = divide_up(n, q.block_length());
    if (q.fetches()) simd::fetch(elements, n);
    block_statistics<S, typename Quantizer::source_type>(elements, n, q.block_length(), seen);
    const simd::blocks_are blocks = q.finish(at, first, count, seen, p);
    q.encode(at, col, n, elements, q.block_length(), p, blocks);
    if (blocks == simd::blocks_are::special) q.mend(at, col, n, elements, first, seen);
  });
}

/// The statistics of elements [first, first + size) of a row, joined to those of its blocks.
template <class S, simd::float_source From>
void join_piece(index_t first, index_t size, index_t length, const typename From::type* elements,
                const statistics_view& seen) {
  for_each_part(first, size, length, elements, [&](index_t col, index_t n, const auto* part) {
    join_statistics<S, From>(part, n, length, seen.from(col / length));
  });
}

/// The same for rows [start, start + rows) of a source.
template <class S, tile_source X>
void join_rows(const X& x, index_t start, index_t rows, index_t step, index_t length, const statistics_view& seen) {
  for_each_piece(x, start, rows, step, [&](index_t, index_t piece, index_t size, const auto* elements) {
    join_piece<S, source_elements<X>>(piece, size, length, elements, seen);
  });
}

/// Codes of rows [start, start + rows) of a source, of all of them where the tensor is flat, from the parameters of a
/// row's blocks.
template <tile_source X, class Quantizer>
void encode_rows(const X& x, const Quantizer& q, index_t start, index_t rows, index_t step, const statistics_view& seen,
                 const parameters_view& p, bool special) {
  const index_t length = q.block_length();
  const auto encode = [&](const auto& at, index_t piece, index_t size, const auto* elements) {
    for_each_part(piece, size, length, elements, [&](index_t col, index_t n, const auto* part) {
      const index_t block = col / length;
      q.encode(at, col, n, part, length, p.from(block));
      if (special) q.mend(at, col, n, part, block, seen.from(block));
    });
  };
  if (q.is_flat())
    return for_each_flat_piece(x, step, q.encode_length(),
                               [&](index_t, index_t piece, index_t size, const auto* elements) {
                                 encode(q.index_of_row(0), piece, size, elements);
                               });
  if (length == 1 && !special && encode_columns(x, q, start, rows, 0, x.cols(), p)) return;
  for_each_piece(x, start, rows, step, [&](index_t row, index_t piece, index_t size, const auto* elements) {
    encode(q.index_of_row(row), piece, size, elements);
  });
}

/// Two passes over each panel of rows that share scales: statistics, then codes.
template <tile_source X, class Quantizer>
void quantize_in_two_passes(const X& x, const Quantizer& q, index_t step) {
  using S = typename Quantizer::scheme_type;
  statistics_memory<S> statistics(q.block_count());
  parameters_memory<S> parameters(q.block_count());
  const statistics_view seen = statistics.view();
  const parameters_view p = parameters.view();
  const index_t length = q.block_length();
  if (q.is_flat()) {
    for_each_flat_piece(x, step, q.encode_length(), [&](index_t, index_t piece, index_t size, const auto* elements) {
      join_piece<S, source_elements<X>>(piece, size, length, elements, seen);
    });
    const bool special = q.finish(q.index_of_row(0), 0, q.block_count(), seen, p) == simd::blocks_are::special;
    return encode_rows(x, q, 0, x.rows(), step, seen, p, special);
  }
  q.for_each_panel([&](const auto& first, const auto& count) {
    seen.clear(q.block_count());
    for_each_row_run(first, count, q.extents(),
                     [&](index_t start, index_t rows) { join_rows<S>(x, start, rows, step, length, seen); });
    const bool special = q.finish(first, 0, q.block_count(), seen, p) == simd::blocks_are::special;
    for_each_row_run(first, count, q.extents(),
                     [&](index_t start, index_t rows) { encode_rows(x, q, start, rows, step, seen, p, special); });
  });
}

}  // namespace qtensor::inline QTENSOR_ABI::ops
