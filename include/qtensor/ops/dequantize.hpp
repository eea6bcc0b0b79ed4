// Dequantize: rows of a quantized view as floats, and the view as a source for whatever takes one.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <qtensor/ops/down_decoder.hpp>
#include <qtensor/ops/joined_axes.hpp>
#include <qtensor/ops/quantize.hpp>
#include <qtensor/ops/row_decoder.hpp>

namespace qtensor::inline QTENSOR_ABI {

namespace ops {

/// Where the numbers of a tensor go: rows of them to memory, past the caches where there are many.
template <simd::number_format F, tensor_view_type View>
class number_writer {
  using index_array = typename View::index_array;
  using number = storage_t<F>;
  static constexpr std::size_t last = static_cast<std::size_t>(View::rank) - 1;
  /// Elements of rows that share what each of them has of its own, and rows, that load it once.
  static constexpr index_t most_at_once = index_t{1} << 16, rows_at_once = 64;
  static constexpr index_t short_row = 256;  // elements, which take as long as what comes before the first of them

 public:
  number_writer(const View& w, number* out, const index_array& steps)
      : extents_(w.storage_extents()),
        decode_(w),
        down_(w, decode_.decodes_all()),
        out_(out),
        steps_(steps),
        size_(w.size()) {}

  void write() const {
    if (const auto tile = decode_.padding(); tile && !goes_down())
      write_short_rows(*tile);
    else if (decode_.is_flat() && is_dense())
      contiguous(index_array{}, size_, out_);
    else if (decode_.is_flat() && extents_[last] <= short_row && !goes_down())
      write_flat_rows();
    else
      write_rows();
    if (streams_) simd::stream_fence<simd::best_arch>();
  }

 private:
  /// Where the row at an index begins.
  number* place_of(const index_array& at) const {
    number* to = out_;
    for (std::size_t axis = 0; axis < last; ++axis) to += at[axis] * steps_[axis];
    return to;
  }

  using down_type = down_decoder<F, View>;
  /// Whether rows lie side by side, enough of them to go down, and are not so short that they are better turned.
  bool goes_down() const {
    constexpr index_t turned = 16;
    if constexpr (last > 0)
      return extents_[last] > turned && steps_[last] != 1 && steps_[last - 1] == 1 &&
             extents_[last - 1] >= down_type::kernel_rows && down_.takes(index_array{});
    return false;
  }

  void write_short_rows(const padded_rows& tile) const {
    if constexpr (last > 0)
      decode_.for_each_padded_tile(tile, [&](const index_array& at, index_t n, number* numbers) {
        store_rows(numbers, tile.length, n, tile.cols, place_of(at));
      });
  }
  /// Rows of a tile, `wide` numbers apart, to where the first of them begins, in any order.
  void store_rows(number* tile, index_t wide, index_t rows, index_t cols, number* to) const {
    const index_t step = steps_[last - 1];
    if (steps_[last] == 1)
      store_tile(tile, wide, rows, cols, to, step, streams_);
    else if (step == 1)
      turn(tile, wide, cols, rows, to);
    else
      for (index_t r = 0; r < rows; ++r) scatter(tile + r * wide, cols, to + r * step);
  }

  /// Several short rows as the one that they are, then apart.
  void write_flat_rows() const {
    if constexpr (last > 0) {
      alignas(64) number tile[static_cast<std::size_t>(tile_floats)];
      const index_t cols = extents_[last];
      for_each_row_tile(extents_, tile_floats / cols, [&](index_t row, index_t n, const index_array& at) {
        decode_(index_array{}, row * cols, n * cols, tile);
        store_rows(tile, cols, n, cols, place_of(at));
      });
    }
  }

  void write_rows() const {
    const index_t rows = size_ / extents_[last];
    for (index_t row = 0, side = 1; row < rows; row += side) {
      const index_array at = row_index(row, extents_);
      number* to = place_of(at);
      side = rows_together(at);
      if (side > 1 && steps_[last] == 1)
        columns(at, side, to);
      else if (side > 1)
        across(at, side, to);
      else if (steps_[last] == 1)
        contiguous(at, extents_[last], to);
      else
        apart(at, to);
    }
  }

