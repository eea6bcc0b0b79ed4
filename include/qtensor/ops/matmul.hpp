// The float product: tiles of both operands are read, or dequantized, into a small workspace and multiplied there.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <qtensor/core/line_memory.hpp>
#include <qtensor/core/support.hpp>
#include <qtensor/ops/source.hpp>
#include <qtensor/simd/arch.hpp>
#include <qtensor/simd/gemm_float.hpp>
#include <type_traits>

namespace qtensor::inline QTENSOR_ABI {

template <tile_source X>
struct transposed_source;

namespace ops {

template <class X>
inline constexpr bool is_matrix_ref = false;
template <class T>
inline constexpr bool is_matrix_ref<matrix_ref<T>> = true;
template <class X>
inline constexpr bool is_transposed_source = false;
template <tile_source X>
inline constexpr bool is_transposed_source<transposed_source<X>> = true;

// The transpose of a source; its own tiles are read by rows and turned in registers.
template <class X>
struct turned {
  const X& source;
  static constexpr bool reads_rows = false;
  static constexpr bool reads_twice = X::reads_twice;

  index_t rows() const { return source.cols(); }
  index_t cols() const { return source.rows(); }
  const float* direct(index_t, index_t) const { return nullptr; }
  void read(index_t row, index_t rows, index_t col, index_t cols, float* tile, index_t stride) const {
    constexpr index_t most_rows = 16, most_cols = 128;
    alignas(64) float part[most_rows * most_cols];
    for (index_t c = 0; c < cols; c += most_rows)
      for (index_t r = 0; r < rows; r += most_cols) {
        const index_t part_rows = std::min(most_rows, cols - c), part_cols = std::min(most_cols, rows - r);
        source.read(col + c, part_rows, row + r, part_cols, part, most_cols);
        simd::transpose<simd::best_arch>(part, most_cols, part_rows, part_cols, tile + r * stride + c, stride);
      }
  }
};
template <class X>
inline constexpr bool is_turned = false;
template <class X>
inline constexpr bool is_turned<turned<X>> = true;

template <class X>
decltype(auto) by_rows(const X& x) {
  if constexpr (is_transposed_source<X>) {
    return turned<std::remove_cvref_t<decltype(x.source)>>{x.source};
  } else {
    return (x);
  }
}
template <class X>
decltype(auto) transpose_of(const X& x) {
  if constexpr (is_matrix_ref<X>) {
    return x.transposed();
  } else if constexpr (is_turned<X>) {
    return (x.source);
  } else {
    return turned<X>{x};
  }
}

// Whether columns, not rows, are contiguous.
template <class X>
bool stands_in_columns(const X& x) {
  if constexpr (is_matrix_ref<X>) {
    return x.row_stride == 1 && x.col_stride != 1;
  } else {
    return is_turned<X>;
  }
}

// x(row .. row + rows, k .. k + depth), where it is already or packed into `space` (rows * depth floats).
template <class X>
simd::broadcast_block broadcast_of(const X& x, index_t row, index_t rows, index_t k, index_t depth, float* space) {
  if constexpr (is_matrix_ref<X>) {
    if (x.col_stride == 1 || rows == 1) return {&x(row, k), x.row_stride, x.col_stride};
    for (index_t i = 0; i < depth; ++i)
      for (index_t r = 0; r < rows; ++r) space[i * rows + r] = x(row + r, k + i);
    return {space, 1, rows};
  } else if constexpr (is_turned<X>) {
    x.source.read(k, depth, row, rows, space, rows);
    return {space, 1, rows};
  } else {
    x.read(row, rows, k, depth, space, depth);
    return {space, depth, 1};
  }
}

struct placed {
  const float* data;
  index_t stride;
};

// Zeros behind `cols` numbers of each row, to `padded` of them.
inline void end_with_zeros(float* rows, index_t stride, index_t count, index_t cols, index_t padded) {
  for (index_t i = 0; cols < padded && i < count; ++i)
    std::fill(rows + i * stride + cols, rows + i * stride + padded, 0.f);
}

// w(k .. k + depth, col .. col + cols) by rows, where it is already (if few rows are going to use it) or packed into
// `space`, a panel apart; what is missing to whole batches is 0 then.
template <class Arch, class W>
placed panel_of(const W& w, index_t k, index_t depth, index_t col, index_t cols, bool few_uses, float* space) {
  constexpr index_t stride = simd::float_tile<Arch>::panel, step = simd::lanes<Arch>;
  if constexpr (is_matrix_ref<W>) {
    if (w.col_stride == 1) {
      if (few_uses && cols % step == 0) return {&w(k, col), w.row_stride};
      for (index_t i = 0; i < depth; ++i)
        std::memcpy(space + i * stride, &w(k + i, col), static_cast<std::size_t>(cols) * sizeof(float));
    } else if (w.row_stride == 1) {
      simd::transpose<Arch>(&w(k, col), w.col_stride, cols, depth, space, stride);
    } else {
      w.read(k, depth, col, cols, space, stride);
    }
  } else {
    w.read(k, depth, col, cols, space, stride);
  }
  end_with_zeros(space, stride, depth, cols, round_up(cols, step));
  return {space, stride};
}

// The same by columns, for a w that stands in columns: column c begins at data + c * stride. There are whole batches of
// them, `apart` floats from one to the next. Copied, because columns a power of two apart share a few lines of the
// first cache; meanwhile the next block is on its way.
template <class Arch, class W>
placed columns_of(const W& w, index_t k, index_t depth, index_t col, index_t cols, float* space, index_t apart) {
  constexpr index_t step = simd::lanes<Arch>, line = 16;
  const index_t padded = divide_up(cols, step) * step;
  if constexpr (is_matrix_ref<W>) {
    for (index_t c = 0; c < cols; ++c) {
      const float* from = &w(k, col + c);
      for (index_t i = 0; i < depth; i += line) simd::prefetch(from + depth + i);
      std::memcpy(space + c * apart, from, static_cast<std::size_t>(depth) * sizeof(float));
    }
  } else {
    w.source.read(col, cols, k, depth, space, apart);
  }
  std::fill(space + cols * apart, space + padded * apart, 0.f);
  return {space, apart};
}

// Floats on a cache line: a few on the stack, else one allocation.
class product_space {
 public:
  explicit product_space(index_t count) {
    if (count > few) more_ = qtensor::detail::line_memory(static_cast<std::size_t>(count) * sizeof(float));
  }
  float* data() { return more_.data() != nullptr ? reinterpret_cast<float*>(more_.data()) : here_; }

