// The passes of quantize over the rows of a source: one, two, or along columns.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <numeric>
#include <qtensor/ops/row_quantizer.hpp>
#include <vector>

namespace qtensor::inline QTENSOR_ABI::ops {

/// The largest finite magnitude of a source, 0 if there is none.
template <tile_source X>
float finite_amax(const X& x) {
  std::uint32_t most = 0;
  using from = source_elements<X>;
  const simd::fetch fetches = fetches_while_reading(x);
  const auto join = [&](index_t n, const auto* elements) {
    std::uint32_t bits = simd::amax_bits<simd::best_arch, from>(elements, n, fetches);
    if (bits >= infinity_bits) [[unlikely]] {
      bits = 0;
      for (index_t i = 0; i < n; ++i) {
        const std::uint32_t one = bits_of(simd::number<from>(elements[i])) & magnitude_bits;
        if (one < infinity_bits && one > bits) bits = one;
      }
    }
    most = bits > most ? bits : most;
  };
  const auto join_piece = [&](index_t, index_t, index_t n, const auto* elements) { join(n, elements); };
  constexpr index_t long_column = 64;
  const auto columns = columns_of(x);
  if (columns && (columns->row_stride == columns->cols() || columns->cols() >= long_column))
    for_each_column_run(*columns, x.cols(), [&](index_t, index_t n, const auto* elements) {
      for (index_t i = 0; i < n; i += tile_floats) join(std::min(tile_floats, n - i), elements + i);
    });
  else if constexpr (reads_columns<X>)
    for_each_piece(source_columns<X>(x), 0, x.cols(), 1, join_piece);
  else
    for_each_piece(x, 0, x.rows(), 1, join_piece);
  return float_of(most);
}

/// One pass over pieces of rows: statistics, scales and codes of a piece are done while it is in L1.
template <class Quantizer>
class piece_quantizer {
  using S = typename Quantizer::scheme_type;
  using From = typename Quantizer::source_type;

 public:
  explicit piece_quantizer(const Quantizer& q) : q_(q) {}

  /// Elements [col, col + n) of a row of the tensor: blocks of it, of which the row's last may be short. Needs
  /// n <= tile_floats.
  template <class Index>
  void operator()(const Index& row, index_t col, index_t n, const typename From::type* elements) {
    const statistics_view seen{amax_, needs_extremes<S> ? low_ : nullptr, needs_extremes<S> ? high_ : nullptr};
    const parameters_view p{scales_, S::has_zero_point ? zeros_ : nullptr};
    const index_t length = q_.block_length(), first = col / length;
    block_statistics<S, From>(elements, n, length, seen, q_.fetches_before_codes());
    const simd::blocks_are blocks = q_.finish(row, first, divide_up(n, length), seen, p);
    q_.encode(row, col, n, elements, length, p, blocks, q_.asks_behind_statistics(n));
    if (blocks == simd::blocks_are::special) q_.mend(row, col, n, elements, first, seen);
  }

 private:
  static constexpr std::size_t most = static_cast<std::size_t>(tile_floats);
  const Quantizer& q_;
  alignas(64) std::uint32_t amax_[most];
  alignas(64) float low_[needs_extremes<S> ? most : 1], high_[needs_extremes<S> ? most : 1], scales_[most];
  alignas(64) std::int32_t zeros_[S::has_zero_point ? most : 1];
};

/// One pass over blocks that come from memory one by one, longer than what is best read at a time: parts of a block are
/// encoded while as much of the next is read for its statistics. Memory so is never waited for, nor left alone.
template <class Quantizer>
class block_pipeline {
  using S = typename Quantizer::scheme_type;
  using From = typename Quantizer::source_type;
  using element = typename From::type;
  using index_array = std::remove_cvref_t<decltype(std::declval<const Quantizer&>().extents())>;

 public:
  /// `part`: elements that are read and encoded in turn, whole bytes of codes.
  block_pipeline(const Quantizer& q, index_t part) : q_(q), part_(part), statistics_(2), parameters_(1) {}

