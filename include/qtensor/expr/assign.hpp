// Assignments of a quantized matrix: decoded tile by tile in L1 and stored in the destination's own order.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <qtensor/expr/operand.hpp>
#include <qtensor/expr/product.hpp>

namespace qtensor::inline QTENSOR_ABI {

/// Eigen's word for the kind of assignment that AssignmentKind picks for a quantized source.
struct QuantizedToDense {};

namespace expr_detail {

/// What an assignment functor does, where a kernel does the same.
template <class Functor>
inline constexpr bool is_known_assignment = false;
template <class Functor>
inline constexpr accumulate assignment_mode = accumulate::assign;
template <>
inline constexpr bool is_known_assignment<Eigen::internal::assign_op<float, float>> = true;
template <>
inline constexpr bool is_known_assignment<Eigen::internal::add_assign_op<float, float>> = true;
template <>
inline constexpr accumulate assignment_mode<Eigen::internal::add_assign_op<float, float>> = accumulate::add;
template <>
inline constexpr bool is_known_assignment<Eigen::internal::sub_assign_op<float, float>> = true;
template <>
inline constexpr accumulate assignment_mode<Eigen::internal::sub_assign_op<float, float>> = accumulate::subtract;

/// to[k] (=, +=, -=) from[k] for k < n.
inline void merge_run(const float* from, index_t n, float* to, accumulate mode) {
  using run = Eigen::Array<float, Eigen::Dynamic, 1>;
  Eigen::Map<run> out(to, n);
  const Eigen::Map<const run> in(from, n);
  if (mode == accumulate::assign)
    out = in;
  else if (mode == accumulate::add)
    out += in;
  else
    out -= in;
}

/// to(l, k) (=, +=, -=) element k of line l of a region, in both orders and with any strides: straight to where it
/// belongs as dequantize_into does it, or by way of a tile in L1 that has the destination's order.
template <class View, class Order>
void assign_region(const region_source<View, Order>& from, const matrix_ref<float>& to, accumulate mode) {
  constexpr index_t most = 4096, side = 64;
  const index_t lines = from.line_count, length = from.line_length;
  if (lines == 0 || length == 0) return;
  const bool replaces = mode == accumulate::assign, across = to.row_stride == 1 && to.col_stride != 1;
  if (replaces && from.factor == 1.f && (across || to.col_stride == 1))
    return dequantize_rows(from.view, from.first_line, lines, from.first_element, length, to.data, to.row_stride,
                           to.col_stride);

  alignas(64) float tile[most];
  const index_t wide = std::min(length, across ? side : most), high = most / wide;
  for (index_t line = 0; line < lines; line += high)
    for (index_t i = 0; i < length; i += wide) {
      const index_t some_lines = std::min(high, lines - line), n = std::min(wide, length - i);
      float* const corner = &to(line, i);
      if (across) {
        from.columns(line, some_lines, i, n, tile, high);
        for (index_t k = 0; k < n; ++k) merge_run(tile + k * high, some_lines, corner + k * to.col_stride, mode);
      } else if (to.col_stride != 1) {
        from.lines(line, some_lines, i, n, tile, wide);
        for (index_t l = 0; l < some_lines; ++l)
          for (index_t k = 0; k < n; ++k) merge_run(tile + l * wide + k, 1, &to(line + l, i + k), mode);
      } else if (replaces) {
        from.lines(line, some_lines, i, n, corner, to.row_stride);
      } else {
        from.lines(line, some_lines, i, n, tile, wide);
        for (index_t l = 0; l < some_lines; ++l) merge_run(tile + l * wide, n, corner + l * to.row_stride, mode);
      }
    }
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
    if constexpr (ours::is_known_assignment<Functor> && ours::has_memory<Dst> &&
                  is_same<typename Dst::Scalar, float>::value) {
      QTENSOR_COUNT_KERNELS(assignments);
      const auto source = ours::source_of_operand(src);
      const auto memory = ours::writable_memory_of(dst);
      ours::assign_region(source, decltype(source)::reads_rows ? memory : memory.transposed(),
                          ours::assignment_mode<Functor>);
    } else {
      call_dense_assignment_loop(dst, src, functor);  // y.array() *= W and the like: ordinary Eigen
    }
  }
};

}  // namespace Eigen::internal
