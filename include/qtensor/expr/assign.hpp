// Assignments of a quantized matrix: decoded tile by tile in L1 and stored in the destination's own order.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <qtensor/expr/assign_parts.hpp>
#include <qtensor/expr/boxes.hpp>
#include <qtensor/expr/operand.hpp>
#include <qtensor/expr/product.hpp>

namespace qtensor::inline QTENSOR_ABI {

/// Eigen's word for the kind of assignment that AssignmentKind picks for a quantized source.
struct QuantizedToDense {};

namespace expr_detail {

/// box = numbers times a number.
template <class Box, class Numbers, class Functor>
void assign_multiple(Box& box, const Numbers& numbers, const multiple& by, const Functor& how) {
  const auto products = numbers * by.factor;
  if (by.is_negated)
    Eigen::internal::call_dense_assignment_loop(box, products.unaryExpr(flipped_sign()), how);
  else
    Eigen::internal::call_dense_assignment_loop(box, products, how);
}

/// to(l, k) (=, +=, ...) element k of line l of a region, for lines that lie side by side: parts of columns are decoded
/// down in L1. Returns for how many lines: as many as kernels take in whole steps, or none. `far`: all is in memory.
template <class View, class Order, class Functor>
index_t assign_down(const region_source<View, Order>& from, const matrix_ref<float>& to, bool far,
                    const Functor& functor) {
  using down_type = ops::down_decoder<f32, View>;
  constexpr index_t high = down_type::most_rows;
  constexpr bool replaces = std::is_same_v<Functor, plain_assignment>;
  const down_type down(from.view);
  const auto start = ops::row_index(from.first_line, from.view.storage_extents());
  const index_t whole = from.line_count / down.kernel_rows * down.kernel_rows, length = from.line_length;
  if (whole == 0 || !down.takes_from(start, from.first_element)) return 0;
  alignas(64) float tile[down_type::most_cols * high];
  assign_boxes(from.line_count * length, functor, [&](const auto& how) {
    const auto assign = [&](index_t row, index_t col, index_t height, index_t width, const auto& decode) {
      decode(tile, high, simd::traffic{});
      writable_box box(&to(row, col), width, height, Eigen::OuterStride<>(to.col_stride));
      const box_map numbers(tile, width, height, Eigen::OuterStride<>(high));
      if constexpr (replaces) {
        assign_multiple(box, numbers, from.by, how);
      } else {  // products are rounded before they meet what is there
        from.scale(tile, width, height, high);
        Eigen::internal::call_dense_assignment_loop(box, numbers, how);
        const index_t next = col + width, size = sizeof(float);
        if (far && next < length)
          simd::fetch_runs(&to(row, next), to.col_stride * size, std::min(width, length - next), height * size);
      }
    };
    down.for_each_part(start, whole, from.first_element, length, far, assign);
  });
  return whole;
}

/// to(l, k) (=, +=, ...) element k of line l of a region, in both orders and with any strides: straight to where it
/// belongs as dequantize_into does it, or by way of a tile in L1 that has the destination's order.
template <class View, class Order, class Functor>
void assign_region(const region_source<View, Order>& from, const matrix_ref<float>& to, const Functor& functor) {
  using Eigen::internal::call_dense_assignment_loop;
  constexpr index_t most = 8192, side = 64;
  constexpr bool replaces = std::is_same_v<Functor, plain_assignment>;
  const index_t lines = from.line_count, length = from.line_length;
  if (lines == 0 || length == 0) return;
  if (lines > 1 && ops::with_column_as_row(from.view, [&](const auto& row) {
        using row_type = std::remove_cvref_t<decltype(row)>;
        assign_region(region_source<row_type, Order>{row, 0, from.first_line, 1, lines, from.by}, to.transposed(),
                      functor);
      }))
    return;
  const bool across = to.row_stride == 1 && to.col_stride != 1, along = to.col_stride == 1;
  if (replaces && from.by.is_plain() && (across || along))
    return dequantize_rows(from.view, from.first_line, lines, from.first_element, length, to.data, to.row_stride,
                           to.col_stride);

  const bool far = lines * length >= ops::streaming_floats;
  const index_t done = across ? assign_down(from, to, far, functor) : 0;
  // Boxes of whole lines along; across, of whole columns where lines are few, else of about as many as elements.
  const index_t fit = across ? most / std::clamp(lines - done, index_t{1}, side) / side * side : most;
  const index_t wide = std::min(length, fit), high = across ? std::min(lines - done, side) : most / wide;
  const auto for_each_box = [&](auto visit) {
    for (index_t line = done; line < lines; line += high)
      for (index_t i = 0; i < length; i += wide)
        visit(line, std::min(high, lines - line), i, std::min(wide, length - i));
  };
  if (replaces && along && !far)  // multiplied where they are
    return for_each_box([&](index_t line, index_t count, index_t i, index_t n) {
      from.lines(line, count, i, n, &to(line, i), to.row_stride);
    });

  alignas(64) float tile[most];
  const bool is_dense = across && high == lines && to.col_stride == lines;  // one column after the other
  const auto read = [&](const auto& region, index_t line, index_t count, index_t i, index_t n) {
    if (across) {
      region.columns(line, count, i, n, tile, high);
      return map_of_box<box_map>(tile, n, count, high, is_dense);
    }
    region.lines(line, count, i, n, tile, wide);
    return map_of_box<box_map>(tile, count, n, wide, false);
  };
  if (!across && !along)
    return for_each_box([&](index_t line, index_t count, index_t i, index_t n) {
      using strides = Eigen::Stride<Eigen::Dynamic, Eigen::Dynamic>;
      Eigen::Map<typename box_map::PlainObject, Eigen::Unaligned, strides> box(&to(line, i), count, n,
                                                                               strides(to.row_stride, to.col_stride));
      call_dense_assignment_loop(box, read(from, line, count, i, n), functor);
    });
  assign_boxes(lines * length, functor, [&](const auto& how) {
    for_each_box([&](index_t line, index_t count, index_t i, index_t n) {
      auto box = across ? map_of_box<writable_box>(&to(line, i), n, count, to.col_stride, is_dense)
                        : map_of_box<writable_box>(&to(line, i), count, n, to.row_stride, false);
      if constexpr (replaces)
        assign_multiple(box, read(from.plain(), line, count, i, n), from.by, how);
      else  // products are rounded before they meet what is there
        call_dense_assignment_loop(box, read(from, line, count, i, n), how);
    });
  });
}

template <class Dst>
inline constexpr bool is_resizable = std::is_base_of_v<Eigen::PlainObjectBase<Dst>, Dst> &&
                                     (Dst::RowsAtCompileTime == Eigen::Dynamic ||
                                      Dst::ColsAtCompileTime == Eigen::Dynamic);
template <class Plain>
inline constexpr bool is_resizable<Eigen::Transpose<Plain>> = is_resizable<Plain>;  // Eigen's `column = row`

/// Makes room for an assignment, or throws where the destination has a size of its own.
template <class Dst, class Src>
void fit(Dst& dst, const Src& src) {
  if (dst.rows() == src.rows() && dst.cols() == src.cols()) return;
  const auto fits = [](int fixed, Eigen::Index size) { return fixed == Eigen::Dynamic || fixed == size; };
  require(is_resizable<Dst> && fits(Dst::RowsAtCompileTime, src.rows()) && fits(Dst::ColsAtCompileTime, src.cols()),
          "a quantized matrix of ", src.rows(), "x", src.cols(), " is assigned to a destination of ", dst.rows(), "x",
          dst.cols(), ", which cannot change its size.");
  if constexpr (is_resizable<Dst>) dst.resize(src.rows(), src.cols());
}

}  // namespace expr_detail

}  // namespace qtensor::inline QTENSOR_ABI