  /// One block: elements [col, col + n) of a row of the tensor, which stay where they are until the next has come.
  void operator()(const index_array& row, index_t col, index_t n, const element* elements) {
    const statistics_view seen = statistics_.view().from(turn_);
    seen.clear(1);
    encode_beside(n, [&](index_t i, index_t some) {
      join_statistics<S, From>(elements + i, some, n, seen, q_.fetches_while_reading());
    });
    blocks_ = q_.finish(row, col / q_.block_length(), 1, seen, parameters_.view());
    row_ = row, col_ = col, n_ = n, elements_ = elements;
    turn_ = 1 - turn_;
  }
  /// The codes of the last one.
  void finish() {
    encode_beside(0, [](index_t, index_t) {});
  }

 private:
  template <class Read>
  void encode_beside(index_t n, const Read& read) {
    const statistics_view seen = statistics_.view().from(1 - turn_);
    for (index_t i = 0; i < std::max(n, n_); i += part_) {
      if (i < n) read(i, std::min(part_, n - i));
      if (i >= n_) continue;
      const index_t some = std::min(part_, n_ - i);
      q_.encode(row_, col_ + i, some, elements_ + i, q_.block_length(), parameters_.view(), blocks_, {});
      if (blocks_ == simd::blocks_are::special)
        q_.mend(row_, col_ + i, some, elements_ + i, col_ / q_.block_length(), seen);
    }
  }

