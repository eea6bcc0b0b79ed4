// A matrix that is dequantized across the order of its codes: these are turned, and decoded down their columns.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <optional>
#include <qtensor/ops/block_parameters.hpp>
#include <qtensor/ops/rows.hpp>
#include <qtensor/simd/dequantize.hpp>

namespace qtensor::inline QTENSOR_ABI::ops {

/// Rows whose codes are turned together, at most.
inline constexpr index_t most_rows_down = 128;

/// Columns of codes of a band of rows, 16 bytes of each row, each packed as a row would be.
template <class S>
class turned_codes {
  using unit = detail::code_unit_t<S>;
  static constexpr int bits = S::code_format::bits;

 public:
  static constexpr bool possible = simd::codes_in_runs<S> && !simd::turns_codes<S> && !S::has_offset &&
                                   (bits == 8 || bits == 4) && sizeof(unit) == 1;
  static constexpr index_t most_cols = 128 / bits, line_cols = 512 / bits;
  static constexpr index_t apart = most_rows_down + 64;  ///< units from a column to the next

  /// A line of each of some rows, `step` units apart: n elements.
  void keep(const unit* codes, index_t step, index_t rows, index_t n) {
    kept_.keep(reinterpret_cast<const std::uint8_t*>(codes), step, rows, simd::packed_bytes<bits>(n));
  }
  /// Of those, n elements from `col` on, turned.
  void turn(index_t col, index_t rows, index_t n) {
    if constexpr (bits == 8) {
      kept_.template turn<apart>(col, rows, n, columns_);
    } else {
      // Pairs of columns first: bytes [0, rows) of each pair, packed where they stand.
      const index_t pairs = divide_up(n, 2);
      kept_.template turn<2 * apart>(col / 2, rows, pairs, columns_);
      for (index_t p = 0; p < pairs; ++p) {
        std::uint8_t* pair = columns_ + 2 * p * apart;
        simd::split_pairs<simd::best_arch>(pair, rows, pair, pair + apart);
      }
    }
  }
  /// What has been turned.
  const unit* columns() const { return reinterpret_cast<const unit*>(columns_); }

 private:
  simd::kept_lines<most_rows_down> kept_;
  alignas(64) std::uint8_t columns_[(most_cols + 1) * apart];
};

/// Stored entries of the blocks that rows of a band have, turned: several blocks of each row at a time.
template <class Unit>
class entries_down {
 public:
  /// Entry b of the n-th row of blocks lies at stored[n * row_step + b * block_step]; there are `rows` times `blocks`.
  entries_down(const Unit* stored, index_t row_step, index_t block_step, index_t rows, index_t blocks)
      : stored_(stored), row_step_(row_step), block_step_(block_step), rows_(rows), blocks_(blocks) {}

  /// Those of block b, one behind the other.
  const Unit* of(index_t b) {
    if (b < first_ || b >= first_ + at_once) load(b);
    return turned_ + (b - first_) * apart;
  }

 private:
  static constexpr index_t at_once = 16, apart = most_rows_down + 64;

  void load(index_t b) {
    const index_t n = std::min(at_once, blocks_ - b);
    const Unit* from = stored_ + b * block_step_;
    first_ = b;
    if (block_step_ == 1) return simd::transpose(from, row_step_, n, rows_, turned_, apart);
    for (index_t i = 0; i < n; ++i)
      for (index_t r = 0; r < rows_; ++r) turned_[i * apart + r] = from[r * row_step_ + i * block_step_];
  }

  const Unit* stored_;
  index_t row_step_, block_step_, rows_, blocks_, first_ = -at_once;
  alignas(64) Unit turned_[at_once * apart];
};

/// Numbers of F down the columns of a view whose last two axes are a matrix.
template <simd::number_format F, tensor_view_type View>
class down_decoder {
  using S = typename View::scheme_type;
  using index_array = typename View::index_array;
  using number = storage_t<F>;
  using codes_type = turned_codes<S>;
  static constexpr std::size_t last = static_cast<std::size_t>(View::rank) - 1;

 public:
  static constexpr index_t most_rows = most_rows_down, most_cols = codes_type::most_cols;
  /// Rows that kernels take at once: a few more than a multiple of it take as long as another step.
  static constexpr index_t kernel_rows = 4 * simd::lanes<simd::best_arch>;

  /// `decodes_all`: what row_decoder has of that name, if there is one.
  explicit down_decoder(const View& w, const simd::uniform_decoder<S, F>* decodes_all = nullptr)
      : w_(w), decodes_all_(decodes_all) {}