namespace Eigen::internal {

template <>
struct AssignmentKind<DenseShape, qtensor::QuantizedShape> {
  using Kind = qtensor::QuantizedToDense;
};

template <class Dst, class Src, class Functor>
struct Assignment<Dst, Src, Functor, qtensor::QuantizedToDense> {
  static void run(Dst& dst, const Src& src, const Functor& functor) {
    namespace ours = qtensor::expr_detail;
    if constexpr (is_same<Functor, assign_op<typename Dst::Scalar, float>>::value) ours::fit(dst, src);
    qtensor::require(dst.rows() == src.rows() && dst.cols() == src.cols(), "a quantized matrix of ", src.rows(), "x",
                     src.cols(), " does not fit a destination of ", dst.rows(), "x", dst.cols(), ".");
    if constexpr (!qtensor::folded_elements<Src>) {
      Assignment<Dst, Src, Functor, Dense2Dense>::run(dst, src, functor);
    } else if constexpr (ours::has_memory<Dst> && is_same<typename Dst::Scalar, float>::value) {
      QTENSOR_COUNT_KERNELS(assignments);
      const auto source = ours::source_of_operand(src);
      const auto memory = ours::writable_memory_of(dst);
      ours::assign_region(source, decltype(source)::reads_rows ? memory : memory.transposed(), functor);
    } else {
      call_dense_assignment_loop(dst, src, functor);  // to other numbers: ordinary Eigen
    }
  }
};

}  // namespace Eigen::internal