  /// Rows that are written together: those that share a scale for each element, those that lie side by side. What goes
  /// past the caches goes row by row where that needs no copies of scales: memory likes that best.
  index_t rows_together(const index_array& at) const {
    if constexpr (last > 0) {
      if (steps_[last] == 1)
        return streams_ && decode_.rows_are_runs()
                   ? 1
                   : decode_.rows_alike(at, std::max(rows_at_once, most_at_once / extents_[last]));
      if (steps_[last - 1] == 1) return extents_[last - 1] - at[last - 1];
    }
    return 1;
  }

  bool is_dense() const {
    index_t dense = 1;
    for (std::size_t axis = last + 1; axis > 0; --axis) {
      if (steps_[axis - 1] != dense && extents_[axis - 1] != 1) return false;
      dense *= extents_[axis - 1];
    }
    return true;
  }

  /// One after the other: where they belong, or past the caches, by way of a tile where they begin no line and groups
  /// might begin inside of lines.
  void contiguous(const index_array& at, index_t length, number* to) const {
    if (!streams_) return decode_(at, 0, length, to);
    const index_t begin = simd::numbers_to_line<typename View::scheme_type>(to, 0, length);
    if (begin == 0 || (decode_.rows_have_one_entry() && begin < length)) {
      simd::fetch_shared_lines(to, length);
      if (begin > 0) decode_(at, 0, begin, to);
      return decode_(at, begin, length - begin, to + begin, simd::reads_once(true));
    }
    constexpr index_t most = tile_floats / 2;
    alignas(64) number tile[static_cast<std::size_t>(most)];
    for (index_t col = 0; col < length; col += most) {
      const index_t n = std::min(most, length - col);
      simd::fetch_shared_lines(to + col, n);
      decode_(at, col, n, tile, simd::reads_once(false));
      simd::stream_bytes(tile, n * static_cast<index_t>(sizeof *to), to + col);
    }
  }

  /// Rows that share a scale for each element, likewise.
  void columns(const index_array& at, index_t rows, number* to) const {
    if constexpr (last > 0) {
      const index_t step = steps_[last - 1], together = step == extents_[last] ? decode_.rows_as_one(rows) : 1;
      if (together > 1) {
        return decode_.narrow_columns(at, rows, together, to, streams_ ? simd::reads_once(true) : simd::traffic{});
      }
      if (decode_.ends_inside_bytes())
        return decode_.for_each_tile_alike(at, rows, [&](index_t row, index_t n, number* numbers, index_t length) {
          store_tile(numbers, length, n, extents_[last], to + row * step, step, streams_);
        });
      if (!streams_)
        return decode_.columns(at, 0, extents_[last], [&](index_t col, index_t, const auto& decode) {
          decode(index_t{0}, rows, to + col, step, simd::traffic{});
        });
      // Row after row, as they lie: memory gives its best where it is read and written in order. A few at once where
      // their scales come from a cache beyond the first, and all begin alike.
      constexpr index_t wide = tile_floats / 2, most = 1 << 16, few = 4;
      constexpr index_t entry_bytes = View::scheme_type::has_zero_point ? 8 : 4, near = 24576 / entry_bytes;
      const index_t begin = simd::numbers_to_line<typename View::scheme_type>(to, step, extents_[last]);
      const bool alike = begin < extents_[last], direct = alike || byte_step<typename View::scheme_type> == 1;
      const index_t at_once = alike && extents_[last] > near ? few : 1;
      alignas(64) number tile[static_cast<std::size_t>(wide)];
      decode_.columns(at, alike ? begin : 0, direct ? most : wide, [&](index_t col, index_t cols, const auto& decode) {
        for (index_t row = 0; row < rows; row += at_once) {
          number* first = to + row * step + col;
          const index_t count = std::min(at_once, rows - row);
          for (index_t r = 0; r < count; ++r) simd::fetch_shared_lines(first + r * step, cols);
          decode(row, count, direct ? first : tile, step, simd::reads_once(direct));
          if (!direct) simd::stream_bytes(tile, cols * static_cast<index_t>(sizeof *to), first);
        }
      });
    }
  }
  /// Rows of a tile past the caches.
  static void stream_rows(const number* tile, index_t wide, index_t rows, index_t cols, number* to, index_t step) {
    for (index_t r = 0; r < rows; ++r)
      simd::stream_bytes(tile + r * wide, cols * static_cast<index_t>(sizeof *to), to + r * step);
  }