  const Quantizer& q_;
  index_t part_;
  statistics_memory<S> statistics_;
  parameters_memory<S> parameters_;
  simd::blocks_are blocks_{};
  index_array row_{};
  index_t col_ = 0, n_ = 0, turn_ = 0;
  const element* elements_ = nullptr;
};

/// One pass: every row has its own scales, and its blocks are short enough for a tile.
template <tile_source X, class Quantizer>
void quantize_in_one_pass(const X& x, const Quantizer& q, index_t step) {
  const bool stay = !q.is_flat() || row_step(x) == x.cols();  // pieces, in memory
  if (q.reads_in_turn(step) && stay) {
    block_pipeline<Quantizer> quantize_block(q, q.part_length());
    for_each_quantizer_piece(x, q, step, 1, [&](index_t row, index_t col, index_t n, const auto* elements) {
      quantize_block(q.index_of_row(row), col, n, elements);
    });
    return quantize_block.finish();
  }
  piece_quantizer<Quantizer> quantize_piece(q);
  for_each_quantizer_piece(x, q, step, q.tile_length(), [&](index_t row, index_t col, index_t n, const auto* elements) {
    quantize_piece(q.index_of_row(row), col, n, elements);
  });
}

/// Calls visit(at, n, elements) for tiles of n short rows of a source, the first at an index of the tensor.
template <tile_source X, class Quantizer, class Visit>
void for_each_padded_tile(const X& x, const Quantizer& q, const padded_rows& tile, Visit visit) {
  if constexpr (Quantizer::rank > 1) {
    alignas(64) element_of<X> elements[tile_floats];
    std::fill_n(elements, tile.most * tile.length, element_of<X>{});  // zeros behind rows are seen by no statistics
    for_each_row_tile(q.extents(), tile.most, [&](index_t row, index_t n, const auto& at) {
      if (const auto step = row_step(x))
        simd::copy_rows(x.direct(row, 0), *step, n, tile.cols, elements, tile.length);
      else
        x.read(row, n, 0, tile.cols, elements, tile.length);
      visit(at, n, static_cast<const element_of<X>*>(elements));
    });
  }
}

/// One pass over short rows: statistics, scales and codes of several while they are in L1.
template <tile_source X, class Quantizer>
void quantize_padded_rows(const X& x, const Quantizer& q, const padded_rows& tile) {
  using S = typename Quantizer::scheme_type;
  statistics_memory<S> statistics(tile.most * tile.blocks);
  parameters_memory<S> parameters(tile.most * tile.blocks);
  const statistics_view seen = statistics.view();
  const parameters_view p = parameters.view();
  for_each_padded_tile(x, q, tile, [&](const auto& at, index_t n, const auto* elements) {
    block_statistics<S, source_elements<X>>(elements, n * tile.length, tile.block, seen);
    const simd::blocks_are blocks = q.finish_tile(at, n, tile, seen, p);
    q.encode_rows(at, n, tile, elements, p, blocks);
    if (blocks == simd::blocks_are::special) q.mend_rows(at, n, tile, elements, seen);
  });
}

/// The same under scales (and zero points) that are stored.
template <tile_source X, class Quantizer>
void encode_padded_rows(const X& x, const Quantizer& q, const padded_rows& tile) {
  parameters_memory<typename Quantizer::scheme_type> parameters(tile.most * tile.blocks + simd::lanes<simd::best_arch>);
  const parameters_view p = parameters.view();
  for_each_padded_tile(x, q, tile, [&](const auto& at, index_t n, const auto* elements) {
    q.load_tile(at, n, tile, p);
    q.encode_rows(at, n, tile, elements, p, simd::blocks_are::ordinary);
  });
}

/// Calls visit(i, blocks, part, block) for what n columns from `col` on are of blocks of `length`: column i and those
/// behind it are `blocks` of them whole, or a part of one, `part` columns each; the first is block `block`.
template <class Visit>
void for_each_run_of_blocks(index_t col, index_t n, index_t length, Visit visit) {
  for (index_t i = 0, blocks, part; i < n; i += blocks * part) {
    const index_t at = col + i;
    part = std::min(length - at % length, n - i);
    blocks = part == length ? (n - i) / length : 1;
    visit(i, blocks, part, at / length);
  }
}

/// The largest magnitudes of blocks over all rows of a box, joined to those of the row's blocks: down the columns
/// first, which takes a fraction of the look-ups along each row.
template <simd::float_source From>
void join_box_down(index_t col, const matrix_ref<const typename From::type>& box, index_t length,
                   const statistics_view& seen, simd::fetch fetches) {
  constexpr index_t wide = 1024;
  for (index_t first = 0; first < box.cols(); first += wide) {
    const index_t n = std::min(wide, box.cols() - first);
    alignas(64) std::uint32_t best[wide];
    std::fill_n(best, n, 0u);  // no more than there are: boxes from memory are narrow
    simd::accumulate_amax_bits<simd::best_arch, From>(&box(0, first), box.row_stride, box.rows(), n, best, fetches);
    for_each_run_of_blocks(col + first, n, length, [&](index_t i, index_t blocks, index_t part, index_t block) {
      simd::join_block_maxima<simd::best_arch>(best + i, blocks, part, seen.amax + block);
    });
  }
}

/// The same of extremes. False, with some of them joined, where an element is a NaN or an infinity.
template <simd::float_source From>
bool join_box_ranges_down(index_t col, const matrix_ref<const typename From::type>& box, index_t length,
                          const statistics_view& seen, simd::fetch fetches) {
  constexpr index_t most = 64;  // blocks at a time
  return join_column_ranges<From>(
      box.data, box.row_stride, box.rows(), box.cols(), fetches,
      [&](index_t first, index_t n, const std::uint32_t* low, const std::uint32_t* high) {
        for_each_run_of_blocks(col + first, n, length, [&](index_t i, index_t blocks, index_t part, index_t block) {
          for (index_t b = 0; b < blocks; b += most, i += most * part) {
            const index_t count = std::min(most, blocks - b);
            alignas(64) std::uint32_t of_low[most] = {}, of_high[most] = {};
            simd::join_block_maxima<simd::best_arch>(low + i, count, part, of_low);
            simd::join_block_maxima<simd::best_arch>(high + i, count, part, of_high);
            join_ranges(of_low, of_high, count, seen.from(block + b));
          }
        });
      });
}

/// The statistics of a box whose first column is `col`, joined to those of the row's blocks. `fetches`: how far
/// elements further on in a row are asked for, where blocks are long.
template <class S, simd::float_source From>
void join_box(index_t col, const matrix_ref<const typename From::type>& box, index_t length,
              const statistics_view& seen, simd::fetch fetches = simd::fetch::nothing) {
  constexpr index_t short_block = 256, several = 4;
  if constexpr (!has_one_scale<S>)
    if (length == 1)
      return join_column_statistics<S, From>(box.data, box.row_stride, box.rows(), box.cols(), seen.from(col), fetches);
  if constexpr (!leaves_out<S>)
    if (box.rows() >= several && length <= short_block) {
      if constexpr (!needs_extremes<S>)
        return join_box_down<From>(col, box, length, seen, fetches);
      else if (join_box_ranges_down<From>(col, box, length, seen, fetches))
        return;
    }
  for (index_t r = 0; r < box.rows(); ++r)
    for_each_part(col, box.cols(), length, box.data + r * box.row_stride, [&](index_t at, index_t n, const auto* part) {
      join_statistics<S, From>(part, n, length, seen.from(at / length), fetches);
    });
}

/// The same for rows [start, start + rows) of a source.
template <class S, tile_source X>
void join_rows(const X& x, index_t start, index_t rows, index_t step, index_t length, const statistics_view& seen) {
  box_reader<X>(x, box_shape::of(x, step))
      .for_each_box(start, rows, 0, x.cols(), [&](index_t, index_t col, const auto& box) {
        join_box<S, source_elements<X>>(col, box, length, seen, fetches_while_reading(x, length == 1));
      });
}

/// What one panel of rows that share scales is encoded with, from parameters of its columns' blocks.
template <class Quantizer>
class panel_encoder {
  using S = typename Quantizer::scheme_type;

