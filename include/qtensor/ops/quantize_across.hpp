// Quantize across the order of a source: codes are made down its columns, in memory or copied, and turned.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <qtensor/ops/row_quantizer.hpp>

namespace qtensor::inline QTENSOR_ABI::ops {

/// Boxes of the columns of a source as rows of memory, where they lie there already, ...
template <class Columns>
class column_reader {
 public:
  static constexpr bool copies = false;
  column_reader(const Columns& columns, float*) : x_(columns) {}

  /// Elements [row, row + rows) of columns [col, col + n), valid until the next call.
  Columns read(index_t row, index_t rows, index_t col, index_t n) const {
    return {&x_(col, row), n, rows, x_.row_stride, 1};
  }
  /// Calls visit(i, box) for boxes that make up that one, of columns from col + i on. `keeps`: they are read again;
  /// `asks`: for what lies behind them, where it comes from memory.
  template <class Visit>
  void for_each_box(index_t row, index_t rows, index_t col, index_t n, bool, bool, Visit visit) const {
    visit(index_t{0}, read(row, rows, col, n));
  }
  /// What is read next are parts of that box, column after column, and kept.
  static void keep(index_t, index_t, index_t, index_t) {}
  /// What asks for columns from col on, step by step, while others are encoded.
  static std::span<simd::run_requests> requests(index_t, index_t, index_t) { return {}; }

 private:
  const Columns& x_;
};

/// ... and where they are copies, made of a few columns at a time: a first-level cache holds those while they are
/// visited.
template <tile_source X>
class column_reader<source_columns<X>> {
  using box_type = matrix_ref<const float>;

 public:
  static constexpr bool copies = true;
  /// `memory`: room for all that is kept at a time.
  column_reader(const source_columns<X>& columns, float* memory) : x_(columns), memory_(memory) {}

  box_type read(index_t row, index_t rows, index_t col, index_t n) {
    if (!has(row, rows, col, n)) for_each_box(row, rows, col, n, true, false, [](index_t, const box_type&) {});
    return box(row, rows, col, n);
  }
  template <class Visit>
  void for_each_box(index_t row, index_t rows, index_t col, index_t n, bool keeps, bool asks, Visit visit) {
    const index_t most = cols_at_once(rows);
    const bool had = has(row, rows, col, n), follows = row == row_ && rows == rows_ && col == col_ + cols_;
    if (!had && !(keeps && follows && cols_ + n <= room_)) keep(row, rows, col, keeps ? n : most);
    for (index_t i = 0; i < n; i += most) {
      const index_t count = std::min(most, n - i);
      if (!had) {
        if (!keeps) col_ = col + i, cols_ = 0;
        x_.read(col + i, count, row, rows, memory_ + cols_ * stride_, stride_, asks);
        cols_ += count;
      }
      visit(i, box(row, rows, col + i, count));
    }
  }
  void keep(index_t row, index_t rows, index_t col, index_t n) {
    row_ = row, rows_ = rows, col_ = col, cols_ = 0, room_ = n;
    stride_ = n * rows <= tile_floats ? rows : apart<float>(rows);
  }
  std::span<simd::run_requests> requests(index_t row, index_t rows, index_t col) {
    return requests_ = x_.requests(col, row, rows);
  }
  /// Columns of so many rows that are copied at a time, as many as kernels take, or more.
  static index_t cols_at_once(index_t rows) { return piece_length(4, tile_floats / rows); }

 private:
  bool has(index_t row, index_t rows, index_t col, index_t n) const {
    return row >= row_ && row + rows <= row_ + rows_ && col >= col_ && col + n <= col_ + cols_;
  }
  box_type box(index_t row, index_t rows, index_t col, index_t n) const {
    return {memory_ + (col - col_) * stride_ + row - row_, n, rows, stride_, 1};
  }

