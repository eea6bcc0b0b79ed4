// The rows of a tensor that is being dequantized: run by run, or rows that share their parameters.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <limits>
#include <optional>
#include <qtensor/ops/block_parameters.hpp>
#include <qtensor/ops/blocks.hpp>
#include <qtensor/ops/padded_rows.hpp>
#include <qtensor/simd/dequantize.hpp>

namespace qtensor::inline QTENSOR_ABI::ops {

/// Rows of a view as numbers of F. A view that shares one scale is one row; what its codes become is found once.
template <simd::number_format F, tensor_view_type View>
class row_decoder {
  using S = typename View::scheme_type;
  using index_array = typename View::index_array;
  using number = storage_t<F>;
  static constexpr std::size_t last = static_cast<std::size_t>(View::rank) - 1;
  /// Whether rows can be decoded several at a time: kernels of rows know no offsets.
  static constexpr bool takes_rows = simd::codes_in_runs<S> && last > 0 && !S::has_offset;

 public:
  explicit row_decoder(const View& w) : w_(w), blocks_(w) {
    if constexpr (simd::codes_in_runs<S>)
      if (blocks_.one_block && w.size() > 0)
        alike_.emplace(element_scale{decode<typename S::scale_format>(w.storage_scale_code({})), w.tensor_scale()},
                       static_cast<std::int32_t>(w.storage_zero_point({})), w.storage_offset({}), w.size());
  }

  /// All elements follow one another: they are one row.
  bool is_flat() const { return blocks_.flat; }

  /// What decodes all elements where they share one scale, else null.
  const simd::uniform_decoder<S, F>* decodes_all() const {
    if constexpr (simd::codes_in_runs<S>)
      if (alike_.has_value()) return &*alike_;
    return nullptr;
  }

  /// Whether every row has one entry of each array, so that from any byte on it is as well decoded as from its start.
  bool rows_have_one_entry() const { return simd::codes_in_runs<S> && blocks_.block_length >= blocks_.row_length; }

  /// Elements [col, col + n) of the row at an index in storage order: runs of whole blocks at once, the rest of a block
  /// as one run, and single elements up to the next byte.
  void operator()(index_array at, index_t col, index_t n, number* out, simd::traffic t = {}) const {
    if constexpr (simd::block_decodable<S>) {
      dequantize_blocks<F>(w_, at, col, n, out, t.streams);
    } else if constexpr (!simd::codes_in_runs<S>) {
      for (index_t i = 0; i < n; ++i) out[i] = single(at, col + i);
    } else {
      for (; n > 0 && col % byte_step<S> != 0; ++col, --n) *out++ = single(at, col);
      if (alike_.has_value())
        (*alike_)(w_.row(at) + unit_of_element<S>(col), n, out, t);
      else
        runs(at, col, n, out, t);
    }
  }

  /// How short rows lie in a tile, where that is the faster way. (Floats of whole rows are written as fast without.)
  std::optional<padded_rows> padding() const {
    if constexpr (takes_rows) {
      if (blocks_.one_block || (blocks_.flat && std::same_as<F, f32>)) return {};
      const auto tile = padded_rows::of(w_, true);
      if (tile && (!blocks_.flat || tile->ends_in_vectors())) return tile;
    }
    return {};
  }
  /// Calls visit(at, n, numbers) for tiles of n short rows, the first at an index in storage order: their numbers, as
  /// the tile has them.
  template <class Visit>
  void for_each_padded_tile(const padded_rows& tile, Visit visit) const {
    if constexpr (takes_rows) {
      alignas(64) detail::code_unit_t<S> codes[tile_floats];
      alignas(64) number numbers[tile_floats];
      alignas(64) float scales[tile_floats];
      alignas(64) std::int32_t zeros[S::has_zero_point ? tile_floats : 1];
      std::fill_n(codes, tile.most * tile.step<S>(), detail::code_unit_t<S>{});
      for_each_row_tile(w_.storage_extents(), tile.most, [&](index_t, index_t n, const index_array& at) {
        load_tile(w_, at, n, tile, {scales, S::has_zero_point ? zeros : nullptr});
        simd::copy_rows(w_.row(at), w_.row_strides()[last - 1], n, units_of_row<S>(tile.cols), codes, tile.step<S>());
        simd::decode_grouped<S, F>(codes, n * tile.length, tile.block, scales, S::has_zero_point ? zeros : nullptr,
                                   numbers, w_.tensor_scale());
        visit(at, n, numbers);
      });
    }
  }