 public:
  /// Rows of `cols` columns, of which `width` are encoded at a time, at most. `step`: elements that pieces of rows are
  /// multiples of; `asks`: how a source is asked for numbers further on in it.
  panel_encoder(const Quantizer& q, index_t cols, index_t width, index_t step, simd::traffic asks)
      : q_(q), step_(step), asks_(asks), by_columns_(takes_columns(q)), pads_(takes_padded(q, cols)) {
    if (pads_) spread_.emplace(tile_floats + simd::lanes<simd::best_arch>);
    if (!by_columns_ || pads_) return;
    const bool own = q.block_length() == 1;
    together_ = own && width == cols && q.codes_follow_each_other() ? rows_as_one(cols, q.panel_rows()) : 1;
    memory_ = line_array<float>::for_overwrite(Quantizer::columns_type::memory_for(width * together_));
    if (!own || together_ > 1) spread_.emplace(width * together_ + simd::lanes<simd::best_arch>);
  }

  /// Whether rows are encoded by columns, each with parameters of its own or with a copy of its block's.
  static bool by_columns(const Quantizer& q, index_t cols) { return takes_columns(q) || takes_padded(q, cols); }

  /// Codes of rows [start, start + rows), columns [first, first + n), of which each has parameters of its own, in p.
  /// `asks`: for what meanwhile; `shared`: what the scales are copies of, if they are.
  template <class Reader>
  void encode_columns(Reader& elements, index_t start, index_t rows, index_t first, index_t n, const parameters_view& p,
                      simd::blocks_are blocks = simd::blocks_are::ordinary, simd::box_requests asks = {},
                      const simd::shared_scales& shared = {}) {
    const parameters_view own = together_ > 1 ? repeated(p, n) : p;
    const auto columns = q_.column_encoder(own, n * together_, memory_.data(), blocks, shared);
    elements.for_each_box(start, rows, first, n, [&](index_t row, index_t col, const auto& box) {
      if (together_ > 1 && box.row_stride == n)
        q_.encode_rows_as_one(columns, together_, q_.index_of_row(row), box);
      else
        q_.encode_columns(columns, first, q_.index_of_row(row), col, box, asks);
    });
  }

  /// The same, where several columns may share theirs: p and seen are those of the blocks from column `first` on, which
  /// begins one.
  template <class Reader>
  void encode(Reader& elements, index_t start, index_t rows, index_t first, index_t n, const parameters_view& p,
              const statistics_view& seen, simd::blocks_are blocks, simd::box_requests asks = {}) {
    [[maybe_unused]] const bool own = q_.block_length() == 1;
    if constexpr (!goes_by_position<S>)
      if (pads_ && blocks != simd::blocks_are::special) return encode_padded(elements, start, rows, n, p, blocks);
    if constexpr (!goes_by_position<S>)
      if (by_columns_ && blocks != simd::blocks_are::special) {
        if (own) return encode_columns(elements, start, rows, first, n, p, blocks, asks);
        if (rows >= many)
          return encode_columns(elements, start, rows, first, n, of_columns(p, n), blocks, asks,
                                {p.scales, q_.block_length()});
      }
    elements.for_each_box(start, rows, first, n, [&](index_t row, index_t col, const auto& box) {
      for (index_t r = 0; r < box.rows(); ++r)
        encode_row(q_.index_of_row(row + r), col, box.cols(), box.data + r * box.row_stride, p, seen, blocks,
                   first / q_.block_length());
    });
  }

