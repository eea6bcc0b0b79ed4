// Rows: how whole-tensor operations walk a tensor's memory and pull a source through a tile that stays in L1.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <numeric>
#include <qtensor/core/executor.hpp>
#include <qtensor/ops/line_array.hpp>
#include <qtensor/ops/source.hpp>
#include <qtensor/simd/abi.hpp>

namespace qtensor::inline QTENSOR_ABI::ops {

/// Floats of a tile: 16 KiB, a third to a half of every L1 data cache.
inline constexpr index_t tile_floats = 4096;
/// Floats of a box that is copied or read a second time: half of a usual second-level cache.
inline constexpr index_t box_floats = index_t{1} << 17;
/// Rows of a box when the source's own order runs across them: whole registers to transpose, whole lines to fetch.
inline constexpr index_t box_rows = 16;

/// From this size on codes bypass the caches: source and codes do not fit the last-level cache of a core. A program may
/// define another one in all its units; no bits depend on it, and tests reach with small tensors what large ones take.
#ifdef QTENSOR_STREAMING_FLOATS
inline constexpr index_t streaming_floats = QTENSOR_STREAMING_FLOATS;
#else
inline constexpr index_t streaming_floats = index_t{8} << 20;
#endif
/// Whether an operation on so many numbers, with those of the parts beside it, goes past the caches.
inline bool is_beyond_caches(index_t size) { return size * qtensor::detail::parts_together >= streaming_floats; }

/// Floats that are read into a tile at a time, where blocks allow it, of a source of so many: what they are read from
/// wants room in the cache, too, the more so where it comes from memory.
inline index_t read_length(index_t size) { return is_beyond_caches(size) ? tile_floats / 4 : tile_floats / 4 * 3; }

/// Elements to read from memory before they are encoded.
template <class Element>
index_t alternating_length() {
  return std::min(simd::best_requests().piece / index_t{sizeof(Element)}, tile_floats);
}

/// How numbers further on are asked for while codes of n of them are made, whose statistics have brought them to the
/// first-level cache: it should hold as many again by then. `size`: how many lie in memory, one behind the other.
template <class Element>
simd::traffic asks_behind_statistics(index_t n, index_t size) {
  constexpr index_t cached = 2 * tile_floats * index_t{sizeof(float) / sizeof(Element)};
  if (size <= cached) return {};
  const simd::requests best = simd::best_requests();
  if (is_beyond_caches(size)) return {best.next_piece, false, best.ahead};
  // Narrower vectors take longer than a cache.
  if (simd::lanes<simd::best_arch> < 16) return {};
  return {best.beyond, false, n * index_t{sizeof(Element)}};
}

/// How kernels read the elements of a source.
template <tile_source X>
using source_elements = simd::source_of<element_format_of<X>>;

/// A source as the reference reads it: element by element, at an index in the tensor's own axes.
template <class X, class Extents, storage_order Order>
struct reference_reader {
  const X& x;
  const Extents& extents;
  template <std::size_t Rank>
  float operator()(const std::array<index_t, Rank>& index) const {
    const auto at = reordered<Order>(index);
    const auto sizes = reordered<Order>(extents.to_array());
    index_t row = 0;
    for (std::size_t axis = 0; axis + 1 < Rank; ++axis) row = row * sizes[axis] + at[axis];
    if (const auto* here = x.direct(row, at[Rank - 1])) return simd::number<source_elements<X>>(*here);
    float element = 0.f;
    x.read(row, 1, at[Rank - 1], 1, &element, 1);
    return element;
  }
};

/// Elements from one row to the next where all rows lie in memory, evenly spaced.
template <tile_source X>
std::optional<index_t> row_step(const X& x) {
  if constexpr (requires { x.row_step(); })
    return x.row_step();
  else
    return std::nullopt;
}

/// The columns of a source as rows of memory, where they lie there.
template <tile_source X>
std::optional<matrix_ref<const element_of<X>>> columns_of(const X& x) {
  if constexpr (requires { x.columns(); })
    return x.columns();
  else
    return std::nullopt;
}

/// Calls visit(col, n, elements) for runs of n elements that make up columns as columns_of gives them, from column
/// `col` on: `most` columns at a time where they follow each other in memory, else one by one.
template <class T, class Visit>
void for_each_column_run(const matrix_ref<const T>& columns, index_t most, Visit visit) {
  const index_t together = columns.row_stride == columns.cols() ? most : 1;
  for (index_t col = 0; col < columns.rows(); col += together)
    visit(col, std::min(together, columns.rows() - col) * columns.cols(), &columns(col, 0));
}

/// How far elements further on in memory are asked for while they are only read, along rows or `down` columns.
template <tile_source X>
simd::fetch fetches_while_reading(const X& x, bool down = false) {
  const bool is_long = is_beyond_caches(x.rows() * x.cols());
  const bool from_memory = is_long && (row_step(x).has_value() || columns_of(x).has_value());
  if (!from_memory) return simd::fetch::nothing;
  return down ? simd::best_requests().columns : simd::best_requests().only;
}

/// The floats of a row where they lie in memory as such, else nullptr.
template <tile_source X>
const float* floats_of_row(const X& x, index_t row) {
  if constexpr (std::same_as<element_format_of<X>, f32>)
    return x.direct(row, 0);
  else
    return nullptr;
}

/// The index in storage order of the first element of a row, rows counted with the last of the leading axes fastest.
template <std::size_t Rank>
constexpr std::array<index_t, Rank> row_index(index_t row, const std::array<index_t, Rank>& storage_extents) {
  std::array<index_t, Rank> index{};
  for (std::size_t axis = Rank - 1; axis > 0; --axis) {
    index[axis - 1] = row % storage_extents[axis - 1];
    row /= storage_extents[axis - 1];
  }
  return index;
}

/// Calls visit(first_row, row_count) for the runs of consecutive rows that a box of the leading axes holds.
template <std::size_t Rank, class Visit>
void for_each_row_run(const std::array<index_t, Rank>& first, const std::array<index_t, Rank>& count,
                      const std::array<index_t, Rank>& storage_extents, Visit visit) {
  if constexpr (Rank == 1) {
    visit(index_t{0}, index_t{1});
  } else {
    // Boxes that reach over whole axes make longer runs: from the innermost leading axis outwards.
    std::array<index_t, Rank> outer = count;
    outer[Rank - 1] = 1;
    index_t run = 1;
    for (std::size_t axis = Rank - 1; axis > 0; --axis) {
      run *= count[axis - 1];
      outer[axis - 1] = 1;
      if (count[axis - 1] != storage_extents[axis - 1]) break;
    }
    std::array<index_t, Rank> start = first;
    start[Rank - 1] = 0;
    reference::for_each_index(start, outer, [&](const std::array<index_t, Rank>& at) {
      index_t row = 0;
      for (std::size_t axis = 0; axis + 1 < Rank; ++axis) row = row * storage_extents[axis] + at[axis];
      visit(row, run);
    });
  }
}

/// First code unit of element `col` of a row; col starts a byte.
template <class S>
constexpr index_t unit_of_element(index_t col) {
  return is_packed<typename S::code_format> ? col * S::code_format::bits / 8 : col;
}

/// Elements from one byte boundary to the next: 1 or 2, 4 for 2- and 6-bit codes, 8 for those of odd widths.
template <class S>
inline constexpr index_t byte_step = is_packed<typename S::code_format>
                                         ? 8 / (S::code_format::bits & -S::code_format::bits)
                                         : 1;

/// Whether the parameters of a row lie side by side, and those of the next row behind them.
template <class Grid, class Array>
bool rows_follow_each_other(const Grid& grid, const Array& extents) {
  constexpr std::size_t last = std::tuple_size_v<Array> - 1;
  if (grid.stride[last] != 1) return false;
  index_t next = divide_up(extents[last], grid.block[last]);
  for (std::size_t axis = last; axis > 0; --axis) {
    if (extents[axis - 1] != 1 && (grid.block[axis - 1] != 1 || grid.stride[axis - 1] != next)) return false;
    next *= extents[axis - 1];
  }
  return true;
}

/// The rows of a tensor as kernels see them: one long row where no byte and no block reaches over the end of a row (and
/// codes and parameters are dense), or where one block holds everything.
struct row_blocks {
  index_t row_length;    // elements of a row
  index_t block_length;  // elements of a row that share a scale
  bool dense;            // each row of codes begins where the one before it ends
  bool flat;             // one long row
  bool one_block;        // and all of it shares a scale: entry 0

