// Assignments of a quantized matrix: decoded tile by tile in L1 and stored in the destination's own order.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

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

/// to(l, k) (=, +=, -=) element k of line l of a region, in both orders and with any strides. A tile of 16 lines is
/// decoded in L1; where the destination's lines run the other way it is transposed in registers and stored in whole
/// cache lines.
template <class View, class Order>
void assign_region(const region_source<View, Order>& from, const matrix_ref<float>& to, accumulate mode) {
  constexpr index_t most_lines = 16, most_elements = 256, floats_of_line = 16;
  const index_t lines = from.line_count, length = from.line_length;
  if (lines == 0 || length == 0) return;
  if (to.col_stride == 1 && mode == accumulate::assign) return from.lines(0, lines, 0, length, to.data, to.row_stride);

  alignas(64) float tile[most_lines * most_elements];
  alignas(64) float crossed[most_lines * most_elements];
  // The first tile ends where a cache line of the destination ends, so that the others fill whole ones.
  index_t first_lines = most_lines;
  if (to.row_stride == 1)
    first_lines -= static_cast<index_t>(reinterpret_cast<std::uintptr_t>(to.data) / sizeof(float)) % floats_of_line;
  for (index_t line = 0, some_lines = 0; line < lines; line += some_lines) {
    const index_t at_most = line == 0 ? first_lines : most_lines;
    some_lines = lines - line < at_most ? lines - line : at_most;
    for (index_t i = 0; i < length; i += most_elements) {
      const index_t n = length - i < most_elements ? length - i : most_elements;
      from.lines(line, some_lines, i, n, tile, most_elements);
      if (to.col_stride == 1) {
        for (index_t l = 0; l < some_lines; ++l) merge_run(tile + l * most_elements, n, &to(line + l, i), mode);
      } else if (to.row_stride == 1 && mode == accumulate::assign) {
        transpose_tile(tile, most_elements, some_lines, n, &to(line, i), to.col_stride);
      } else if (to.row_stride == 1) {
        transpose_tile(tile, most_elements, some_lines, n, crossed, most_lines);
        for (index_t k = 0; k < n; ++k) merge_run(crossed + k * most_lines, some_lines, &to(line, i + k), mode);
      } else {
        for (index_t l = 0; l < some_lines; ++l)
          for (index_t k = 0; k < n; ++k) {
            float& out = to(line + l, i + k);
            const float x = tile[l * most_elements + k];
            out = mode == accumulate::assign ? x : mode == accumulate::add ? out + x : out - x;
          }
      }
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
