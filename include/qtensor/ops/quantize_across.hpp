// Quantize across the order of a source: codes are made down its columns, which lie in memory, and turned.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <qtensor/ops/row_quantizer.hpp>

namespace qtensor::inline QTENSOR_ABI::ops {

/// A matrix of S from the columns of a source, box by box: its memory is read in long runs, and what is turned is
/// codes, a byte each, a quarter of the numbers. Scales are shared by all rows, or belong to one row each.
template <class Quantizer>
class across_quantizer {
  using S = typename Quantizer::scheme_type;
  using From = typename Quantizer::source_type;
  using element = typename From::type;
  using columns_type = typename Quantizer::columns_type;
  // What the type tells of who shares scales: all rows always do, or never.
  static constexpr bool all_share = has_one_scale<S>, none_share = Quantizer::in_groups;

 public:
  /// `length` elements of a row share a scale; pieces of rows are multiples of `step`. Needs at least as many rows as
  /// are turned together.
  across_quantizer(const Quantizer& q, const matrix_ref<const element>& columns, index_t length, index_t step)
      : q_(q),
        x_(columns),
        rows_(columns.cols()),
        cols_(columns.rows()),
        length_(std::min(length, cols_)),
        most_cols_(length_ < cols_ ? std::min(piece_length(step, wide), cols_) : cols_),
        high_(std::min(round_up(rows_, 64), most_rows(q.streams(), by_blocks()))),
        step_(high_ + 64),
        codes_(line_array<std::uint8_t>::for_overwrite(wide * step_)),
        divisors_(line_array<float>::for_overwrite(encoders_at_once() * columns_type::memory_for(high_))) {
    encoders_.reserve(static_cast<std::size_t>(encoders_at_once()));
  }

  /// Whether a matrix has scales of a kind that can be turned, and rows enough; in a cache several steps of them where
  /// scales change with every few numbers, columns that meet no other scales, and few codes that are packed by tails.
  static bool fits(const Quantizer& q, const matrix_ref<const element>& columns) {
    constexpr index_t step = columns_type::turned_elements;
    constexpr int bits = S::code_format::bits;
    if (q.panel_rows() != 1 && !is_shared(q, columns)) return false;
    if (q.streams()) return columns.cols() >= 4 * step;
    const index_t cols = columns.rows(), length = std::min(q.block_length(), cols);
    if (bits != 8 && cols < 2 * wide && cols % (bits == 4 ? wide / 4 : wide) != 0) return false;
    if (length >= wide || length == cols) return columns.cols() >= step;
    return length % 4 == 0 && columns.cols() >= several_steps;
  }

  /// Codes of all rows under scales that are stored.
  void encode() {
    if constexpr (!none_share)
      if (is_shared()) {
        parameters_memory<S> parameters(blocks());
        q_.load({}, 0, blocks(), length_, parameters.view());
        return encode_shared(parameters.view());
      }
    if constexpr (!all_share)
      for_each_band([&](index_t row, index_t rows, index_t col, index_t cols, const parameters_view& p) {
        load(row, rows, col, cols, p);
        encode_box(row, rows, col, cols, p, simd::blocks_are::ordinary);
      });
  }

  /// Whether all rows share their scales. If so, they may be a part of those that do: statistics of their blocks,
  /// joined to those of other parts, and codes under the parameters of all.
  bool is_shared() const { return is_shared(q_, x_); }
  void join_shared(const statistics_view& seen) {
    const simd::fetch fetches = q_.streams() ? simd::best_requests().only : simd::fetch::nothing;
    for_each_column_run(x_, length_, [&](index_t col, index_t n, const element* elements) {
      join_statistics<S, From>(elements, n, n, seen.from(col / length_), fetches);
    });
  }
  /// As if each row had parameters of its own: kernels of columns take several at once, which memory answers faster.
  void encode_shared(const parameters_view& p) {
    for_each_band([&](index_t row, index_t rows, index_t col, index_t cols, const parameters_view& own) {
      for (index_t c = 0, at = 0; c < cols; c += length_, at += step_) {
        const parameters_view one = p.from((col + c) / length_), to = own.from(at);
        fill_entries(one.scales[0], rows, to.scales);
        if constexpr (S::has_zero_point) fill_entries(one.zero_points[0], rows, to.zero_points);
      }
      encode_box(row, rows, col, cols, own, simd::blocks_are::ordinary);
    });
  }

  /// Scales and codes of all rows. False, with some of them written, where shared scales have blocks whose codes no
  /// division gives.
  bool quantize() {
    if constexpr (!none_share)
      if (is_shared()) return quantize_shared();
    if constexpr (!all_share) quantize_bands();
    return true;
  }

 private:
  static constexpr index_t wide = Quantizer::turned_cols;  // codes of a row that are written at a time
  static constexpr index_t short_block = 64, several_steps = 64;