  template <tensor_view_type View>
  explicit row_blocks(const View& w) {
    using S = typename View::scheme_type;
    constexpr std::size_t last = static_cast<std::size_t>(View::rank) - 1;
    const auto extents = w.storage_extents();
    const auto& scales = w.scale_grid();
    row_length = extents[last];
    block_length = scales.block[last] < row_length ? scales.block[last] : row_length;
    dense = flat = one_block = false;
    if constexpr (S::is_interleaved) {
      const index_t elements = interleaved_block<S>::elements(w.granularity());
      dense = flat = rows_follow(w, extents, elements, interleaved_block<S>::bytes(w.granularity()));
      if (flat) row_length = w.size();
    } else {
      dense = rows_follow(w, extents, byte_step<S>, unit_of_element<S>(byte_step<S>));
      if (!dense) return;
      const bool zeros_alike = !S::has_zero_point || w.zero_grid().block == scales.block;
      if (holds_everything(scales, extents) && zeros_alike) {
        flat = one_block = true;
        block_length = row_length = w.size();
      } else if (in_order(scales, extents) && zeros_alike && (!S::has_zero_point || in_order(w.zero_grid(), extents))) {
        flat = true;
        row_length = w.size();
      }
    }
  }

 private:
  /// Whether each row of codes begins where the one before it ends; `elements` of them are `units` in memory.
  template <class View, class Array>
  static bool rows_follow(const View& w, const Array& extents, index_t elements, index_t units) {
    constexpr std::size_t last = std::tuple_size_v<Array> - 1;
    if (extents[last] % elements != 0) return last == 0;
    index_t next = extents[last] / elements * units;
    for (std::size_t axis = last; axis > 0; --axis) {
      if (w.row_strides()[axis - 1] != next && extents[axis - 1] != 1) return false;
      next *= extents[axis - 1];
    }
    return true;
  }
  template <class Grid, class Array>
  static bool holds_everything(const Grid& grid, const Array& extents) {
    for (std::size_t axis = 0; axis < extents.size(); ++axis)
      if (grid.block[axis] < extents[axis]) return false;
    return true;
  }
  template <class Grid, class Array>
  static bool in_order(const Grid& grid, const Array& extents) {
    constexpr std::size_t last = std::tuple_size_v<Array> - 1;
    return (last == 0 || extents[last] % grid.block[last] == 0) && rows_follow_each_other(grid, extents);
  }
};

/// Pieces of a row: a multiple of `step` elements each (the last may be short), at most `most`, at least one step.
constexpr index_t piece_length(index_t step, index_t most) { return most / step > 0 ? most / step * step : step; }
/// The same where so many elements are cut: none of the pieces, which are about as long, is left much shorter.
constexpr index_t even_piece_length(index_t step, index_t most, index_t elements) {
  constexpr index_t line = simd::cache_line;  // of codes of a byte
  const index_t longest = piece_length(step, most), pieces = divide_up(elements, longest);
  return std::min(longest, round_up(divide_up(elements, pieces), std::lcm(step, line)));
}

/// Rows from `first` on that for_each_float_run reads into its room at a time: none where they are floats in memory.
template <tile_source X>
index_t rows_in_room(const X& x, index_t first, index_t most) {
  if (floats_of_row(x, first) != nullptr) return 0;
  return reads_by_rows(x, first) ? 1 : most;
}

/// Calls visit(r, n, from, step) for runs of n rows that make up rows [first, first + count) of a source, the first of
/// a run being first + r: row i of it are the floats at from + i * step. Rows that do not lie in memory as floats are
/// read into `room`, at most `most` of x.cols() at a time; no run is longer.
template <tile_source X, class Visit>
void for_each_float_run(const X& x, index_t first, index_t count, index_t most, float* room, const Visit& visit) {
  const index_t cols = x.cols(), together = std::max(rows_in_room(x, first, most), index_t{1});
  for (index_t r = 0, n; r < count; r += n) {
    if (const float* here = floats_of_row(x, first + r); here != nullptr) {
      const auto step = row_step(x);
      n = step ? std::min(most, count - r) : 1;
      visit(r, n, here, step ? *step : cols);
    } else {
      n = std::min(together, count - r);
      x.read(first + r, n, 0, cols, room, cols);
      visit(r, n, static_cast<const float*>(room), cols);
    }
  }
}

/// Rows and columns that a source is read in where it does not lie in memory.
struct box_shape {
  index_t rows, cols;