  /// Whether rows from the one at an index on are decoded down their columns: codes of bytes or nibbles, but not where
  /// every column changes its scale every few rows, or where parts of columns begin inside groups.
  bool takes(const index_array& at) const {
    if constexpr (turns_codes) {
      const auto& grid = w_.scale_grid();
      if (S::has_zero_point && grid.block != w_.zero_grid().block) return false;
      return grid.block[last - 1] == 1 || grid.block[last] > 1 || is_shared(at) || has_groups_down();
    }
    return false;
  }
  /// The same for elements from `col` on: they begin on a byte, and groups down columns with the rows.
  bool takes_from(const index_array& at, index_t col) const {
    if (col % byte_step<S> != 0 || !takes(at)) return false;
    return is_shared(at) || !has_groups_down() || at[last - 1] % w_.scale_grid().block[last - 1] == 0;
  }

  /// Calls visit(row, col, height, width, decode) for parts of elements [first, first + n) of so many rows from the one
  /// at an index on. A part begins that many rows and columns further on; decode(out, step, traffic) writes its
  /// numbers: element c of row r to out[c * step + r]. `asks`: codes come from memory, so that those further on are
  /// asked for after each part, a few rows at a time and several lines of each: they come while numbers are on their
  /// way.
  template <class Visit>
  void for_each_part(index_array at, index_t rows, index_t first, index_t n, bool asks, const Visit& visit) const {
    if constexpr (turns_codes) {
      codes_type codes;
      for (index_t row = 0; row < rows; row += most_rows, at[last - 1] += most_rows) {
        const index_t height = std::min(most_rows, rows - row);
        band down(*this, at, height, first + n);
        for (index_t line = 0; line < n; line += codes_type::line_cols) {
          const index_t end = std::min(line + codes_type::line_cols, n);
          codes.keep(w_.row(at) + unit_of_element<S>(first + line), w_.row_strides()[last - 1], height, end - line);
          for (index_t col = line; col < end; col += most_cols) {
            const index_t width = std::min(most_cols, end - col);
            codes.turn(col - line, height, width);
            visit(row, col, height, width, [&](number* out, index_t step, simd::traffic t) {
              down.decode(codes.columns(), first + col, width, out, step, t);
            });
            if (asks) ask_below(at, rows - row, first, n, col, width);
          }
        }
      }
    }
  }

  /// Fetches the codes of elements [col, col + n) of so many rows to the second level, which has room for them.
  QTENSOR_INLINE void prefetch(const index_array& at, index_t rows, index_t col, index_t n) const {
    if constexpr (turns_codes) {
      simd::fetch_runs(w_.row(at) + unit_of_element<S>(col), w_.row_strides()[last - 1], rows, unit_of_element<S>(n));
    }
  }

 private:
  static constexpr index_t most_groups = 8;  // down a column of turned codes
  static constexpr bool turns_codes = last > 0 && codes_type::possible;

  /// At a part of `width` columns from `col` on, of the rows at an index, of which `rows` are left: asks for some of
  /// the codes of the next run of columns, or of the first one of the next band.
  QTENSOR_INLINE void ask_below(index_array at, index_t rows, index_t first, index_t n, index_t col,
                                index_t width) const {
    constexpr index_t run = 32 * most_cols;
    const index_t in_run = col % run, begin = in_run * most_rows / run, end = (in_run + width) * most_rows / run;
    index_t next = col - in_run + run;
    if (next >= n) next = 0, rows -= most_rows, at[last - 1] += most_rows;
    at[last - 1] += begin;
    if (begin < rows) prefetch(at, std::min(end, rows) - begin, first + next, std::min(run, n - next));
  }

  /// Whether the rows from the one at an index on share their blocks.
  bool is_shared(const index_array& at) const {
    return at[last - 1] / w_.scale_grid().block[last - 1] ==
           (w_.storage_extents()[last - 1] - 1) / w_.scale_grid().block[last - 1];
  }
  /// Whether each column has groups of its own, of which a band has whole ones, or a part of one.
  bool has_groups_down() const {
    constexpr index_t shortest = most_rows / most_groups;
    const index_t length = w_.scale_grid().block[last - 1];
    return w_.scale_grid().block[last] == 1 && length >= shortest &&
           (most_rows % length == 0 || length % most_rows == 0);
  }

  /// Rows that are decoded together: the parameters of the columns at hand.
  class band {
    using scale = typename S::scale_format;
    using zero = typename S::zero_point_format;
    using code_unit = detail::code_unit_t<S>;
    static constexpr index_t apart = codes_type::apart;

   public:
    /// Of elements before `end`.
    band(const down_decoder& decoder, index_array at, index_t rows, index_t end)
        : decoder_(decoder), at_(at), rows_(rows) {
      const View& w = decoder.w_;
      at_[last] = 0;
      if (decoder.is_shared(at) || decoder.has_groups_down()) return;
      const auto blocks = [&](const auto& grid, const auto* stored, auto& entries) {
        entries.emplace(stored, grid.stride[last - 1], grid.stride[last], blocks_down(),
                        divide_up(end, grid.block[last]));
      };
      blocks(w.scale_grid(), w.storage_scales(at_), scale_units_);
      if constexpr (S::has_zero_point) blocks(w.zero_grid(), w.storage_zero_points(at_), zero_units_);
    }