  /// Whether rows are long runs of groups that fill registers: kernels then want no entry for each element.
  bool rows_are_runs() const {
    if constexpr (simd::codes_in_runs<S>) {
      const index_t block = w_.scale_grid().block[last];
      const bool same = !S::has_zero_point || w_.zero_grid().block[last] == block;
      return same && block % simd::lanes<simd::best_arch> == 0 && w_.storage_extents()[last] > short_row;
    }
    return false;
  }
  /// Of the `most` rows from the one at an index on, how many share their parameters; 1 where it is of no use to lay
  /// these out for each element.
  index_t rows_alike(const index_array& at, index_t most) const {
    if constexpr (takes_rows) {
      const auto& grid = w_.scale_grid();
      const index_t block = grid.block[last], length = w_.storage_extents()[last];
      if (block == 1 || (grid.block[last - 1] >= fewest_alike && (block < length || length <= short_row))) {
        const index_t row = at[last - 1];
        const auto left = [&](index_t of) { return of - row % of; };
        index_t alike = std::min({most, left(grid.block[last - 1]), w_.storage_extents()[last - 1] - row});
        if constexpr (S::has_zero_point) alike = std::min(alike, left(w_.zero_grid().block[last - 1]));
        return alike;
      }
    }
    return 1;
  }
  /// Rows alike, from the one at an index on, by columns of at most `wide` elements, a multiple of 64: calls part(col,
  /// cols, decode), whose decode(row, rows, out, step, traffic) writes those of some rows, `step` numbers apart. All
  /// but the first columns are a multiple of 64 behind `begin`, which is less than that; codes begin on a byte there.
  template <class Part>
  void columns(const index_array& at, index_t begin, index_t wide, Part part) const {
    if constexpr (takes_rows) {
      const auto codes = w_.row(at);
      const index_t code_step = w_.row_strides()[last - 1], length = w_.storage_extents()[last];
      run_parameters parameters(w_, at, 1, std::min(wide, begin > 0 ? length + 64 : length));
      wide = std::min(wide, parameters.most());
      for (index_t col = 0, cols; col < length; col += cols) {
        cols = std::min(col == 0 && begin > 0 ? wide - 64 + begin : wide, length - col);
        const float* scales = parameters.load(col, cols);
        const simd::column_decoder<S, F> decode(scales, parameters.zero_points(), cols, w_.tensor_scale());
        part(col, cols, [&](index_t row, index_t rows, number* out, index_t step, simd::traffic t) {
          const auto* from = codes + row * code_step + unit_of_element<S>(col);
          t.streams ? decode.stream(from, code_step, rows, out, step, t) : decode(from, code_step, rows, out, step, t);
        });
      }
    }
  }
  /// How many of so many rows are decoded as one: narrow ones whose codes follow each other.
  index_t rows_as_one(index_t rows) const {
    if constexpr (takes_rows)
      if (blocks_.dense) return ops::rows_as_one(w_.storage_extents()[last], rows);
    return 1;
  }
  /// Rows alike, from the one at an index on, whose numbers follow each other: `together` as one.
  void narrow_columns(const index_array& at, index_t rows, index_t together, number* out, simd::traffic t) const {
    if constexpr (takes_rows) {
      run_parameters parameters(w_, at, 1);
      const index_t n = w_.storage_extents()[last], step = unit_of_element<S>(n), whole = rows / together * together;
      alignas(64) float scales[widest_row];
      alignas(64) std::int32_t zeros[S::has_zero_point ? widest_row : 1];
      repeat_entries(parameters.load(0, n), n, together, scales);
      if constexpr (S::has_zero_point) repeat_entries(parameters.zero_points(), n, together, zeros);
      const auto codes = w_.row(at);
      const auto decode = [&](index_t row, index_t count, index_t as_one) {
        const simd::column_decoder<S, F> columns(scales, S::has_zero_point ? zeros : nullptr, n * as_one,
                                                 w_.tensor_scale());
        columns(codes + row * step, step * as_one, count / as_one, out + row * n, n * as_one, t);
      };
      decode(0, whole, together);
      decode(whole, rows - whole, 1);
    }
  }
  /// Whether rows alike come in tiles: short ones that end inside bytes.
  bool ends_inside_bytes() const { return takes_rows && ops::ends_inside_bytes<S>(w_.storage_extents()[last]); }
  /// Such rows from the one at an index on: calls visit(row, n, numbers, length) for tiles of n of them, `length`
  /// numbers from one to the next.
  template <class Visit>
  void for_each_tile_alike(const index_array& at, index_t rows, Visit visit) const {
    if constexpr (takes_rows) {
      const index_t cols = w_.storage_extents()[last], length = round_up(cols, byte_step<S>);
      const index_t most = std::min(rows, tile_floats / length), step = unit_of_element<S>(length);
      alignas(64) detail::code_unit_t<S> codes[tile_floats];
      alignas(64) number numbers[tile_floats];
      alignas(64) float scales[tile_floats];
      alignas(64) std::int32_t zeros[S::has_zero_point ? tile_floats : 1];
      std::fill_n(codes, most * step, detail::code_unit_t<S>{});
      run_parameters parameters(w_, at, 1);
      const auto lay_out = [&](const auto& grid, const auto* entries, auto* to) {
        fill_entries(entries[0], most * length, to);
        if (grid.block[last] < cols) repeat_entries(entries, cols, most, to, length);
      };
      lay_out(w_.scale_grid(), parameters.load(0, cols), scales);
      if constexpr (S::has_zero_point) lay_out(w_.zero_grid(), parameters.zero_points(), zeros);
      const index_t code_step = w_.row_strides()[last - 1];
      for (index_t row = 0, n; row < rows; row += n) {
        n = std::min(most, rows - row);
        simd::copy_rows(w_.row(at) + row * code_step, code_step, n, units_of_row<S>(cols), codes, step);
        simd::decode_vector<S, F>(codes, n * length, scales, S::has_zero_point ? zeros : nullptr, numbers,
                                  w_.tensor_scale(), nullptr, simd::traffic{});
        visit(row, n, numbers, length);
      }
    }
  }

