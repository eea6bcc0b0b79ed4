// The passes of quantize over the rows of a source: one, two, or along columns.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <qtensor/ops/row_quantizer.hpp>

namespace qtensor::inline QTENSOR_ABI::ops {

/// The largest finite magnitude of a source, 0 if there is none.
template <tile_source X>
float finite_amax(const X& x) {
  std::uint32_t most = 0;
  for_each_piece(x, 0, x.rows(), 1, [&](index_t, index_t, index_t n, const float* floats) {
    std::uint32_t bits = simd::amax_bits<simd::best_arch>(floats, n);
    if (bits >= infinity_bits) [[unlikely]] {
      bits = 0;
      for (index_t i = 0; i < n; ++i)
        if (is_finite(floats[i]) && (bits_of(floats[i]) & magnitude_bits) > bits)
          bits = bits_of(floats[i]) & magnitude_bits;
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
  for_each_quantizer_piece(x, q, step, [&](index_t row, index_t col, index_t n, const float* floats) {
    const auto at = q.index_of_row(row);
    const index_t first = col / q.block_length(), count = divide_up(n, q.block_length());
    if (q.fetches()) simd::fetch(floats, n);
    block_statistics<S>(floats, n, q.block_length(), seen);
    const bool special = q.finish(at, first, count, seen, p);
    q.encode(at, col, n, floats, q.block_length(), p);
    if (special) q.mend(at, col, n, floats, first, seen);
  });
}

/// The statistics of a box whose first column is `col`, joined to those of the row's blocks.
template <class S>
void join_box(index_t col, const matrix_ref<const float>& box, index_t length, const statistics_view& seen) {
  if (length == 1) return join_column_statistics<S>(box.data, box.row_stride, box.rows(), box.cols(), seen.from(col));
  for (index_t r = 0; r < box.rows(); ++r)
    for_each_part(
        col, box.cols(), length, box.data + r * box.row_stride,
        [&](index_t at, index_t n, const float* part) { join_statistics<S>(part, n, length, seen.from(at / length)); });
}

/// The same for rows [start, start + rows) of a source.
template <class S, tile_source X>
void join_rows(const X& x, index_t start, index_t rows, index_t step, index_t length, const statistics_view& seen) {
  box_reader<X>(x, box_shape::of(x, step))
      .for_each_box(start, rows, 0, x.cols(), [&](index_t, index_t col, const matrix_ref<const float>& box) {
        join_box<S>(col, box, length, seen);
      });
}

/// What one panel of rows that share scales is quantized with: parameters of the blocks of columns [first, end).
template <class Quantizer>
class panel_encoder {
  using S = typename Quantizer::scheme_type;

 public:
  /// `step`: elements that pieces of rows are multiples of.
  panel_encoder(const Quantizer& q, index_t cols, index_t step)
      : q_(q),
        step_(step),
        by_columns_(q.block_length() == 1 && !q.is_flat() && q.rows_are_even()),
        memory_(by_columns_ ? static_cast<std::size_t>(simd::column_encoder<S>::memory_for(cols)) : 0) {}

  /// Whether all elements of a row have parameters of their own, and rows of codes lie at one distance.
  bool by_columns() const { return by_columns_; }

  /// Codes of rows [start, start + rows), columns [first, first + n), from the parameters and the statistics of the
  /// row's blocks, which are those of all these rows.
  template <class Reader>
  void encode(Reader& floats, index_t start, index_t rows, index_t first, index_t n, const parameters_view& p,
              const statistics_view& seen, bool special) {
    if (by_columns_ && !special) {
      const auto columns = q_.column_encoder(p.from(first), n, memory_.data());
      floats.for_each_box(start, rows, first, n, [&](index_t row, index_t col, const matrix_ref<const float>& box) {
        q_.encode_columns(columns, first, q_.index_of_row(row), col, box);
      });
    } else {
      floats.for_each_box(start, rows, first, n, [&](index_t row, index_t col, const matrix_ref<const float>& box) {
        for (index_t r = 0; r < box.rows(); ++r)
          encode_row(q_.index_of_row(row + r), col, box.cols(), box.data + r * box.row_stride, p, seen, special);
      });
    }
  }

  /// Codes of elements [col, col + n) of a row, in pieces that a tile holds; p and seen begin at block `first`.
  template <class Index>
  void encode_row(const Index& row, index_t col, index_t n, const float* floats, const parameters_view& p,
                  const statistics_view& seen, bool special, index_t first = 0) const {
    const index_t length = q_.block_length(), piece = piece_length(step_, tile_floats);
    for (index_t i = 0; i < n; i += piece)
      for_each_part(col + i, n - i < piece ? n - i : piece, length, floats + i,
                    [&](index_t at, index_t count, const float* part) {
                      const index_t block = at / length;
                      q_.encode(row, at, count, part, length, p.from(block - first));
                      if (special) q_.mend(row, at, count, part, block, seen.from(block - first));
                    });
  }

 private:
  const Quantizer& q_;
  index_t step_;
  bool by_columns_;
  std::vector<float> memory_;
};

/// Codes of rows [start, start + rows) of a source, of all of them where the tensor is flat, from the parameters of a
/// row's blocks.
template <tile_source X, class Quantizer>
void encode_rows(const X& x, const Quantizer& q, index_t start, index_t rows, index_t step, const statistics_view& seen,
                 const parameters_view& p, bool special) {
  panel_encoder<Quantizer> panel(q, x.cols(), step);
  if (q.is_flat())
    return for_each_flat_piece(x, step, tile_floats, [&](index_t, index_t piece, index_t size, const float* floats) {
      panel.encode_row(q.index_of_row(0), piece, size, floats, p, seen, special);
    });
  box_reader<X> floats(x, box_shape::of(x, step));
  panel.encode(floats, start, rows, 0, x.cols(), p, seen, special);
}

/// Bands of rows with scales of their own, from a source whose own order runs across them: statistics of all rows of a
/// band, then their codes. What lies in memory is read twice, the second time from a cache; reading it once, in lines
/// here and there, would take longer.
template <tile_source X, class Quantizer>
void quantize_bands(const X& x, const Quantizer& q, index_t step) {
  using S = typename Quantizer::scheme_type;
  box_reader<X> floats(x, box_shape::of(x, step));
  const index_t cols = x.cols(), length = q.block_length(), blocks = divide_up(cols, length);
  const index_t height = floats.shape().rows;
  statistics_memory<S> statistics(height * blocks);
  parameters_memory<S> parameters(height * blocks);
  std::vector<char> special(static_cast<std::size_t>(height));
  const panel_encoder<Quantizer> panel(q, cols, step);
  const statistics_view seen = statistics.view();
  const parameters_view p = parameters.view();
  for (index_t start = 0; start < x.rows(); start += height) {
    const index_t rows = x.rows() - start < height ? x.rows() - start : height;
    const auto for_each_run = [&](auto visit) {
      floats.for_each_box(start, rows, 0, cols, [&](index_t row, index_t col, const matrix_ref<const float>& box) {
        for (index_t r = 0; r < box.rows(); ++r) visit(row + r - start, col, box.cols(), box.data + r * box.row_stride);
      });
    };
    // Where the tensor is one long row, rows of the source are runs of it.
    const auto first_block = [&](index_t r) { return q.is_flat() ? (start + r) * blocks : 0; };
    seen.clear(rows * blocks);
    for_each_run([&](index_t r, index_t col, index_t n, const float* run) {
      join_box<S>(col, {run, 1, n, n, 1}, length, seen.from(r * blocks));
    });
    for (index_t r = 0; r < rows; ++r)
      special[static_cast<std::size_t>(r)] =
          q.finish(q.index_of_row(start + r), first_block(r), blocks, seen.from(r * blocks), p.from(r * blocks));
    for_each_run([&](index_t r, index_t col, index_t n, const float* run) {
      const index_t first = first_block(r);
      panel.encode_row(q.index_of_row(start + r), first * length + col, n, run, p.from(r * blocks),
                       seen.from(r * blocks), special[static_cast<std::size_t>(r)] != 0, first);
    });
  }
}

/// Columns of a panel that are quantized at a time: as many as fit the second-level cache, where both passes can then
/// find them, or all.
template <class Quantizer>
index_t panel_width(const Quantizer& q, index_t rows, index_t cols, index_t step) {
  const index_t width = piece_length(step, box_floats / rows);
  const bool fits = rows * cols <= box_floats || q.block_length() >= cols || step % q.block_length() != 0;
  return fits || width < 512 ? cols : width;
}

/// Two passes over each panel of rows that share scales: statistics, then codes.
template <tile_source X, class Quantizer>
void quantize_in_two_passes(const X& x, const Quantizer& q, index_t step) {
  using S = typename Quantizer::scheme_type;
  const index_t length = q.block_length(), cols = x.cols();
  if (q.rows_are_panels() && length <= cols && !reads_by_rows(x, 0)) return quantize_bands(x, q, step);
  statistics_memory<S> statistics(q.block_count());
  parameters_memory<S> parameters(q.block_count());
  const statistics_view seen = statistics.view();
  const parameters_view p = parameters.view();
  if (q.is_flat()) {
    for_each_flat_piece(x, step, tile_floats, [&](index_t, index_t piece, index_t size, const float* floats) {
      join_box<S>(piece, {floats, 1, size, size, 1}, length, seen);
    });
    const bool special = q.finish(q.index_of_row(0), 0, q.block_count(), seen, p);
    return encode_rows(x, q, 0, x.rows(), step, seen, p, special);
  }
  panel_encoder<Quantizer> panel(q, cols, step);
  box_reader<X> floats(x, box_shape::of(x, step));
  const auto quantize_columns = [&](const auto& first, const auto& count, index_t col, index_t n) {
    const index_t block = col / length, blocks = divide_up(n, length);
    seen.from(block).clear(blocks);
    for_each_row_run(first, count, q.extents(), [&](index_t start, index_t rows) {
      floats.for_each_box(start, rows, col, n, [&](index_t, index_t at, const matrix_ref<const float>& box) {
        join_box<S>(at, box, length, seen);
      });
    });
    const bool special = q.finish(first, block, blocks, seen.from(block), p.from(block));
    for_each_row_run(first, count, q.extents(),
                     [&](index_t start, index_t rows) { panel.encode(floats, start, rows, col, n, p, seen, special); });
  };
  const box_shape shape = floats.shape();
  const index_t height = q.panel_rows();
  if (!reads_by_rows(x, 0) && q.extents().size() == 2 && 2 * height <= shape.rows && step % length == 0) {
    // Several panels in one box, which is read once.
    const index_t down = shape.rows / height * height;
    for (index_t row = 0; row < x.rows(); row += down)
      for (index_t col = 0; col < cols; col += shape.cols) {
        const index_t n = cols - col < shape.cols ? cols - col : shape.cols;
        const index_t end = x.rows() - row < down ? x.rows() : row + down;
        floats.read(row, end - row, col, n);
        for (index_t start = row; start < end; start += height) {
          auto first = q.index_of_row(start), count = first;
          count[0] = end - start < height ? end - start : height;
          quantize_columns(first, count, col, n);
        }
      }
  } else {
    q.for_each_panel([&](const auto& first, const auto& count) {
      const index_t width = panel_width(q, q.rows_of(count), cols, step);
      for (index_t col = 0; col < cols; col += width)
        quantize_columns(first, count, col, cols - col < width ? cols - col : width);
    });
  }
}

/// Static quantization with a scale for every column, panel by panel. False, with nothing written, where rows of codes
/// do not lie at one distance.
template <tile_source X, class Quantizer>
bool encode_static_columns(const X& x, const Quantizer& q) {
  using S = typename Quantizer::scheme_type;
  panel_encoder<Quantizer> panel(q, x.cols(), byte_step<S>);
  if (!panel.by_columns()) return false;
  parameters_memory<S> parameters(x.cols());
  const parameters_view p = parameters.view();
  box_reader<X> floats(x, box_shape::of(x, byte_step<S>));
  q.for_each_panel([&](const auto& first, const auto& count) {
    q.load(first, 0, x.cols(), 1, p);
    for_each_row_run(first, count, q.extents(), [&](index_t start, index_t rows) {
      panel.encode(floats, start, rows, 0, x.cols(), p, {}, false);
    });
  });
  return true;
}

}  // namespace qtensor::inline QTENSOR_ABI::ops