  const source_columns<X>& x_;
  float* memory_;
  index_t stride_ = 0, row_ = 0, rows_ = 0, col_ = 0, cols_ = 0, room_ = 0;
  decltype(std::declval<const source_columns<X>&>().requests(0, 0, 0)) requests_{};
};

/// A matrix of S from the columns of a source, box by box: its memory is read in runs, and what is turned is codes, a
/// byte each, a quarter of the numbers. Scales are shared by all rows, or belong to one row each.
///
/// Memory that columns lie in is read where it is, in long runs. Copies of what comes from memory are small boxes in
/// the first-level cache, which are encoded while the next one is asked for: so kernels do not wait for memory, nor
/// memory for kernels.
template <class Quantizer, class Columns = matrix_ref<const typename Quantizer::source_type::type>>
class across_quantizer {
  using S = typename Quantizer::scheme_type;
  using From = typename Quantizer::source_type;
  using element = typename From::type;
  using columns_type = typename Quantizer::columns_type;
  using scale_unit = typename Quantizer::scale_unit;
  static_assert(std::is_trivially_destructible_v<columns_type>);
  static constexpr bool copies = column_reader<Columns>::copies;
  // What the type tells of who shares scales: all rows always do, or never.
  static constexpr bool all_share = has_one_scale<S>, none_share = Quantizer::in_groups;

 public:
  /// `length` elements of a row share a scale; pieces of rows are multiples of `step`. Needs at least as many rows as
  /// are turned together.
  across_quantizer(const Quantizer& q, const Columns& columns, index_t length, index_t step)
      : q_(q),
        x_(columns),
        rows_(columns.cols()),
        cols_(columns.rows()),
        length_(std::min(length, cols_)),
        most_cols_(length_ < cols_ ? std::min(piece_length(step, wide), cols_) : cols_),
        tall_(std::min(round_up(rows_, 64), most_rows(q.streams(), by_blocks()))),
        high_(q.streams() && !by_blocks() ? std::min(round_up(rows_, 64), highest) : tall_),
        step_(high_ + 64),
        memory_(bytes()),
        reader_(x_, memory_.take<float>(floats_kept())),
        codes_(memory_.take<std::uint8_t>(wide * code_step())),
        divisors_(memory_.take<float>(encoders_at_once() * columns_type::memory_for(tall_))),
        encoders_(memory_.take<columns_type>(encoders_at_once())),
        kept_(memory_.take<scale_unit>(entries())),
        seen_{memory_.take<std::uint32_t>(entries()), memory_.take<float>(needs_extremes<S> ? entries() : 0),
              memory_.take<float>(needs_extremes<S> ? entries() : 0)},
        own_{memory_.take<float>(entries()), memory_.take<std::int32_t>(S::has_zero_point ? entries() : 0)} {}
  across_quantizer(const across_quantizer&) = delete;
  across_quantizer& operator=(const across_quantizer&) = delete;

  /// Whether a matrix has scales of a kind that can be turned, and rows enough; in a cache several steps of them where
  /// scales change with every few numbers, columns that meet no other scales, and few codes that are packed by tails.
  /// Narrower vectors read rows of expressions, a square of numbers at a time, as fast as they turn many scales.
  static bool fits(const Quantizer& q, const Columns& columns) {
    constexpr index_t step = columns_type::turned_elements;
    constexpr int bits = S::code_format::bits;
    const index_t cols = columns.rows(), length = std::min(q.block_length(), cols);
    if (q.panel_rows() != 1 && !is_shared(q, columns)) return false;
    if (copies && step < 16 && (q.streams() || (length < cols && length < several_steps))) return false;
    if (q.streams()) return columns.cols() >= 4 * step;
    if (copies && !copies_pay(columns, is_shared(q, columns) ? 1 : length)) return false;
    if (bits != 8 && cols < 2 * wide && cols % (bits == 4 ? wide / 4 : wide) != 0) return false;
    if (length >= wide || length == cols) return columns.cols() >= step;
    return length % 4 == 0 && columns.cols() >= several_steps;
  }

