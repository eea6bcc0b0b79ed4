// Sources: whatever can fill a tile with floats. Everything that is quantized or multiplied comes in through one.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <concepts>
#include <optional>
#include <qtensor/reference/quantize.hpp>
#include <qtensor/simd/memory.hpp>

namespace qtensor::inline QTENSOR_ABI {

namespace ops {

template <class X>
struct element_format {
  using type = f32;
};
template <class X>
requires requires { typename X::element_format; }
struct element_format<X> {
  using type = typename X::element_format;
};

}  // namespace ops

/// What the elements of a source are in memory, f32, bf16 or f16: X::element_format, f32 where it names none.
template <class X>
using element_format_of = typename ops::element_format<X>::type;
/// Their type: float, or the 16 bits of the others.
template <class X>
using element_of = storage_t<element_format_of<X>>;

/// A matrix of floats as a kernel wants to see it: rows that will be contiguous in the destination. For a tensor of
/// higher rank the leading axes are flattened into rows; for a col_major tensor rows are its columns.
///   rows(), cols()                              its size
///   read(row, rows, col, cols, tile, stride)    writes element (row + r, col + c) to tile[r * stride + c]: floats, and
///                                               where elements have 16 bits also a tile of those
///   direct(row, col)                            those elements of one row in memory already, or nullptr
///   reads_rows                                  one row at a time is as cheap as a tile of rows (same storage order)
///   reads_twice                                 cheap enough to be read a second time instead of being kept
///   row_step()                                  optional: where every row is direct, the elements from one to the next
///   columns()                                   optional: a std::optional of the rows that its columns are in memory
///   read_columns(row, rows, col, cols, tile, stride, asks)
///                                               optional: read, but to tile[c * stride + r], where its own order makes
///                                               that cheap; `asks`: for what lies behind, if it comes from memory
///   box_requests(row, rows, col, cols)          optional: an array of simd::run_requests for what read reads of a box,
///                                               a row's worth at a time
///   column_requests(row, rows, col)             optional: an array of simd::run_requests for what read_columns reads,
///                                               from a column on
///   mixes_orders                                optional: tiles come from rows and from columns of memory
///   is_one_column                               optional: cols() is 1
///   element_format                              optional: what elements are in memory, if not f32
///   reads_by_rows(row)                          optional: whether that row is read as cheaply alone as in a tile, if
///                                               neither reads_rows nor direct says so
template <class X>
concept tile_source = requires(const X x, index_t i, float* tile, element_of<X>* elements) {
  { x.rows() } -> std::convertible_to<index_t>;
  { x.cols() } -> std::convertible_to<index_t>;
  x.read(i, i, i, i, tile, i);
  x.read(i, i, i, i, elements, i);
  { x.direct(i, i) } -> std::convertible_to<const element_of<X>*>;
  { X::reads_rows } -> std::convertible_to<bool>;
  { X::reads_twice } -> std::convertible_to<bool>;
};

/// Floats in memory with any strides; `matrix_ref<float>` is also what products write to.
template <class T>
struct matrix_ref {
  T* data;
  index_t row_count, col_count, row_stride, col_stride;
  static constexpr bool reads_rows = false;  // tiles of rows, where it is not direct
  static constexpr bool reads_twice = true;

  index_t rows() const { return row_count; }
  index_t cols() const { return col_count; }
  T& operator()(index_t row, index_t col) const { return data[row * row_stride + col * col_stride]; }
  matrix_ref transposed() const { return {data, col_count, row_count, col_stride, row_stride}; }
  const T* direct(index_t row, index_t col) const { return col_stride == 1 ? data + row * row_stride + col : nullptr; }
  std::optional<index_t> row_step() const { return col_stride == 1 ? std::optional(row_stride) : std::nullopt; }
  std::optional<matrix_ref<const T>> columns() const {
    if (row_stride != 1) return std::nullopt;
    return matrix_ref<const T>{data, col_count, row_count, col_stride, 1};
  }
  void read(index_t row, index_t rows, index_t col, index_t cols, float* tile, index_t stride) const {
    if constexpr (std::is_same_v<std::remove_const_t<T>, float>)
      if (row_stride == 1 && col_stride != 1)
        return simd::transpose(data + row + col * col_stride, col_stride, rows, cols, tile, stride);
    for (index_t r = 0; r < rows; ++r)
      for (index_t c = 0; c < cols; ++c) tile[r * stride + c] = (*this)(row + r, col + c);
  }
};

/// Floats of a format in memory, any rank, any strides (in elements), to be quantized into a tensor of the same
/// extents.
template <simd::number_format F, tensor_extents Extents>
struct memory_source {
  const storage_t<F>* data;
  Extents extents;
  typename Extents::array strides;