  /// `rows` rows side by side: element c of row r to to[c * steps[last] + r], through a tile that is turned.
  void across(index_array at, index_t rows, number* to) const {
    // Down columns go whole steps of the kernels: a few rows more would take as long as another step.
    const index_t whole = down_.takes(at) ? rows / down_type::kernel_rows * down_type::kernel_rows : 0;
    const index_t first = streams_ && whole > 0 ? rows : whole;
    if (first > 0) down(at, first, to);
    // Few rows in longer parts: each takes as long before its first number as a hundred of them.
    constexpr index_t high = most_turned, least = 256, most = 1024, gap = 64 / index_t{sizeof(number)};
    const index_t wide = std::clamp(8192 / std::max(rows - first, index_t{1}) / least * least, least, most);
    const index_t apart = wide + gap;
    alignas(64) number tile[high * (least + gap)];
    for (index_t row = first; row < rows; row += high)
      for (index_t col = 0; col < extents_[last]; col += wide) {
        const index_t height = std::min(high, rows - row), width = std::min(wide, extents_[last] - col);
        for (index_t r = 0; r < height; ++r) {
          at[last - 1] = row + r;
          decode_(at, col, width, tile + r * apart);
        }
        turn(tile, apart, width, height, to + col * steps_[last] + row);
      }
  }
  /// The columns of a tile, one after the other: by way of a small tile of at most so many rows, which columns leave as
  /// runs, where they go past the caches or are so far apart that their lines share a place in the first one.
  static constexpr index_t most_turned = 256 / index_t{sizeof(number)};
  void turn(const number* tile, index_t wide, index_t width, index_t height, number* to) const {
    constexpr index_t few = 16, at_once = 32, apart = most_turned + 64 / index_t{sizeof(number)}, colliding_bytes = 512;
    const index_t step = steps_[last];
    const bool collides = step * index_t{sizeof(number)} % colliding_bytes == 0;
    if (!streams_ && (height < few || !collides)) return simd::transpose(tile, wide, width, height, to, step);
    alignas(64) number turned[at_once * apart];
    for (index_t row = 0; row < height; row += most_turned)
      for (index_t col = 0; col < width; col += at_once) {
        const index_t count = std::min(at_once, width - col), n = std::min(most_turned, height - row);
        simd::transpose(tile + row * wide + col, wide, count, n, turned, apart);
        number* const first = to + col * step + row;
        if (streams_)
          stream_rows(turned, apart, count, n, first, step);
        else
          simd::copy_rows(static_cast<const number*>(turned), apart, count, n, first, step);
      }
  }

  /// The same by way of their codes, which are turned instead of the numbers. Past the caches parts of columns that
  /// begin no lines go by way of a tile.
  void down(const index_array& start, index_t rows, number* to) const {
    constexpr index_t high = down_type::most_rows, wide = down_type::most_cols;
    const bool direct = !streams_ || simd::begins_line(to, steps_[last]);
    alignas(64) number kept[wide * high];
    const auto visit = [&](index_t row, index_t col, index_t height, index_t width, const auto& decode) {
      number* first = to + col * steps_[last] + row;
      decode(direct ? first : kept, direct ? steps_[last] : high, {simd::fetch::nothing, streams_ && direct});
      if (!direct) stream_rows(kept, high, width, height, first, steps_[last]);
    };
    down_.for_each_part(start, rows, 0, extents_[last], streams_, visit);
  }

  /// With anything in between.
  void apart(const index_array& at, number* to) const {
    constexpr index_t most = tile_floats / 2;
    alignas(64) number tile[static_cast<std::size_t>(most)];
    for (index_t col = 0; col < extents_[last]; col += most) {
      const index_t n = std::min(most, extents_[last] - col);
      decode_(at, col, n, tile);
      scatter(tile, n, to + col * steps_[last]);
    }
  }
  void scatter(const number* from, index_t n, number* to) const {
    for (index_t i = 0; i < n; ++i) to[i * steps_[last]] = from[i];
  }