  /// Codes of elements [col, col + n) of a row; p and seen begin at block `first`.
  template <class Index>
  void encode_row(const Index& row, index_t col, index_t n, const auto* elements, const parameters_view& p,
                  const statistics_view& seen, simd::blocks_are blocks, index_t first = 0) const {
    const index_t length = q_.block_length(), piece = piece_length(step_, q_.encode_length());
    for (index_t i = 0; i < n; i += piece)
      for_each_part(col + i, n - i < piece ? n - i : piece, length, elements + i,
                    [&](index_t at, index_t count, const auto* part) {
                      const index_t block = at / length;
                      q_.encode(row, at, count, part, length, p.from(block - first), blocks, asks_);
                      if constexpr (!std::is_same_v<typename S::rule, static_only>)  // given scales are never special
                        if (blocks == simd::blocks_are::special)
                          q_.mend(row, at, count, part, block, seen.from(block - first));
                    });
  }

 private:
  static constexpr index_t many = 8;
  /// Blocks of a column, and those of many rows for which copies of their parameters are made once.
  static bool takes_columns(const Quantizer& q) {
    constexpr index_t longest = 1024;
    if (goes_by_position<S>) return false;
    const bool shares = q.block_length() <= longest && q.panel_rows() >= many;
    return (q.block_length() == 1 || shares) && !q.is_flat() && q.rows_are_even();
  }
  /// Rows that end inside bytes, padded in a tile.
  static bool takes_padded(const Quantizer& q, index_t cols) {
    const bool shares = q.panel_rows() >= many && cols == q.extents()[Quantizer::rank - 1];
    return !goes_by_position<S> && ends_inside_bytes<S>(cols) && shares && q.rows_are_even();
  }
  template <class Reader>
  void encode_padded(Reader& elements, index_t start, index_t rows, index_t n, const parameters_view& p,
                     simd::blocks_are blocks) {
    const index_t length = round_up(n, byte_step<S>);
    const padded_rows tile{n, length, 1, length, std::min(rows, tile_floats / length)};
    const parameters_view own = spread_->view();
    const auto lay_out = [&](const auto* entries, auto* to) {
      if (q_.block_length() >= n) return fill_entries(entries[0], tile.most * length, to);
      for (index_t r = 0; r < tile.most; ++r, to += length) {
        simd::spread_entries<simd::best_arch>(entries, q_.block_length(), 0, n, to);
        std::fill_n(to + n, length - n, entries[0]);
      }
    };
    lay_out(static_cast<const float*>(p.scales), own.scales);
    if (p.zero_points != nullptr) lay_out(static_cast<const std::int32_t*>(p.zero_points), own.zero_points);
    using element = typename Quantizer::source_type::type;
    alignas(64) element padded[tile_floats];
    std::fill_n(padded, tile.most * length, element{});
    elements.for_each_box(start, rows, 0, n, [&](index_t row, index_t, const auto& box) {
      for (index_t r = 0, count; r < box.rows(); r += count) {
        count = std::min(tile.most, box.rows() - r);
        simd::copy_rows(box.data + r * box.row_stride, box.row_stride, count, n, padded, length);
        q_.encode_rows(q_.index_of_row(row + r), count, tile, padded, own, blocks);
      }
    });
  }
  /// The parameters of n columns, once for each of the rows that are encoded as one.
  parameters_view repeated(const parameters_view& p, index_t n) {
    const parameters_view to = spread_->view();
    repeat_entries(p.scales, n, together_, to.scales);
    if (p.zero_points != nullptr) repeat_entries(p.zero_points, n, together_, to.zero_points);
    return to;
  }
  /// Those of n columns from those of their blocks.
  parameters_view of_columns(const parameters_view& p, index_t n) {
    using arch = simd::best_arch;
    const index_t length = q_.block_length();
    const parameters_view to = spread_->view();
    simd::spread_entries<arch>(p.scales, length, 0, n, to.scales);
    if (p.zero_points != nullptr) simd::spread_entries<arch>(p.zero_points, length, 0, n, to.zero_points);
    return to;
  }