  /// One number, at an index of the memory's own axes.
  float number(const typename Extents::array& index) const {
    const storage_t<F>* at = data;
    for (std::size_t axis = 0; axis < index.size(); ++axis) at += index[axis] * strides[axis];
    return simd::number<simd::source_of<F>>(*at);
  }
  /// As the rows of a tensor stored in this order.
  template <storage_order Order>
  struct in_order {
    static constexpr std::size_t last = static_cast<std::size_t>(Extents::rank) - 1;
    using element_format = F;
    static constexpr bool reads_rows = false;  // tiles of rows, where it is not direct
    static constexpr bool reads_twice = true;
    const storage_t<F>* data;
    typename Extents::array sizes, strides;  // storage order

    explicit in_order(const memory_source& source)
        : data(source.data),
          sizes(reordered<Order>(source.extents.to_array())),
          strides(reordered<Order>(source.strides)) {}
    /// Elements [first, first + n) of an axis in storage order.
    in_order part(std::size_t axis, index_t first, index_t n) const {
      in_order some = *this;
      some.data += first * strides[axis], some.sizes[axis] = n;
      return some;
    }
    /// The same elements along other axes.
    in_order along(const typename Extents::array& other_sizes, const typename Extents::array& other_strides) const {
      in_order other = *this;
      other.sizes = other_sizes, other.strides = other_strides;
      return other;
    }
    index_t rows() const {
      index_t product = 1;
      for (std::size_t axis = 0; axis < last; ++axis) product *= sizes[axis];
      return product;
    }
    index_t cols() const { return sizes[last]; }
    const storage_t<F>* element(index_t row, index_t col) const {
      const storage_t<F>* at = data + col * strides[last];
      for (std::size_t axis = last; axis > 0; --axis) {
        at += row % sizes[axis - 1] * strides[axis - 1];
        row /= sizes[axis - 1];
      }
      return at;
    }
    const storage_t<F>* direct(index_t row, index_t col) const {
      return strides[last] == 1 ? element(row, col) : nullptr;
    }
    std::optional<index_t> row_step() const {
      if (strides[last] != 1) return std::nullopt;
      for (std::size_t axis = 1; axis < last; ++axis)
        if (strides[axis - 1] != strides[axis] * sizes[axis]) return std::nullopt;
      return last == 0 ? sizes[0] : strides[last - (last > 0)];
    }
    std::optional<matrix_ref<const storage_t<F>>> columns() const {
      if constexpr (last == 1)
        if (strides[0] == 1) return matrix_ref<const storage_t<F>>{data, sizes[1], sizes[0], strides[1], 1};
      return std::nullopt;
    }
    /// Elements as they are.
    void read(index_t row, index_t rows, index_t col, index_t cols, storage_t<F>* tile, index_t stride) const {
      if constexpr (last > 0)
        if (strides[last - 1] == 1 && strides[last] != 1) {  // rows are columns of memory, up to the end of their axis
          for (index_t r = 0, n; r < rows; r += n) {
            n = std::min(rows - r, sizes[last - 1] - (row + r) % sizes[last - 1]);
            simd::transpose(element(row + r, col), strides[last], n, cols, tile + r * stride, stride);
          }
          return;
        }
      for (index_t r = 0; r < rows; ++r) {
        const storage_t<F>* from = element(row + r, col);
        if (strides[last] == 1)
          std::copy_n(from, cols, tile + r * stride);
        else
          for (index_t c = 0; c < cols; ++c) tile[r * stride + c] = from[c * strides[last]];
      }
    }
    /// 16 bits as floats: in place where they lie in order, else by way of a small tile.
    void read(index_t row, index_t rows, index_t col, index_t cols, float* tile, index_t stride) const
        requires(!std::same_as<F, f32>) {
      constexpr index_t down = 16, across = 64;
      if (strides[last] == 1) {
        for (index_t r = 0; r < rows; ++r) simd::widen_floats<F>(element(row + r, col), cols, tile + r * stride);
        return;
      }
      alignas(64) storage_t<F> kept[down * across];
      for (index_t r = 0; r < rows; r += down)
        for (index_t c = 0; c < cols; c += across) {
          const index_t some_rows = std::min(down, rows - r), some_cols = std::min(across, cols - c);
          read(row + r, some_rows, col + c, some_cols, kept, across);
          for (index_t k = 0; k < some_rows; ++k)
            simd::widen_floats<F>(kept + k * across, some_cols, tile + (r + k) * stride + c);
        }
    }
  };
};

namespace ops {

/// Whether one row at a time is as cheap as a tile of rows.
template <tile_source X>
bool reads_by_rows(const X& x, index_t row) {
  if constexpr (requires { x.reads_by_rows(row); })
    if (x.reads_by_rows(row)) return true;
  return X::reads_rows || x.direct(row, 0) != nullptr;
}

}  // namespace ops

/// A source of 16 bits as one of floats, for kernels that take nothing else.
template <tile_source X>
struct widened_source {
  const X& source;
  static constexpr bool reads_rows = X::reads_rows;
  static constexpr bool reads_twice = X::reads_twice;