 private:
  static constexpr index_t fewest_alike = 4;  // rows, for which parameters are laid out for each element
  static constexpr index_t short_row = 256;   // elements, which take as long as what comes before the first of them

  number single(index_array at, index_t col) const {
    at[last] = col;
    return simd::round_to<F>(reference::storage_value(w_, at));
  }

  /// Scales (and zero points) along a row, an entry every `length` elements: where they lie if those are floats in
  /// order, else decoded.
  class run_parameters {
   public:
    /// `wanted`: entries of one load, where that may be more than there is room for here.
    run_parameters(const View& w, const index_array& at, index_t length, index_t wanted = 0)
        : w_(w),
          at_(at),
          length_(length),
          in_place_(std::is_same_v<typename S::scale_format, f32> && length == w.scale_grid().block[last] &&
                    w.scale_grid().stride[last] == 1) {
      if (wanted <= most()) return;
      most_ = round_up(wanted, 64);
      if (!in_place_) decoded_ = (more_scales_ = line_array<float>::for_overwrite(most_)).data();
      if constexpr (S::has_zero_point) zeros_ = (more_zeros_ = line_array<std::int32_t>::for_overwrite(most_)).data();
    }
    run_parameters(const run_parameters&) = delete;
    run_parameters& operator=(const run_parameters&) = delete;
    /// Entries of one load, at most.
    index_t most() const {
      return in_place_ && !S::has_zero_point && !S::has_offset ? std::numeric_limits<index_t>::max() : most_;
    }
    /// `count` entries from that of an element on.
    const float* load(index_t element, index_t count) {
      if constexpr (S::has_zero_point) load_zero_points(w_, at_, element, count, length_, zeros_);
      if constexpr (S::has_offset) load_offsets(w_, at_, element, count, length_, offsets_);
      at_[last] = element;
      if constexpr (std::is_same_v<typename S::scale_format, f32>)
        if (in_place_) return w_.storage_scales(at_);
      load_scales(w_, at_, element, count, length_, decoded_);
      return decoded_;
    }
    const std::int32_t* zero_points() const { return S::has_zero_point ? zeros_ : nullptr; }
    const float* offsets() const { return S::has_offset ? offsets_ : nullptr; }

   private:
    static constexpr index_t room = 1024;
    const View& w_;
    index_array at_;
    index_t length_;
    bool in_place_;
    index_t most_ = room;
    alignas(64) float scales_here_[room];
    alignas(64) std::int32_t zeros_here_[S::has_zero_point ? room : 1];
    alignas(64) float offsets_[S::has_offset ? room : 1];  // of one load, as there is room for here
    float* decoded_ = scales_here_;
    std::int32_t* zeros_ = zeros_here_;
    line_array<float> more_scales_;
    line_array<std::int32_t> more_zeros_;
  };

  void runs(index_array at, index_t col, index_t n, number* out, simd::traffic t) const {
    const auto codes = w_.row(at);
    const index_t scale_length = w_.scale_grid().block[last];
    const bool alike = !S::has_zero_point || scale_length == w_.zero_grid().block[last];
    const index_t length = alike ? scale_length : 1;
    run_parameters parameters(w_, at, length);
    const float tensor_scale = w_.tensor_scale();
    for (const index_t end = col + n; col < end;) {
      const index_t left = end - col, in_block = length - col % length;
      const auto from = codes + unit_of_element<S>(col);
      index_t count = in_block < left ? in_block : left;
      if (col % byte_step<S> != 0) {
        count = 1;
        *out = single(at, col);
      } else if (count < length || count == left) {
        const float* scales = parameters.load(col, 1);
        simd::decode_uniform<S, F>(from, count, element_scale{*scales, tensor_scale},
                                   S::has_zero_point ? *parameters.zero_points() : 0, out,
                                   S::has_offset ? *parameters.offsets() : 0.f, t);
      } else {
        const index_t blocks = std::min(parameters.most(), divide_up(left, length));  // of which the last may be short
        const float* scales = parameters.load(col, blocks);
        const std::int32_t* zero = parameters.zero_points();
        count = std::min(blocks * length, left);
        if (length == 1)
          simd::decode_vector<S, F>(from, count, scales, zero, out, tensor_scale, parameters.offsets(), t);
        else
          simd::decode_grouped<S, F>(from, count, length, scales, zero, out, tensor_scale, parameters.offsets(), t);
      }
      col += count;
      out += count;
    }
  }

  struct nothing {
    template <class... Any>
    void emplace(const Any&...) {}
  };
  View w_;
  row_blocks blocks_;
  typename std::conditional_t<simd::codes_in_runs<S>, std::type_identity<std::optional<simd::uniform_decoder<S, F>>>,
                              std::type_identity<nothing>>::type alike_;
};

}  // namespace qtensor::inline QTENSOR_ABI::ops