 private:
  static constexpr index_t few = 9728;  // what one row needs in `multiply`, up to 8 where the other matrix is in memory
  qtensor::detail::line_memory more_;
  alignas(64) float here_[few];
};

// What is packed at once: at most 123 KB of rows, 131 KB of columns and 246 KB of sums.
struct product_blocks {
  static constexpr index_t rows = 240, cols = 256, few_rows = 8;
  /// What is read in wide parts: columns at once, and rows of the other matrix for which it is, at most; of one whose
  /// columns lie in memory fewer rows, and a depth that repays them.
  static constexpr index_t wide_cols = 1024, wide_rows = 48, wide_rows_in_columns = 31, least_depth_in_columns = 128;
  /// Its rows at once: for one row of the other matrix no more than the stack has room for.
  static constexpr index_t wide_depth(index_t other_rows, index_t width) {
    return std::clamp((other_rows == 1 ? index_t{8192} : index_t{16384}) / width, index_t{8}, index_t{64});
  }
  static constexpr index_t rows_across = 4;
  /// Floats between rows of a block of so many columns, or between columns of such a depth: no power of two.
  static constexpr index_t apart(index_t floats) { return floats + 16; }
  static constexpr index_t depth_across = cols;
};
// Whether a source reads wide parts of a few rows faster than narrow ones of many, what has to be computed by rows, and
// as many rows as it is multiplied by like that: with more of them narrow parts are worth their time.
template <class W>
bool reads_wide(index_t rows) {
  return !is_matrix_ref<W> && !is_turned<W> && rows <= product_blocks::wide_rows;
}

// y = x * w, columns of w in lanes. All extents >= 1.
template <class Arch, class Step, class X, class W>
void multiply(const X& x, const W& w, const matrix_ref<float>& y, float alpha, accumulate mode) {
  using tile = simd::float_tile<Arch>;
  const index_t rows = x.rows(), depth = x.cols(), cols = w.cols();
  const bool few_rows = rows <= product_blocks::few_rows, wide = reads_wide<W>(rows);
  const index_t most_cols = wide ? product_blocks::wide_cols : few_rows ? tile::panel : product_blocks::cols;
  const index_t col_block = std::min(round_up(cols, tile::panel), most_cols);
  const index_t most_depth = wide ? product_blocks::wide_depth(rows, col_block) : tile::depth;
  const index_t row_block = std::min(rows, product_blocks::rows), depth_block = std::min(depth, most_depth);
  const bool one_pass = depth <= most_depth;  // then the sums of a tile are complete at once

  const index_t sums_size = one_pass ? tile::max_rows * tile::panel : row_block * col_block;
  const index_t wide_step = product_blocks::apart(col_block);
  const index_t panels_size = depth_block * (wide ? wide_step : col_block);
  product_space space(sums_size + panels_size + row_block * depth_block);
  float* const all_sums = space.data();
  float* const panels = all_sums + sums_size;
  float* const packed = panels + panels_size;

  for (index_t col = 0; col < cols; col += col_block)
    for (index_t row = 0; row < rows; row += row_block)
      for (index_t k = 0; k < depth; k += depth_block) {
        const index_t some_rows = std::min(row_block, rows - row), some_depth = std::min(depth_block, depth - k);
        const simd::broadcast_block block = broadcast_of(x, row, some_rows, k, some_depth, packed);
        const index_t block_cols = std::min(col_block, cols - col);
        if (wide) {
          w.read(k, some_depth, col, block_cols, panels, wide_step);
          end_with_zeros(panels, wide_step, some_depth, block_cols, round_up(block_cols, simd::lanes<Arch>));
        }
        for (index_t c = 0; c < block_cols; c += tile::panel) {
          const index_t some_cols = std::min(tile::panel, block_cols - c);
          const placed panel =
              wide ? placed{panels + c, wide_step}
                   : panel_of<Arch>(w, k, some_depth, col + c, some_cols, few_rows, panels + c * depth_block);
          for (index_t r = 0, done = 0; r < some_rows; r += done) {
            done = tile::rows(some_rows - r);
            float* const sums = one_pass ? all_sums : all_sums + c * row_block + r * tile::panel;
            const simd::broadcast_block part = {block.data + r * block.row_stride, block.row_stride,
                                                block.depth_stride};
            simd::fma_tile<Arch, Step>(panel.data, panel.stride, divide_up(some_cols, simd::lanes<Arch>), part, done,
                                       some_depth, sums, k == 0);
            if (k + some_depth == depth)
              simd::finish_tile<Arch>(sums, done, some_cols, &y(row + r, col + c), y.row_stride, y.col_stride, alpha,
                                      mode);
          }
        }
      }
}

// The same for at most rows_across rows and a w that stands in columns, which are then not packed.
template <class Arch, class Step, class X, class W>
void multiply_across(const X& x, const W& w, const matrix_ref<float>& y, float alpha, accumulate mode) {
  using tile = simd::float_tile<Arch>;
  constexpr index_t most_cols = 2 * simd::lanes<Arch>;
  const index_t rows = x.rows(), depth = x.cols(), cols = w.cols();
  const index_t depth_block = std::min(depth, product_blocks::depth_across);
  constexpr index_t apart = product_blocks::apart(product_blocks::depth_across);
  product_space space(most_cols * apart + rows * depth_block);
  float* const packed = space.data() + most_cols * apart;
  alignas(64) float sums[product_blocks::rows_across * tile::panel];

  for (index_t col = 0; col < cols; col += most_cols) {
    const index_t some_cols = std::min(most_cols, cols - col), vectors = divide_up(some_cols, simd::lanes<Arch>);
    for (index_t k = 0; k < depth; k += depth_block) {
      const index_t some_depth = std::min(depth_block, depth - k);
      const simd::broadcast_block block = broadcast_of(x, 0, rows, k, some_depth, packed);
      const placed columns = columns_of<Arch>(w, k, some_depth, col, some_cols, space.data(), apart);
      for (index_t r = 0, done = 0; r < rows; r += done) {
        done = rows - r >= 4 ? 4 : rows - r >= 2 ? 2 : 1;
        const simd::broadcast_block part = {block.data + r * block.row_stride, block.row_stride, block.depth_stride};
        simd::fma_tile_across<Arch, Step>(columns.data, columns.stride, vectors, part, done, some_depth,
                                          sums + r * tile::panel, k == 0);
      }
    }
    simd::finish_tile<Arch>(sums, rows, some_cols, &y(0, col), y.row_stride, y.col_stride, alpha, mode);
  }
}

template <class Arch, class Step, class X, class W>
void multiply_either(const X& x, const W& w, const matrix_ref<float>& y, float alpha, accumulate mode) {
  if constexpr (is_matrix_ref<W> || is_turned<W>) {
    if (x.rows() <= product_blocks::rows_across && stands_in_columns(w)) {
      multiply_across<Arch, Step>(x, w, y, alpha, mode);
      return;
    }
  }
  multiply<Arch, Step>(x, w, y, alpha, mode);
}

}  // namespace ops

/// y = alpha * (a b), y += alpha * (a b) or y -= alpha * (a b) for a of M x K, b of K x N and y of M x N.
///
/// Element (m, n) of a b is reference::dot(a, b, m, n, K): one chain of fma over ascending k from +0, the same bits on
/// every architecture for every shape and stride; only the sign and payload of a NaN are open. (With simd::rounded_step
/// a term takes two roundings, RN(sum + RN(a b)), with simd::narrow_step these go to f16 or bf16.) It is then
/// multiplied by alpha (one rounding; left out when alpha is 1) and assigned, added or subtracted (one rounding). With
/// K = 0, assign writes +0 and the others leave y as it is, whatever alpha. Extents may be 0, strides anything; y
/// overlaps neither a nor b.
///
/// Reads an operand once per 256 columns or 240 rows of y; one of at most 8 rows (or columns) more often. Memory: at
/// most 500 KB, on the stack up to 38 KB and else in one allocation. Throws qtensor::error where the sizes do not
/// agree, before anything is read, std::bad_alloc, and what the sources throw.
template <simd::usable_arch Arch = simd::best_arch, class Step = simd::fused_step, tile_source A, tile_source B>
void matmul_into(const A& a, const B& b, matrix_ref<float> y, float alpha = 1.f, accumulate mode = accumulate::assign) {
  require(a.cols() == b.rows() && y.rows() == a.rows() && y.cols() == b.cols(), "a product of ", a.rows(), "x",
          a.cols(), " and ", b.rows(), "x", b.cols(), " is written to ", y.rows(), "x", y.cols(),
          "; sizes must agree.");
  if (y.rows() == 0 || y.cols() == 0) return;
  if (a.cols() == 0) {
    if (mode != accumulate::assign) return;
    for (index_t m = 0; m < y.rows(); ++m)
      for (index_t n = 0; n < y.cols(); ++n) y(m, n) = 0.f;
    return;
  }
  const auto& left = ops::by_rows(a);
  const auto& right = ops::by_rows(b);
  // Columns fill the lanes. Where there are few, or a and y stand in columns, rows do: the transposed product, by the
  // same chains.
  const bool narrow = y.cols() < simd::lanes<Arch> && y.rows() > y.cols();
  const bool wide = ops::reads_wide<std::remove_cvref_t<decltype(right)>>(y.rows()) &&
                    y.rows() <= ops::product_blocks::wide_rows_in_columns &&
                    a.cols() >= ops::product_blocks::least_depth_in_columns;
  const bool in_columns = y.rows() >= simd::lanes<Arch> && y.row_stride == 1 && ops::stands_in_columns(left) && !wide;
  if (narrow || in_columns) {
    ops::multiply_either<Arch, Step>(ops::transpose_of(right), ops::transpose_of(left), y.transposed(), alpha, mode);
  } else {
    ops::multiply_either<Arch, Step>(left, right, y, alpha, mode);
  }
}

}  // namespace qtensor::inline QTENSOR_ABI