  index_array extents_;
  row_decoder<F, View> decode_;
  down_decoder<F, View> down_;
  number* out_;
  index_array steps_;
  index_t size_;
  bool streams_ = is_beyond_caches(size_);
};

/// Elements [col, col + cols) of as many of rows [row, row + rows) of a matrix as kernels take in whole steps, from
/// turned codes, to out[r + c * step]. Returns how many rows these are: none where codes from there on do not turn.
template <tensor_view_type View>
requires(View::rank == 2) index_t
    dequantize_down(const View& w, index_t row, index_t rows, index_t col, index_t cols, float* out, index_t step) {
  const down_decoder<f32, View> down(w);
  const auto start = row_index(row, w.storage_extents());
  const index_t whole = rows / down.kernel_rows * down.kernel_rows;
  if (whole == 0 || !down.takes_from(start, col)) return 0;
  down.for_each_part(start, whole, col, cols, false, [&](index_t r, index_t c, index_t, index_t, const auto& decode) {
    decode(out + r + c * step, step, simd::traffic{});
  });
  return whole;
}

}  // namespace ops

/// Writes every element of a view to memory: element (i, j, ...) to out[i * strides[0] + j * strides[1] + ...].
/// dequantize_into<bf16> and <f16> write the 16 bits of numbers rounded once more (ties to even, overflow to infinity).
/// Throws where there are elements and `out` is null.
template <simd::number_format F = f32, quantization_scheme S, tensor_extents E, storage_order O, class A>
void dequantize_into(const basic_tensor_view<S, E, O, A>& w, storage_t<F>* out, const typename E::array& strides) {
  if (w.size() == 0) return;
  require(out != nullptr, "the destination is null, but has ", w.size(), " elements.");
  const auto steps = reordered<O>(strides);
  if (ops::with_joined_axes(w, steps, [&](const auto& joined, const auto&, const auto& joined_steps) {
        ops::number_writer<F, std::remove_cvref_t<decltype(joined)>>(joined, out, joined_steps).write();
      }))
    return;
  ops::number_writer<F, basic_tensor_view<S, E, O, A>>(w, out, steps).write();
}
/// The same to dense memory with the last axis first to vary, whatever the order of the codes: what
/// `source(out, w.extents())` reads. `on` is an executor or nothing.
template <simd::number_format F = f32, quantization_scheme S, tensor_extents E, storage_order O, class A,
          executor By = serial>
void dequantize_into(const basic_tensor_view<S, E, O, A>& w, storage_t<F>* out, const execution<By>& on = {}) {
  const auto strides = dense_strides(w.extents().to_array());
  if constexpr (std::same_as<By, serial>)
    dequantize_into<F>(w, out, strides);
  else
    dequantize_into<F>(w, out, strides, on);
}

/// Rows [row, row + rows) of a view in storage order, elements [col, col + cols) of each, to
/// out[r * row_step + c * step]. `step`, or else `row_step`, is 1.
template <quantization_scheme S, tensor_extents E, storage_order O, class A>
void dequantize_rows(const basic_tensor_view<S, E, O, A>& w, index_t row, index_t rows, index_t col, index_t cols,
                     float* out, index_t row_step, index_t step = 1) {
  if constexpr (E::rank == 2) {
    constexpr int down = O::axis(2, 0), along = O::axis(2, 1);
    if (rows * step != 1 && w.template slices_from<down>(row) && w.template slices_from<along>(col)) {
      std::array<index_t, 2> steps{};
      steps[down] = row_step, steps[along] = step;
      return dequantize_into(w.template slice<down>(row, rows).template slice<along>(col, cols), out, steps);
    }
  }
  const ops::row_decoder<f32, basic_tensor_view<S, E, O, A>> decode(w);
  const auto decode_row = [&](index_t r, index_t first, index_t n, float* to) {
    decode(ops::row_index(row + r, w.storage_extents()), col + first, n, to);
  };
  if (step == 1) {
    for (index_t r = 0; r < rows; ++r) decode_row(r, 0, cols, out + r * row_step);
    return;
  }
  constexpr index_t high = 16, wide = 256;
  index_t turned = 0;
  if constexpr (E::rank == 2) turned = ops::dequantize_down(w, row, rows, col, cols, out, step);
  alignas(64) float tile[high * wide];
  for (index_t c = 0; c < cols; c += wide)
    for (index_t r = turned; r < rows; r += high) {
      const index_t height = std::min(high, rows - r), width = std::min(wide, cols - c);
      for (index_t k = 0; k < height; ++k) decode_row(r + k, c, width, tile + k * wide);
      simd::transpose(static_cast<const float*>(tile), wide, width, height, out + r + c * step, step);
    }
}

/// The same to out[r + c * step] by turning codes. False, with nothing written, where they cannot be turned or are few.
template <tensor_view_type View>
bool dequantize_turned(const View& w, index_t row, index_t rows, index_t col, index_t cols, float* out, index_t step) {
  const index_t whole = ops::dequantize_down(w, row, rows, col, cols, out, step);
  if (whole == 0) return false;
  if (whole < rows) dequantize_rows(w, row + whole, rows - whole, col, cols, out + whole, 1, step);
  return true;
}

/// A quantized view as a tile_source: its storage rows as floats.
template <tensor_view_type View>
struct view_source {
  View view;
  static constexpr bool reads_rows = true;
  static constexpr bool reads_twice = true;