    /// Elements [col, col + n) of the rows from their turned codes: element c of row r to out[c * step + r].
    void decode(const code_unit* codes, index_t col, index_t n, number* out, index_t step, simd::traffic t) {
      if (scale_units_)
        by_blocks(codes, col, n, out, step, t);
      else if (decoder_.is_shared(at_))
        shared(codes, col, n, out, step, t);
      else
        in_groups(codes, col, n, out, step, t);
    }

   private:
    const View& view() const { return decoder_.w_; }
    /// Elements of a column that share their parameters, and how many blocks of them there are.
    index_t block() const { return view().scale_grid().block[last - 1]; }
    index_t blocks_down() const { return divide_up(at_[last - 1] % block() + rows_, block()); }

    /// Of all rows.
    void shared(const code_unit* codes, index_t col, index_t n, number* out, index_t step, simd::traffic t) const {
      if (const auto* all = decoder_.decodes_all_; all && all->look_rows_up(codes, apart, n, rows_, out, step, t))
        return;
      alignas(64) float scales[most_cols + simd::lanes<simd::best_arch>];
      alignas(64) std::int32_t zeros[S::has_zero_point ? most_cols + simd::lanes<simd::best_arch> : 1];
      load_scales(view(), at_, col, n, 1, scales);
      if constexpr (S::has_zero_point) load_zero_points(view(), at_, col, n, 1, zeros);
      simd::decode_rows<S, F>(codes, apart, n, rows_, scales, S::has_zero_point ? zeros : nullptr, out, step,
                              view().tensor_scale(), t);
    }
    /// Of groups down each column.
    void in_groups(const code_unit* codes, index_t col, index_t n, number* out, index_t step, simd::traffic t) const {
      constexpr index_t most = most_cols + simd::lanes<simd::best_arch>;
      const index_t groups = std::min(blocks_down(), most_groups);  // never more: g++ warns of reads behind `found`
      const auto turn_entries = [&](auto* to, const auto& load) {   // those of a column side by side
        std::remove_pointer_t<decltype(to)> found[most_groups * most];
        index_array row = at_;
        for (index_t g = 0; g < groups; ++g, row[last - 1] += block()) load(row, found + g * most);
        simd::transpose(static_cast<decltype(to)>(found), most, n, groups, to, groups);
      };
      alignas(64) float scales[most_groups * most];
      alignas(64) std::int32_t zeros[S::has_zero_point ? most_groups * most : 1];
      turn_entries(scales, [&](const index_array& row, float* to) { load_scales(view(), row, col, n, 1, to); });
      if constexpr (S::has_zero_point)
        turn_entries(zeros,
                     [&](const index_array& row, std::int32_t* to) { load_zero_points(view(), row, col, n, 1, to); });
      simd::decode_grouped_rows<S, F>(codes, apart, n, rows_, block(), scales, S::has_zero_point ? zeros : nullptr, out,
                                      step, view().tensor_scale(), t);
    }
    /// Of blocks, which several columns share.
    void by_blocks(const code_unit* codes, index_t col, index_t n, number* out, index_t step, simd::traffic t) {
      const index_t length = view().scale_grid().block[last];
      for (index_t c = col, count; c < col + n; c += count, codes += count * apart, out += count * step) {
        count = std::min(length - c % length, col + n - c);
        load(c / length);
        simd::column_decoder<S, F>(scales_, S::has_zero_point ? zeros_ : nullptr, rows_, view().tensor_scale())(
            codes, apart, count, out, step, t);
      }
    }
    /// The parameters of a block's rows; up to a batch behind them is written, too.
    void load(index_t b) {
      if (b == loaded_) return;
      loaded_ = b;
      const auto read = [&](auto* to, const auto& decode_entries) {
        if (block() == 1) return decode_entries(to);
        std::remove_pointer_t<decltype(to)> found[most_rows];
        decode_entries(found);
        simd::spread_entries<simd::best_arch>(found, block(), at_[last - 1] % block(), rows_, to);
      };
      read(scales_, [&](float* to) { simd::decode_scales<scale>(scale_units_->of(b), blocks_down(), to); });
      if constexpr (S::has_zero_point)
        read(zeros_, [&](std::int32_t* to) { decode_zero_points<zero>(zero_units_->of(b), blocks_down(), to); });
    }

    const down_decoder& decoder_;
    index_array at_;
    index_t rows_, loaded_ = -1;
    std::optional<entries_down<detail::unit_t<scale>>> scale_units_;
    std::optional<entries_down<detail::unit_t<zero>>> zero_units_;
    alignas(64) float scales_[most_rows + simd::lanes<simd::best_arch>];
    alignas(64) std::int32_t zeros_[S::has_zero_point ? most_rows + simd::lanes<simd::best_arch> : 1];
  };

  View w_;
  const simd::uniform_decoder<S, F>* decodes_all_;
};

}  // namespace qtensor::inline QTENSOR_ABI::ops
