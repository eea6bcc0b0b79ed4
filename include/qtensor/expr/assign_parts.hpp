// Assignments of sums with quantized matrices in them: box by box, decoded in L1, past the caches if there is much.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <qtensor/expr/mixed_source.hpp>
#include <type_traits>

namespace qtensor::inline QTENSOR_ABI::expr_detail {

/// The order of the tiles of which a dense destination is made.
template <class Dst>
using order_of_dense = std::conditional_t<Dst::IsRowMajor, row_major, col_major>;

/// Expressions in which a quantized matrix stands.
template <class Xpr>
inline constexpr bool reads_codes = folded_elements<Xpr>;
template <class Xpr>
inline constexpr bool reads_codes<const Xpr> = reads_codes<Xpr>;
template <class Op, class Xpr>
inline constexpr bool reads_codes<Eigen::CwiseUnaryOp<Op, Xpr>> = reads_codes<Xpr>;
template <class Op, class Left, class Right>
inline constexpr bool reads_codes<Eigen::CwiseBinaryOp<Op, Left, Right>> = reads_codes<Left> || reads_codes<Right>;

/// Expressions that read codes, but no product, and destinations in memory whose elements follow each other.
template <class Dst, class Xpr>
inline constexpr bool assigns_codes = [] {
  if constexpr (reads_codes<Xpr> && has_memory<Dst>)
    return !mixed_part<Xpr, order_of_dense<Dst>>::is_computed && std::is_same_v<typename Dst::Scalar, float> &&
           Eigen::internal::inner_stride_at_compile_time<Dst>::ret == 1;
  return false;
}();

/// Those that Eigen would read slowly: for the kind of their codes, or because something lies across.
template <class Part>
inline constexpr bool goes_box_by_box = has_few_copies<Part> && (Part::decodes || Part::has_across);

/// Lines of the destination, and elements of one, from which on boxes are worth while: squares are turned where
/// something lies across, and long runs are what is decoded faster than Eigen does.
template <class Part>
inline constexpr index_t fewest_lines = Part::has_across ? 16 : 1;
template <class Part>
inline constexpr index_t shortest_line = Part::turns ? 1 : Part::has_across ? 32 : 128;

/// Elements from which on the next box is asked for: of runs, where the nearer caches do not hold all that is read and
/// written; squares come in time from any cache.
template <class Part>
inline constexpr index_t far_elements = ops::streaming_floats / (Part::has_across ? 1 : 8);

/// dst (=, +=, ...) x, element by element, as Eigen's own assignment: a destination of `=` is resized where it can be.
template <class Dst, class Xpr, class Functor>
void assign_parts(Dst& dst, const Xpr& x, const Functor& functor) {
#ifndef EIGEN_NO_DEBUG
  Eigen::internal::check_for_aliasing(dst, x);
#endif
  Eigen::internal::resize_if_allowed(dst, x, functor);
  using part_type = mixed_part<Xpr, order_of_dense<Dst>>;
  const index_t lines = dst.outerSize(), length = dst.innerSize();
  const auto as_eigen = [&](const auto& how) { Eigen::internal::call_dense_assignment_loop(dst, x, how); };
  if constexpr (goes_box_by_box<part_type>) {
    if (lines < fewest_lines<part_type> || length < shortest_line<part_type>) return as_eigen(functor);
    QTENSOR_COUNT_KERNELS(assignments);
    const part_type part(x);
    assign_boxes(lines * length, functor, [&](const auto& how) {
      const auto store = [&]<part_shape Shape>() {
        constexpr std::integral_constant<index_t, Shape.rows> high;
        store_boxes<Shape>(part, high, 0, lines, 0, length, dst.data(), dst.outerStride(), how);
      };
      if (lines * length >= far_elements<part_type>)
        store.template operator()<part_shape::of_far<part_type>()>();
      else
        store.template operator()<part_shape::of<part_type>()>();
    });
  } else {
    assign_boxes(lines * length, functor, as_eigen);
  }
}

}  // namespace qtensor::inline QTENSOR_ABI::expr_detail

namespace Eigen::internal {

template <class Dst, class Src, class Functor>
requires qtensor::expr_detail::assigns_codes<Dst, Src>
struct Assignment<Dst, Src, Functor, Dense2Dense, void> {
  static void run(Dst& dst, const Src& src, const Functor& functor) {
    qtensor::expr_detail::assign_parts(dst, qtensor::expr_detail::with_signs(src), functor);
  }
};

}  // namespace Eigen::internal