  const Quantizer& q_;
  index_t step_;
  simd::traffic asks_;
  bool by_columns_, pads_;
  index_t together_ = 1;  // narrow rows that are encoded as one
  line_array<float> memory_;
  std::optional<parameters_memory<S>> spread_;
};

/// Codes of rows [start, start + rows) of a source, of all of them where the tensor is flat, from the parameters of a
/// row's blocks.
template <tile_source X, class Quantizer>
void encode_rows(const X& x, const Quantizer& q, index_t start, index_t rows, index_t step, const statistics_view& seen,
                 const parameters_view& p, simd::blocks_are blocks) {
  panel_encoder<Quantizer> panel(q, x.cols(), x.cols(), step, q.asks_in_order());
  if (q.is_flat())
    return for_each_flat_piece(x, step, q.encode_length(),
                               [&](index_t, index_t piece, index_t size, const auto* elements) {
                                 panel.encode_row(q.index_of_row(0), piece, size, elements, p, seen, blocks);
                               });
  box_reader<X> elements(x, box_shape::of(x, step));
  panel.encode(elements, start, rows, 0, x.cols(), p, seen, blocks);
}

/// Bands of rows with scales of their own, from a source whose own order runs across them: statistics of all rows of a
/// band, then their codes. What lies in memory is read twice, the second time from a cache; reading it once, in lines
/// here and there, would take longer.
template <tile_source X, class Quantizer>
void quantize_bands(const X& x, const Quantizer& q, index_t step) {
  using S = typename Quantizer::scheme_type;
  box_reader<X> elements(x, box_shape::of(x, step));
  const index_t cols = x.cols(), length = q.block_length(), blocks = divide_up(cols, length);
  const index_t height = elements.shape().rows;
  statistics_memory<S> statistics(height * blocks);
  parameters_memory<S> parameters(height * blocks);
  std::vector<simd::blocks_are> are(static_cast<std::size_t>(height));
  const panel_encoder<Quantizer> panel(q, cols, cols, step, q.asks_in_order());
  const statistics_view seen = statistics.view();
  const parameters_view p = parameters.view();
  for (index_t start = 0; start < x.rows(); start += height) {
    const index_t rows = x.rows() - start < height ? x.rows() - start : height;
    const auto for_each_run = [&](auto visit) {
      elements.for_each_row(
          start, rows, [&](index_t row, index_t col, index_t n, const auto* run) { visit(row - start, col, n, run); });
    };
    // Where the tensor is one long row, rows of the source are runs of it.
    const auto first_block = [&](index_t r) { return q.is_flat() ? (start + r) * blocks : 0; };
    seen.clear(rows * blocks);
    if (rows * cols <= box_floats) elements.read(start, rows, 0, cols);  // once for both
    for_each_run([&](index_t r, index_t col, index_t n, const auto* run) {
      join_box<S, source_elements<X>>(col, {run, 1, n, n, 1}, length, seen.from(r * blocks));
    });
    for (index_t r = 0; r < rows; ++r)
      are[static_cast<std::size_t>(r)] =
          q.finish(q.index_of_row(start + r), first_block(r), blocks, seen.from(r * blocks), p.from(r * blocks));
    for_each_run([&](index_t r, index_t col, index_t n, const auto* run) {
      const index_t first = first_block(r);
      panel.encode_row(q.index_of_row(start + r), first * length + col, n, run, p.from(r * blocks),
                       seen.from(r * blocks), are[static_cast<std::size_t>(r)], first);
    });
  }
}

/// Elements that are whole steps, and whose codes are whole lines of the caches: what goes past them should fill those.
template <class S>
constexpr index_t line_step(index_t step) {
  constexpr index_t line_bits = 512;
  return common_multiple(step, line_bits / std::gcd(line_bits, index_t{S::code_format::bits}));
}

/// Columns of a panel that are quantized at a time: as many as fit the second-level cache, where both passes can then
/// find them, or all. Copies of what another cache holds should fit the first one, and so should the parameters of
/// columns, or copies of them.
template <class Quantizer>
index_t panel_width(const Quantizer& q, index_t rows, index_t cols, index_t step, bool copies) {
  constexpr index_t most_columns = 2048;
  const auto width_for = [&](index_t floats, index_t least) {
    const index_t width = piece_length(step, floats / rows);
    const bool fits = rows * cols <= floats || q.block_length() >= cols || step % q.block_length() != 0;
    return fits || width < least ? cols : width;
  };
  const index_t near = copies && !q.streams() ? width_for(tile_floats, 128) : cols;
  const index_t width = near < cols ? near : width_for(box_floats, 512);
  const bool has_few_rows = step % q.block_length() == 0 && rows * most_columns <= box_floats;
  return has_few_rows ? std::min(width, piece_length(step, most_columns)) : width;
}

/// Those of a panel that comes from memory while the next box is asked for: about as many as a cache holds beside that,
/// the one the CPU likes best, or of tall panels the second one; 0 where blocks are larger, or so high that memory
/// would be read in lines here and there, and where rows are padded, which takes whole ones.
template <class Quantizer>
index_t asked_width(const Quantizer& q, index_t rows, index_t cols, index_t step) {
  if (ends_inside_bytes<typename Quantizer::scheme_type>(cols)) return 0;
  constexpr index_t tall = 96, page_floats = 1024;
  const index_t likes = simd::best_requests().box / index_t{sizeof(float)};
  const index_t floats = rows < tall ? likes : std::max(likes, std::min(rows * page_floats, box_floats));
  const index_t least = floats > box_floats / 2 ? 512 : 64;  // runs from memory, or from lines of a first-level cache
  const index_t width = piece_length(line_step<typename Quantizer::scheme_type>(step), floats / rows);
  const bool fits = step % q.block_length() == 0 && width >= least && rows * width <= 3 * floats;
  return fits ? std::min(width, cols) : 0;
}

/// Calls visit(col, n, asks) for boxes of `width` columns that make up a panel of `rows` rows in memory, `row_step`
/// apart; what `asks` asks for is the next box: beside this one, or of the rows below.
template <class Visit>
void for_each_asked_box(index_t rows, index_t row_step, index_t cols, index_t width, simd::fetch how, Visit visit) {
  for (index_t col = 0; col < cols; col += width) {
    const bool at_end = cols - col <= width;
    const simd::box_requests asks{how, at_end ? rows * row_step - col : width};
    visit(col, at_end ? cols - col : width, asks);
  }
}

/// Two passes over columns of a panel, whose rows share scales: statistics, then codes.
template <class Quantizer>
class panel_quantizer {
  using S = typename Quantizer::scheme_type;
  using From = typename Quantizer::source_type;