  index_t rows() const { return source.rows(); }
  index_t cols() const { return source.cols(); }
  const float* direct(index_t, index_t) const { return nullptr; }
  bool reads_by_rows(index_t row) const { return ops::reads_by_rows(source, row); }
  void read(index_t row, index_t rows, index_t col, index_t cols, float* tile, index_t stride) const {
    source.read(row, rows, col, cols, tile, stride);
  }
};

/// A source of floats: x itself where it is one, else one that refers to x.
template <tile_source X>
decltype(auto) as_floats(const X& x) {
  if constexpr (std::same_as<element_format_of<X>, f32>)
    return (x);
  else
    return widened_source<X>{x};
}

namespace ops {

/// Whether tiles of a source come from rows and from columns of memory.
template <tile_source X>
inline constexpr bool mixes_orders = requires {
  requires X::mixes_orders;
};

/// Whether a source of floats that does not lie in memory is read fastest column by column.
template <class X>
concept reads_columns = tile_source<X> && std::same_as<element_format_of<X>, f32> &&
    requires(const X& x, index_t i, float* tile) {
  x.read_columns(i, i, i, i, tile, i, true);
};

/// Whether the type of a source says that it has one column.
template <tile_source X>
inline constexpr bool is_one_column = requires {
  requires X::is_one_column;
};

/// The columns of such a source, which must outlive it, as rows.
template <tile_source X>
class source_columns {
 public:
  static constexpr bool reads_rows = true;
  static constexpr bool reads_twice = X::reads_twice;

  explicit source_columns(const X& x) : x_(&x) {}
  index_t rows() const { return x_->cols(); }
  index_t cols() const { return x_->rows(); }
  static const float* direct(index_t, index_t) { return nullptr; }
  /// `asks`: for what lies behind them, where it comes from memory.
  void read(index_t row, index_t rows, index_t col, index_t cols, float* tile, index_t stride, bool asks = true) const {
    x_->read_columns(col, cols, row, rows, tile, stride, asks);
  }
  /// What asks for memory that is read for columns [col, col + cols) of rows from `row` on.
  auto requests(index_t row, index_t col, index_t cols) const {
    if constexpr (requires { x_->column_requests(col, cols, row); })
      return x_->column_requests(col, cols, row);
    else
      return std::array<simd::run_requests, 0>{};
  }

 private:
  const X* x_;
};

/// Some rows and columns of a source, which must outlive it.
template <tile_source X>
class source_part {
 public:
  using element_format = element_format_of<X>;
  static constexpr bool reads_rows = X::reads_rows;
  static constexpr bool reads_twice = X::reads_twice;
  static constexpr bool mixes_orders = ops::mixes_orders<X>;