  /// quantize() where all rows share scales.
  bool quantize_shared() {
    statistics_memory<S> statistics(blocks());
    parameters_memory<S> parameters(blocks());
    join_shared(statistics.view());
    if (q_.finish({}, 0, blocks(), statistics.view(), parameters.view()) == simd::blocks_are::special) return false;
    encode_shared(parameters.view());
    return true;
  }
  /// quantize() where each row has scales of its own.
  void quantize_bands() {
    statistics_memory<S> statistics(divide_up(most_cols_, length_) * step_);
    const statistics_view seen = statistics.view();
    std::vector<typename Quantizer::scale_unit> kept(static_cast<std::size_t>(divide_up(most_cols_, length_) * step_));
    for_each_band([&](index_t row, index_t rows, index_t col, index_t cols, const parameters_view& p) {
      auto all = simd::blocks_are::fitting;
      for (index_t c = 0, at = 0; c < cols; c += length_, at += step_) {
        const auto numbers = columns(row, rows, col + c, std::min(length_, cols - c));
        seen.from(at).clear(rows);
        join_column_statistics<S, From>(numbers.data, numbers.row_stride, numbers.rows(), rows, seen.from(at),
                                        asks_for_blocks() ? simd::fetch::nothing : q_.fetches());
        const simd::blocks_are these =
            q_.finish_down({row, col + c}, rows, seen.from(at), p.from(at), kept.data() + at);
        all = std::min(all, these);
        if (by_blocks())  // while they are in a cache
          encode_columns(numbers, p.from(at), these, codes(c),
                         {q_.fetches(), asks_for_blocks() ? length_ * x_.row_stride : 0});
      }
      q_.store_kept({row, col}, rows, divide_up(cols, length_), kept.data(), step_);
      if (by_blocks())
        q_.store_turned({row, col}, rows, cols, codes(0), step_);
      else
        encode_box(row, rows, col, cols, p, all);
      if (all == simd::blocks_are::special) mend(row, rows, col, cols, seen);
    });
  }

  static bool is_shared(const Quantizer& q, const matrix_ref<const element>& columns) {
    return all_share || (!none_share && q.panel_rows() >= columns.cols());
  }
  /// Whether the codes of a block are made while the caches hold its numbers.
  bool by_blocks() const { return q_.streams() && length_ < cols_ && most_cols_ <= wide; }
  /// Whether the next block is asked for meanwhile: short ones find room in the caches beside it.
  bool asks_for_blocks() const { return by_blocks() && length_ <= short_block; }
  /// Rows of a band. From memory runs of whole pages are read fastest, but blocks have to stay in a cache.
  static index_t most_rows(bool from_memory, bool by_blocks) { return !from_memory ? 128 : by_blocks ? 512 : 1024; }
  index_t blocks() const { return divide_up(cols_, length_); }
  /// Encoders of columns that are turned while they are encoded.
  index_t encoders_at_once() const { return q_.streams() ? 1 : divide_up(std::min(wide, most_cols_), length_); }
  std::uint8_t* codes(index_t column) { return codes_.data() + column * step_; }

  /// Calls visit(row, rows, col, cols, p) for boxes of whole blocks; p has room for step_ entries a block, one a row.
  template <class Visit>
  void for_each_band(Visit visit) {
    parameters_memory<S> parameters(divide_up(most_cols_, length_) * step_);
    constexpr index_t step = columns_type::turned_elements;
    for (index_t row = 0, rows; row < rows_; row += rows) {
      rows = std::min(high_, rows_ - row);
      // In a cache whole steps are turned while they are encoded; the last ones begin early, and do some rows twice.
      if (!q_.streams()) rows = round_up(rows, step) <= rows_ ? round_up(rows, step) : rows / step * step;
      row = std::min(row, rows_ - rows);
      for (index_t col = 0; col < cols_; col += most_cols_)
        visit(row, rows, col, std::min(most_cols_, cols_ - col), parameters.view());
    }
  }

  /// Scales (and zero points) that are stored, an array down the rows for each block.
  void load(index_t row, index_t rows, index_t col, index_t cols, const parameters_view& p) {
    const index_t count = divide_up(cols, length_);
    parameters_memory<S> by_rows(rows * count);
    const parameters_view from = by_rows.view();
    for (index_t r = 0; r < rows; ++r) q_.load({row + r, 0}, col, count, length_, from.from(r * count));
    simd::transpose(static_cast<const float*>(from.scales), count, count, rows, p.scales, step_);
    if constexpr (S::has_zero_point)
      simd::transpose(static_cast<const std::int32_t*>(from.zero_points), count, count, rows, p.zero_points, step_);
  }

  /// Numbers of n columns.
  matrix_ref<const element> columns(index_t row, index_t rows, index_t col, index_t n) const {
    return {&x_(col, row), n, rows, x_.row_stride, 1};
  }