  /// Columns are a multiple of `step`, or all. Sources whose own order runs across the rows are read down some lines of
  /// the caches at a time, many rows where they come from memory: it does not like to be read in lines here and there.
  /// Where rows lie in memory, too, a few of both orders are asked for at a time.
  template <tile_source X>
  static box_shape of(const X& x, index_t step) {
    const auto cut = [&](index_t most) {
      return piece_length(step, most) < x.cols() ? piece_length(step, most) : x.cols();
    };
    if (X::reads_rows) return {tile_floats / 512, cut(512)};
    const bool is_near = mixes_orders<X> || !is_beyond_caches(x.rows() * x.cols());
    const index_t cols = cut(512), least = is_near ? 4 * box_rows : box_rows;
    const index_t rows = (is_near ? tile_floats : box_floats) / std::max(cols, index_t{1}) / box_rows * box_rows;
    return {std::max(rows, least), cols};
  }
};

/// Elements from one copied row of n to the next, an odd number of lines: rows that lie a power of two apart would meet
/// in one set of the cache.
template <class Element>
index_t apart(index_t n) {
  constexpr index_t line = simd::cache_line / index_t{sizeof(Element)};
  return n < 2 * line ? n : round_up(n, 2 * line) + line;
}

/// What asks for a box of a source by and by, a row's worth at a time, where the source can tell and comes from memory.
template <tile_source X>
auto requests_for(const X& x, index_t row, index_t rows, index_t col, index_t cols) {
  if constexpr (requires { x.box_requests(row, rows, col, cols); })
    return x.box_requests(row, rows, col, cols);
  else
    return std::array<simd::run_requests, 0>{};
}

/// Boxes of a source's elements in memory: its own where its rows lie there, else copies.
template <tile_source X>
class box_reader {
 public:
  using element = element_of<X>;
  using box_type = matrix_ref<const element>;