  source_part(const X& x, index_t row, index_t rows, index_t col, index_t cols)
      : x_(&x), row_(row), rows_(rows), col_(col), cols_(cols) {}
  index_t rows() const { return rows_; }
  index_t cols() const { return cols_; }
  const element_of<X>* direct(index_t row, index_t col) const { return x_->direct(row_ + row, col_ + col); }
  bool reads_by_rows(index_t row) const { return ops::reads_by_rows(*x_, row_ + row); }
  auto row_step() const requires requires(const X& x) { x.row_step(); }
  { return x_->row_step(); }
  auto columns() const requires requires(const X& x) { x.columns(); }
  {
    auto all = x_->columns();
    if (all) {
      all->data = &(*all)(col_, row_);
      all->row_count = cols_, all->col_count = rows_;
    }
    return all;
  }
  template <class T>
  void read(index_t row, index_t rows, index_t col, index_t cols, T* tile, index_t stride) const {
    x_->read(row_ + row, rows, col_ + col, cols, tile, stride);
  }
  void read_columns(index_t row, index_t rows, index_t col, index_t cols, float* tile, index_t stride,
                    bool asks) const requires reads_columns<X> {
    x_->read_columns(row_ + row, rows, col_ + col, cols, tile, stride, asks);
  }
  auto box_requests(index_t row, index_t rows, index_t col, index_t cols) const requires requires(const X& x) {
    x.box_requests(row, rows, col, cols);
  }
  { return x_->box_requests(row_ + row, rows, col_ + col, cols); }
  auto column_requests(index_t row, index_t rows, index_t col) const requires requires(const X& x) {
    x.column_requests(row, rows, col);
  }
  { return x_->column_requests(row_ + row, rows, col_ + col); }

 private:
  const X* x_;
  index_t row_, rows_, col_, cols_;
};

/// Whether part_of gives parts along an axis, in storage order, of a source for tensors of this rank: memory is cut
/// along all, others along rows and columns.
template <int Axis, int Rank, tile_source X>
inline constexpr bool has_parts = Axis == 0 || Axis == Rank - 1 || requires(const X& x) {
  x.part(std::size_t{}, index_t{}, index_t{});
};

/// Elements [first, first + n) of that axis, of which each has `rows` rows where it is the outermost of several.
template <int Axis, int Rank, tile_source X>
requires(has_parts<Axis, Rank, X>) auto part_of(const X& x, index_t first, index_t n, index_t rows) {
  if constexpr (requires { x.part(std::size_t{}, first, n); })
    return x.part(Axis, first, n);
  else if constexpr (Axis == Rank - 1)
    return source_part<X>(x, 0, x.rows(), first, n);
  else
    return source_part<X>(x, first * rows, n * rows, 0, x.cols());
}

/// Throws where there are elements and `data` is null.
inline void check_source_memory(const void* data, index_t size) {
  require(data != nullptr || size == 0, "the source is null, but has ", size, " elements.");
}

}  // namespace ops

/// Memory as a source: `source(ptr, extents(2, 3, 64, 96))` of floats in row-major order, `source<bf16>(ptr, ...)` and
/// `source<f16>(ptr, ...)` of their 16 bits, with strides in elements (one an axis, any sign) where they are not dense.
/// Throws where there are elements and `data` is null.
template <format F = f32, tensor_extents Extents>
memory_source<F, Extents> source(const storage_t<F>* data, const Extents& extents,
                                 const typename Extents::array& strides) {
  ops::check_source_memory(data, extents.size());
  return {data, extents, strides};
}
template <format F = f32, tensor_extents Extents>
memory_source<F, Extents> source(const storage_t<F>* data, const Extents& extents) {
  return source<F>(data, extents, dense_strides(extents.to_array()));
}
template <class... Rest>
void source(const double*, const Rest&...) {
  static_assert(
      sizeof...(Rest) > 99,
      "qtensor: sources are f32, bf16 or f16; convert doubles yourself, so that the rounding is your choice.");
}

}  // namespace qtensor::inline QTENSOR_ABI