  /// Codes of columns that share their parameters, which are one a row.
  void encode_columns(const matrix_ref<const element>& numbers, const parameters_view& p, simd::blocks_are blocks,
                      std::uint8_t* to, simd::box_requests asks) {
    const columns_type down = q_.column_encoder(p, numbers.cols(), divisors_.data(), blocks);
    down.encode_bytes(numbers.data, numbers.row_stride, numbers.rows(), 0, numbers.cols(), to, step_, asks);
  }

  /// Codes of a box of whole blocks under the parameters of its rows.
  void encode_box(index_t row, index_t rows, index_t col, index_t cols, const parameters_view& p,
                  simd::blocks_are blocks) {
    for (index_t first = 0; first < cols; first += wide) {
      const index_t n = std::min(wide, cols - first);
      if (!q_.streams() && encode_turned(row, rows, col, first, n, p, blocks)) continue;
      for_each_part(first, n, length_, [&](index_t c, index_t count) {
        encode_columns(columns(row, rows, col + c, count), p.from(c / length_ * step_), blocks, codes(c - first),
                       {q_.fetches()});
      });
      q_.store_turned({row, col + first}, rows, n, codes(0), step_);
    }
  }
  /// Columns [first, first + n) of the box, turned while they are encoded. False where that cannot be.
  bool encode_turned(index_t row, index_t rows, index_t col, index_t first, index_t n, const parameters_view& p,
                     simd::blocks_are blocks) {
    const index_t block = first / length_;
    const bool is_one = block == (first + n - 1) / length_;
    if (!is_one && (first % length_ != 0 || length_ % 4 != 0)) return false;
    encoders_.clear();
    for (index_t c = 0; c < n; c += length_) {
      float* memory = divisors_.data() + static_cast<index_t>(encoders_.size()) * columns_type::memory_for(high_);
      encoders_.push_back(q_.column_encoder(p.from((block + c / length_) * step_), rows, memory, blocks));
      if (is_one) break;
    }
    return q_.encode_turned({row, col + first}, rows, n, encoders_.data(), is_one ? n : length_, &x_(col + first, row),
                            x_.row_stride);
  }
  /// Calls part(col, count) for columns [first, first + n), cut where blocks end.
  template <class Part>
  static void for_each_part(index_t first, index_t n, index_t length, Part part) {
    for (index_t c = first, count; c < first + n; c += count) {
      count = std::min(length - c % length, first + n - c);
      part(c, count);
    }
  }

  /// The codes of special blocks again, by the reference, from the numbers of their rows.
  void mend(index_t row, index_t rows, index_t col, index_t cols, const statistics_view& seen) {
    std::vector<element> numbers(static_cast<std::size_t>(length_));
    for (index_t r = 0; r < rows; ++r)
      for (index_t c = 0, at = r; c < cols; c += length_, at += step_) {
        const index_t n = std::min(length_, cols - c);
        for (index_t i = 0; i < n; ++i) numbers[static_cast<std::size_t>(i)] = x_(col + c + i, row + r);
        q_.mend_block({row + r, col + c}, n, numbers.data(), seen[at]);
      }
  }

  const Quantizer& q_;
  matrix_ref<const element> x_;
  index_t rows_, cols_, length_, most_cols_, high_, step_;
  line_array<std::uint8_t> codes_;  // column after column, step_ apart
  line_array<float> divisors_;
  std::vector<columns_type> encoders_;  // of the blocks that are encoded together
};

/// Calls use(across_quantizer) where a source and the tensor it goes to are matrices that it can quantize.
template <tile_source X, class Quantizer, class Use>
bool use_across(const X& x, const Quantizer& q, index_t step, Use use) {
  using S = typename Quantizer::scheme_type;
  if constexpr (Quantizer::rank == 2 && simd::detail::encodes_by_vectors<simd::encoder_of<S, source_elements<X>>>)
    if (const auto columns = columns_of(x); columns && across_quantizer<Quantizer>::fits(q, *columns))
      return use(across_quantizer<Quantizer>(q, *columns, q.block_length(), step));
  return false;
}

/// Dynamic quantization of a source whose columns lie in memory. False where the passes over rows have to do it.
template <tile_source X, class Quantizer>
bool quantize_across(const X& x, const Quantizer& q, index_t step) {
  return use_across(x, q, step, [](auto across) { return across.quantize(); });
}
/// Calls use(across_quantizer) for such a source of rows that share their scales, or returns false.
template <tile_source X, class Quantizer, class Use>
bool use_shared_across(const X& x, const Quantizer& q, index_t step, Use use) {
  return use_across(x, q, step, [&](auto across) {
    if (across.is_shared()) return use(across), true;
    return false;
  });
}
/// Static quantization, likewise.
template <tile_source X, class Quantizer>
bool encode_across(const X& x, const Quantizer& q, index_t step) {
  return use_across(x, q, step, [](auto across) {
    across.encode();
    return true;
  });
}

}  // namespace qtensor::inline QTENSOR_ABI::ops