 public:
  /// Of rows of `cols` columns, `width` at a time, at most.
  panel_quantizer(const Quantizer& q, index_t cols, index_t width, index_t step)
      : q_(q),
        statistics_(divide_up(width, q.block_length())),
        parameters_(divide_up(width, q.block_length())),
        codes_(q, cols, width, step, q.asks_behind_panel()) {}

  /// Whether what comes next from memory can be asked for.
  static bool asks_ahead(const Quantizer& q, index_t cols) {
    return q.streams() && panel_encoder<Quantizer>::by_columns(q, cols);
  }

  /// The panel is the box of `count` rows at `first`, both indices of the tensor; its columns are [col, col + n), whole
  /// blocks. `asks`: for what while codes are made, where asks_ahead() says that it can.
  template <class Reader, class Index>
  void operator()(Reader& elements, const Index& first, const Index& count, index_t col, index_t n,
                  simd::box_requests asks = {}) {
    const simd::fetch fetches = asks.ahead != 0 ? simd::fetch::nothing : q_.fetches_before_codes();
    const index_t length = q_.block_length(), block = col / length, blocks = divide_up(n, length);
    const statistics_view seen = statistics_.view();
    const parameters_view p = parameters_.view();
    seen.clear(blocks);
    for_each_row_run(first, count, q_.extents(), [&](index_t start, index_t rows) {
      elements.for_each_box(start, rows, col, n, [&](index_t, index_t at, const auto& box) {
        join_box<S, From>(at - col, box, length, seen, fetches);
      });
    });
    const simd::blocks_are are = q_.finish(first, block, blocks, seen, p);
    for_each_row_run(first, count, q_.extents(), [&](index_t start, index_t rows) {
      codes_.encode(elements, start, rows, col, n, p, seen, are, asks);
    });
  }