  /// Whether copies are faster in a cache than rows read in squares: where the nearest ones do not hold the numbers,
  /// and bands of `length` columns are not copied twice.
  static bool copies_pay(const Columns& columns, index_t length) {
    const index_t rows = columns.cols(), cols = columns.rows();
    return rows >= several_steps && rows * cols >= box_floats && several_steps * length <= box_floats;
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
    const simd::fetch fetches = !copies && q_.streams() ? simd::best_requests().only : simd::fetch::nothing;
    const auto join = [&](index_t col, index_t n, const element* elements) {
      join_statistics<S, From>(elements, n, n, seen.from(col / length_), fetches);
    };
    if constexpr (copies)
      for_each_piece(x_, 0, cols_, 1, [&](index_t col, index_t, index_t n, const auto* part) { join(col, n, part); });
    else
      for_each_column_run(x_, length_, join);
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
  static constexpr index_t short_block = 64, several_steps = 64, highest = 1024;

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
    for_each_band([&](index_t row, index_t rows, index_t col, index_t cols, const parameters_view& p) {
      auto all = simd::blocks_are::fitting;
      const bool keeps = by_blocks() || keeps_bands();
      if (keeps_bands()) reader_.keep(row, rows, col, cols);
      for (index_t c = 0, at = 0; c < cols; c += length_, at += step_) {
        const index_t n = std::min(length_, cols - c);
        seen_.from(at).clear(rows);
        reader_.for_each_box(row, rows, col + c, n, keeps, !by_blocks(), [&](index_t, const auto& box) {
          join_column_statistics<S, From>(box.data, box.row_stride, box.rows(), rows, seen_.from(at),
                                          asks_for_blocks() ? simd::fetch::nothing : fetches());
        });
        const simd::blocks_are these = q_.finish_down({row, col + c}, rows, seen_.from(at), p.from(at), kept_ + at);
        all = std::min(all, these);
        if (by_blocks())  // while they are in a cache
          encode_columns(row, rows, col + c, n, p.from(at), these, codes(c));
      }
      q_.store_kept({row, col}, rows, divide_up(cols, length_), kept_, step_);
      if (by_blocks())
        q_.store_turned({row, col}, rows, cols, codes(0), code_step());
      else
        encode_box(row, rows, col, cols, p, all);
      if (all == simd::blocks_are::special) mend(row, rows, col, cols, seen_);
    });
  }

  static bool is_shared(const Quantizer& q, const Columns& columns) {
    return all_share || (!none_share && q.panel_rows() >= columns.cols());
  }
  /// Whether the codes of a block are made while the caches hold its numbers.
  bool by_blocks() const { return q_.streams() && length_ < cols_ && most_cols_ <= wide; }
  /// Whether the next block is asked for meanwhile: short ones find room in the caches beside it.
  bool asks_for_blocks() const { return !copies && by_blocks() && length_ <= short_block; }
  /// How far rows of columns in memory are asked for.
  simd::fetch fetches() const { return copies ? simd::fetch::nothing : q_.fetches(); }
  /// Rows that are encoded at a time. From memory runs of whole pages are read fastest, but blocks have to stay in a
  /// cache, copies in the first one.
  static index_t most_rows(bool from_memory, bool by_blocks) {
    if (!from_memory) return copies ? 64 : 128;
    return copies ? 128 : by_blocks ? 512 : highest;
  }
  index_t blocks() const { return divide_up(cols_, length_); }
  /// Whether a band is copied once, in a cache, for its statistics and its codes.
  bool keeps_bands() const { return copies && !q_.streams() && high_ * most_cols_ <= box_floats; }
  /// Floats that are kept of copies at a time: a band, a block, what is turned together, or what is copied at a time.
  index_t floats_kept() const {
    if (!copies) return 0;
    const index_t few = std::max(tile_floats, 4 * apart<float>(high_)), column = apart<float>(tall_);
    const index_t cols = keeps_bands() ? most_cols_ : by_blocks() ? length_ : std::min(wide, cols_);
    return std::max(few, cols * column);
  }
  /// Entries of the blocks of a band, one a row.
  index_t entries() const { return divide_up(most_cols_, length_) * step_; }
  index_t bytes() const {
    constexpr index_t extremes = needs_extremes<S> ? 2 : 0, zeros = S::has_zero_point ? 1 : 0;
    return line_parts::room<float>(floats_kept()) + line_parts::room<std::uint8_t>(wide * code_step()) +
           line_parts::room<float>(encoders_at_once() * columns_type::memory_for(tall_)) +
           line_parts::room<columns_type>(encoders_at_once()) + line_parts::room<scale_unit>(entries()) +
           (2 + extremes + zeros) * line_parts::room<float>(entries());
  }
  /// Encoders of columns that are turned while they are encoded.
  index_t encoders_at_once() const { return q_.streams() ? 1 : divide_up(std::min(wide, most_cols_), length_); }
  /// Codes of columns, one behind the other.
  index_t code_step() const { return tall_ + 64; }
  std::uint8_t* codes(index_t column) { return codes_ + column * code_step(); }