  index_t rows() const { return view.shape().row_count(); }
  index_t cols() const { return view.shape().row_length(); }
  const float* direct(index_t, index_t) const { return nullptr; }
  void read(index_t row, index_t rows, index_t col, index_t cols, float* tile, index_t stride) const {
    dequantize_rows(view, row, rows, col, cols, tile, stride);
  }
  /// The same to tile[c * stride + r].
  void read_across(index_t row, index_t rows, index_t col, index_t cols, float* tile, index_t stride) const {
    dequantize_rows(view, row, rows, col, cols, tile, 1, stride);
  }
};
template <class View>
view_source(View) -> view_source<View>;

/// Any source with rows and columns exchanged. Tiles of one that cannot read across go through a small square, so that
/// neither side is read element by element.
template <tile_source X>
struct transposed_source {
  X source;
  static constexpr bool reads_rows = false;
  static constexpr bool reads_twice = X::reads_twice;

  index_t rows() const { return source.cols(); }
  index_t cols() const { return source.rows(); }
  const float* direct(index_t, index_t) const { return nullptr; }
  void read(index_t row, index_t rows, index_t col, index_t cols, float* tile, index_t stride) const {
    if constexpr (requires { source.read_across(col, cols, row, rows, tile, stride); })
      return source.read_across(col, cols, row, rows, tile, stride);
    constexpr index_t side = 32;
    alignas(64) float square[side * side];
    for (index_t c = 0; c < cols; c += side)
      for (index_t r = 0; r < rows; r += side) {
        const index_t down = rows - r < side ? rows - r : side, across = cols - c < side ? cols - c : side;
        source.read(col + c, across, row + r, down, square, side);
        simd::transpose(square, side, down, across, tile + r * stride + c, stride);
      }
  }
};
template <class X>
transposed_source(X) -> transposed_source<X>;

/// A view of a matrix as a source of the rows that a tensor of another order stores.
template <storage_order Order, tensor_view_type View>
auto source_in_order(const View& view) {
  if constexpr (std::same_as<Order, typename View::order_type>)
    return view_source<View>{view};
  else {
    static_assert(View::rank == 2,
                  "qtensor: only matrices change their storage order here; use the same order for other ranks.");
    return transposed_source<view_source<View>>{{view}};
  }
}

/// Any scheme to any other, as quantize(dequantize(x)) in one pass: a tensor of the same extents.
template <quantization_scheme To, storage_order Order = row_major, quantized From, class... How>
auto requantize(const From& from, const How&... how) {
  const auto view = as_view(from);
  return make_quantized<To, Order>(source_in_order<Order>(view), view.extents(), how...);
}

}  // namespace qtensor::inline QTENSOR_ABI