 private:
  const Quantizer& q_;
  statistics_memory<S> statistics_;
  parameters_memory<S> parameters_;
  panel_encoder<Quantizer> codes_;
};

/// The same for all panels of a tensor.
template <tile_source X, class Quantizer>
void quantize_panels(const X& x, const Quantizer& q, index_t step) {
  using panel_type = panel_quantizer<Quantizer>;
  const index_t cols = x.cols(), height = q.panel_rows();
  box_reader<X> elements(x, box_shape::of(x, step));
  const box_shape shape = elements.shape();
  if (!reads_by_rows(x, 0) && q.extents().size() == 2 && 2 * height <= shape.rows && step % q.block_length() == 0) {
    // Several panels in one box, which is read once.
    const index_t down = shape.rows / height * height;
    panel_type quantize_panel(q, cols, std::min(shape.cols, cols), step);
    for (index_t row = 0; row < x.rows(); row += down)
      for (index_t col = 0; col < cols; col += shape.cols) {
        const index_t n = cols - col < shape.cols ? cols - col : shape.cols;
        const index_t end = x.rows() - row < down ? x.rows() : row + down;
        elements.read(row, end - row, col, n);
        for (index_t start = row; start < end; start += height) {
          auto first = q.index_of_row(start), count = first;
          count[0] = end - start < height ? end - start : height;
          quantize_panel(elements, first, count, col, n);
        }
      }
  } else {
    const bool direct = elements.is_direct();
    const index_t asked = direct && panel_type::asks_ahead(q, cols) ? asked_width(q, height, cols, step) : 0;
    const index_t width = asked > 0 ? asked : panel_width(q, height, cols, step, !direct);
    panel_type quantize_panel(q, cols, width, step);
    q.for_each_panel([&](const auto& first, const auto& count) {
      const auto box = [&](index_t col, index_t n, simd::box_requests asks) {
        quantize_panel(elements, first, count, col, n, asks);
      };
      if (asked > 0) return for_each_asked_box(q.rows_of(count), *row_step(x), cols, asked, q.fetches(), box);
      for (index_t col = 0; col < cols; col += width) box(col, cols - col < width ? cols - col : width, {});
    });
  }
}

/// The same for the one panel of a tensor that is one long row.
template <tile_source X, class Quantizer>
void quantize_flat(const X& x, const Quantizer& q, index_t step) {
  using S = typename Quantizer::scheme_type;
  statistics_memory<S> statistics(q.block_count());
  parameters_memory<S> parameters(q.block_count());
  for_each_flat_piece(x, step, q.encode_length(), [&](index_t, index_t piece, index_t size, const auto* elements) {
    join_box<S, source_elements<X>>(piece, {elements, 1, size, size, 1}, q.block_length(), statistics.view(),
                                    q.fetches_while_reading());
  });
  const simd::blocks_are blocks = q.finish(q.index_of_row(0), 0, q.block_count(), statistics.view(), parameters.view());
  encode_rows(x, q, 0, x.rows(), step, statistics.view(), parameters.view(), blocks);
}

/// Two readings of the source: statistics, then codes.
template <tile_source X, class Quantizer>
void quantize_in_two_passes(const X& x, const Quantizer& q, index_t step) {
  if constexpr (!has_one_scale<typename Quantizer::scheme_type>)
    if (q.rows_are_panels() && q.block_length() <= x.cols() && !reads_by_rows(x, 0)) return quantize_bands(x, q, step);
  if (q.is_flat())
    quantize_flat(x, q, step);
  else
    quantize_panels(x, q, step);
}

/// Static quantization of panels of rows that share scales. False, with nothing written, where rows are not encoded by
/// columns: panels have nothing to share then, or little, where long rows have long blocks, or where rows come from
/// memory and the CPU likes to take them one by one.
template <tile_source X, class Quantizer>
bool encode_static_panels(const X& x, const Quantizer& q, index_t step) {
  using S = typename Quantizer::scheme_type;
  constexpr index_t long_block = 128;
  if (q.block_length() >= long_block && q.row_length() >= tile_floats) return false;
  if (q.encodes_groups_in_order()) return false;
  if (!panel_encoder<Quantizer>::by_columns(q, x.cols())) return false;
  panel_encoder<Quantizer> panel(q, x.cols(), x.cols(), step, q.asks_in_order());
  const index_t blocks = q.block_count();
  parameters_memory<S> parameters(blocks);
  const parameters_view p = parameters.view();
  box_reader<X> elements(x, box_shape::of(x, step));
  q.for_each_panel([&](const auto& first, const auto& count) {
    q.load(first, 0, blocks, q.block_length(), p);
    for_each_row_run(first, count, q.extents(), [&](index_t start, index_t rows) {
      const auto box = [&](index_t col, index_t n, simd::box_requests asks) {
        panel.encode(elements, start, rows, col, n, p.from(col / q.block_length()), {}, simd::blocks_are::ordinary,
                     asks);
      };
      const index_t asked = elements.is_direct() && q.streams() ? asked_width(q, rows, x.cols(), step) : 0;
      if (asked > 0)
        for_each_asked_box(rows, *row_step(x), x.cols(), asked, q.fetches(), box);
      else
        box(0, x.cols(), {});
    });
  });
  return true;
}

}  // namespace qtensor::inline QTENSOR_ABI::ops