  /// Reads boxes of `shape` unless asked for others.
  box_reader(const X& x, const box_shape& shape) : x_(x), shape_(shape), step_(row_step(x)) {}

  bool is_direct() const { return step_.has_value(); }
  const box_shape& shape() const { return shape_; }

  /// Rows [row, row + rows) and columns [col, col + cols), valid until the next call. A part of the box of the last
  /// call is not read again.
  box_type read(index_t row, index_t rows, index_t col, index_t cols) {
    if (is_direct()) return {x_.direct(row, col), rows, cols, *step_, 1};
    const bool kept = row >= row_ && row + rows <= row_ + rows_ && col >= col_ && col + cols <= col_ + cols_;
    if (!kept) {
      stride_ = apart<element>(cols);
      if (rows * stride_ > size_) {
        size_ = rows * stride_;
        memory_ = line_array<element>::for_overwrite(size_);
      }
      x_.read(row, rows, col, cols, memory_.data(), stride_);
      row_ = row, rows_ = rows, col_ = col, cols_ = cols;
    }
    return {memory_.data() + (row - row_) * stride_ + (col - col_), rows, cols, stride_, 1};
  }

  /// Calls visit(row, col, n, elements) for the rows of boxes of shape() that cover rows [first_row, first_row +
  /// row_count). What is copied is asked for by and by, a box ahead, if it comes from memory.
  template <class Visit>
  void for_each_row(index_t first_row, index_t row_count, Visit visit) {
    const index_t cols = x_.cols(), end = first_row + row_count;
    for (index_t row = first_row; row < end; row += shape_.rows)
      for (index_t col = 0; col < cols; col += shape_.cols) {
        const index_t rows = end - row < shape_.rows ? end - row : shape_.rows;
        const index_t n = cols - col < shape_.cols ? cols - col : shape_.cols;
        const auto box = read(row, rows, col, n);
        const bool ends = cols - col <= shape_.cols;
        auto ahead = requests_for(x_, ends ? row + rows : row, rows, ends ? 0 : col + shape_.cols, n);
        for (index_t r = 0; r < rows; ++r) {
          for (simd::run_requests& one : ahead) one.ask();
          visit(row + r, col, n, box.data + r * box.row_stride);
        }
      }
  }