  /// Calls visit(row, rows, col, cols, p) for boxes of whole blocks; p has room for step_ entries a block, one a row.
  template <class Visit>
  void for_each_band(Visit visit) {
    constexpr index_t step = columns_type::turned_elements;
    for (index_t row = 0, rows; row < rows_; row += rows) {
      rows = std::min(high_, rows_ - row);
      // In a cache whole steps are turned while they are encoded; the last ones begin early, and do some rows twice.
      if (!q_.streams()) rows = round_up(rows, step) <= rows_ ? round_up(rows, step) : rows / step * step;
      row = std::min(row, rows_ - rows);
      for (index_t col = 0; col < cols_; col += most_cols_)
        visit(row, rows, col, std::min(most_cols_, cols_ - col), own_);
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

  /// Codes of n columns that share their parameters, which are one a row.
  void encode_columns(index_t row, index_t rows, index_t col, index_t n, const parameters_view& p,
                      simd::blocks_are blocks, std::uint8_t* to) {
    const columns_type down = q_.column_encoder(p, rows, divisors_, blocks);
    const auto runs = requests(row, rows, col, n);
    reader_.for_each_box(row, rows, col, n, by_blocks(), false, [&](index_t i, const auto& box) {
      down.encode_bytes(box.data, box.row_stride, box.rows(), 0, rows, to + i * code_step(), code_step(),
                        {fetches(), asks_for_blocks() ? length_ * box.row_stride : 0, runs});
    });
  }
  /// What asks for the columns that are copied after those: the next block, or what for_each_box reads next.
  std::span<simd::run_requests> requests(index_t row, index_t rows, index_t col, index_t n) {
    if constexpr (copies)
      if (q_.streams()) {
        if (!by_blocks()) return reader_.requests(row, rows, col + reader_.cols_at_once(rows));
        if (col + n < cols_) return reader_.requests(row, rows, col + n);
        if (row + rows < rows_) return reader_.requests(row + rows, rows, 0);
      }
    return {};
  }

  /// Codes of a box of whole blocks under the parameters of its rows.
  void encode_box(index_t row, index_t rows, index_t col, index_t cols, const parameters_view& p,
                  simd::blocks_are blocks) {
    for (index_t r = 0; r < rows; r += tall_)
      for (index_t first = 0; first < cols; first += wide)
        encode_part(row + r, std::min(tall_, rows - r), col, first, std::min(wide, cols - first), p.from(r), blocks);
  }
  /// Those of some of its rows, and of columns [first, first + n).
  void encode_part(index_t row, index_t rows, index_t col, index_t first, index_t n, const parameters_view& p,
                   simd::blocks_are blocks) {
    if (!q_.streams() && encode_turned(row, rows, col, first, n, p, blocks)) return;
    for_each_part(first, n, length_, [&](index_t c, index_t count) {
      encode_columns(row, rows, col + c, count, p.from(c / length_ * step_), blocks, codes(c - first));
    });
    q_.store_turned({row, col + first}, rows, n, codes(0), code_step());
  }
  /// Columns [first, first + n) of the box, turned while they are encoded. False where that cannot be.
  bool encode_turned(index_t row, index_t rows, index_t col, index_t first, index_t n, const parameters_view& p,
                     simd::blocks_are blocks) {
    const index_t block = first / length_;
    const bool is_one = block == (first + n - 1) / length_;
    if (!is_one && (first % length_ != 0 || length_ % 4 != 0)) return false;
    for (index_t k = 0; k < (is_one ? 1 : divide_up(n, length_)); ++k) {
      float* memory = divisors_ + k * columns_type::memory_for(tall_);
      std::construct_at(encoders_ + k, q_.column_encoder(p.from((block + k) * step_), rows, memory, blocks));
    }
    const auto box = reader_.read(row, rows, col + first, n);
    return q_.encode_turned({row, col + first}, rows, n, encoders_, is_one ? n : length_, box.data, box.row_stride);
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
        for (index_t i = 0; i < n; ++i)
          numbers[static_cast<std::size_t>(i)] = reader_.read(row + r, 1, col + c + i, 1)(0, 0);
        q_.mend_block({row + r, col + c}, n, numbers.data(), seen[at]);
      }
  }

  const Quantizer& q_;
  Columns x_;
  index_t rows_, cols_, length_, most_cols_, tall_, high_, step_;
  line_parts memory_;  // of all that follows
  column_reader<Columns> reader_;
  std::uint8_t* codes_;  // column after column, code_step() apart
  float* divisors_;
  columns_type* encoders_;  // of the blocks that are encoded together
  scale_unit* kept_;        // scales of a band, as they are stored; its statistics and parameters
  statistics_view seen_;
  parameters_view own_;
};

/// Calls use(across_quantizer) where a source and the tensor it goes to are matrices that it can quantize.
template <tile_source X, class Quantizer, class Use>
bool use_across(const X& x, const Quantizer& q, index_t step, Use use) {
  using S = typename Quantizer::scheme_type;
  if constexpr (Quantizer::rank == 2 && simd::detail::encodes_by_vectors<simd::encoder_of<S, source_elements<X>>>) {
    const auto go = [&]<class Columns>(const Columns& columns) {
      using across = across_quantizer<Quantizer, Columns>;
      return across::fits(q, columns) && use(across(q, columns, q.block_length(), step));
    };
    if (const auto columns = columns_of(x)) return go(*columns);
    if constexpr (reads_columns<X>) return go(source_columns<X>(x));
  }
  return false;
}

/// Dynamic quantization of a source whose columns lie in memory, or are what it reads fastest. False where the passes
/// over rows have to do it.
template <tile_source X, class Quantizer>
bool quantize_across(const X& x, const Quantizer& q, index_t step) {
  return use_across(x, q, step, [](auto&& across) { return across.quantize(); });
}
/// Calls use(across_quantizer) for such a source of rows that share their scales, or returns false.
template <tile_source X, class Quantizer, class Use>
bool use_shared_across(const X& x, const Quantizer& q, index_t step, Use use) {
  return use_across(x, q, step, [&](auto&& across) {
    if (across.is_shared()) return use(across), true;
    return false;
  });
}
/// Static quantization, likewise.
template <tile_source X, class Quantizer>
bool encode_across(const X& x, const Quantizer& q, index_t step) {
  return use_across(x, q, step, [](auto&& across) {
    across.encode();
    return true;
  });
}

}  // namespace qtensor::inline QTENSOR_ABI::ops