  /// Calls visit(row, col, box) for boxes that cover rows [first_row, first_row + row_count) and columns [first_col,
  /// first_col + col_count): one box where the source is direct or the last box holds it all.
  template <class Visit>
  void for_each_box(index_t first_row, index_t row_count, index_t first_col, index_t col_count, Visit visit) {
    const bool at_once = is_direct() || row_count * col_count <= box_floats;
    const index_t down = at_once ? row_count : shape_.rows, across = at_once ? col_count : shape_.cols;
    for (index_t row = 0; row < row_count; row += down)
      for (index_t col = 0; col < col_count; col += across) {
        const index_t rows = row_count - row < down ? row_count - row : down;
        const index_t cols = col_count - col < across ? col_count - col : across;
        visit(first_row + row, first_col + col, read(first_row + row, rows, first_col + col, cols));
      }
  }

 private:
  const X& x_;
  box_shape shape_;
  std::optional<index_t> step_;
  line_array<element> memory_;
  index_t size_ = 0, stride_ = 0, row_ = 0, rows_ = 0, col_ = 0, cols_ = 0;
};

/// Calls visit(row, col, count, elements) for every piece of rows [first_row, first_row + row_count) of a source, where
/// a piece starts at a multiple of `step`; `elements` are its `count` elements (of element_of<X>), in the source's own
/// memory where it has them in order, `most` at a time, else in a tile. Needs step <= tile_floats.
template <tile_source X, class Visit>
void for_each_piece(const X& x, index_t first_row, index_t row_count, index_t step, Visit visit,
                    index_t most = tile_floats) {
  const index_t cols = x.cols(), end = first_row + row_count;
  if (cols == 0 || row_count == 0) return;
  if (reads_by_rows(x, first_row) || row_count == 1) {
    using element = element_of<X>;
    alignas(64) element tile[tile_floats];
    const index_t longest = x.direct(first_row, 0) != nullptr ? most : read_length(x.rows() * cols);
    const index_t length = even_piece_length(step, longest, cols);
    for (index_t row = first_row; row < end; ++row)
      for (index_t col = 0; col < cols; col += length) {
        const index_t count = cols - col < length ? cols - col : length;
        const element* here = x.direct(row, col);
        if (here == nullptr) x.read(row, 1, col, count, tile, length);
        visit(row, col, count, here != nullptr ? here : tile);
      }
  } else {
    box_reader<X>(x, box_shape::of(x, step)).for_each_row(first_row, row_count, visit);
  }
}

/// Elements of a row in memory from which on a piece of its own costs less than copying it to others.
inline constexpr index_t direct_floats = 512;

/// Calls visit(0, first, count, elements) for pieces of a source taken as one long row: `most` elements each where it
/// lies in memory, rows where long ones do, else whole rows where a tile holds them. Needs step <= tile_floats, and
/// cols() % step == 0 or, of a source that gives whole rows, a step of all elements, which come in one piece then.
template <tile_source X, class Visit>
void for_each_flat_piece(const X& x, index_t step, index_t most, Visit visit) {
  const index_t rows = x.rows(), cols = x.cols();
  if (rows == 0 || cols == 0) return;
  using element = element_of<X>;
  if (row_step(x) == cols || (rows == 1 && x.direct(0, 0) != nullptr)) {
    const element* elements = x.direct(0, 0);
    const index_t total = rows * cols, length = piece_length(step, most);
    for (index_t first = 0; first < total; first += length)
      visit(index_t{0}, first, total - first < length ? total - first : length, elements + first);
    return;
  }
  alignas(64) element tile[tile_floats];
  const bool by_rows = reads_by_rows(x, 0), from_memory = is_beyond_caches(rows * cols), at_once = step > cols;
  const bool long_rows = !at_once && row_step(x).has_value() && cols >= direct_floats;
  const index_t longest = !by_rows                  ? (from_memory ? 0 : tile_floats / box_rows)
                          : from_memory && !at_once ? read_length(rows * cols)
                                                    : tile_floats;
  if (!long_rows && cols <= longest) {
    const index_t floats = by_rows && !at_once ? read_length(rows * cols) : tile_floats;
    const index_t rows_at_once = std::max(floats / cols, index_t{1});
    for (index_t row = 0; row < rows; row += rows_at_once) {
      const index_t count = rows - row < rows_at_once ? rows - row : rows_at_once;
      x.read(row, count, 0, cols, tile, cols);
      visit(index_t{0}, row * cols, count * cols, static_cast<const element*>(tile));
    }
  } else {
    for_each_piece(
        x, 0, rows, step,
        [&](index_t row, index_t col, index_t count, const element* elements) {
          visit(index_t{0}, row * cols + col, count, elements);
        },
        most);
  }
}

}  // namespace qtensor::inline QTENSOR_ABI::ops
