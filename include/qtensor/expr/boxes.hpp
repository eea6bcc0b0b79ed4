// Boxes of floats in memory as Eigen's maps, and their assignment: by Eigen's own loops, past the caches where asked.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <qtensor/expr/dequantized.hpp>
#include <qtensor/ops/rows.hpp>
#include <type_traits>

namespace qtensor::inline QTENSOR_ABI::expr_detail {

/// A box whose rows are runs.
using box_map = Eigen::Map<const Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>,
                           Eigen::Unaligned, Eigen::OuterStride<>>;
using writable_box = Eigen::Map<typename box_map::PlainObject, Eigen::Unaligned, Eigen::OuterStride<>>;

/// A box of rows that are `step` apart; where they follow each other, and all that is read with them, as one row.
template <class Box>
Box map_of_box(typename Box::PointerArgType data, index_t rows, index_t cols, index_t step, bool is_dense) {
  return is_dense ? Box(data, 1, rows * cols, Eigen::OuterStride<>(rows * cols))
                  : Box(data, rows, cols, Eigen::OuterStride<>(step));
}

/// Whether a packet of Eigen's is a register of an architecture. Portable ones have none.
template <class Arch, class Packet>
inline constexpr bool is_batch = false;
template <simd::usable_arch Arch, class Packet>
inline constexpr bool is_batch<Arch, Packet> = std::is_constructible_v<simd::floats<Arch>, const Packet&> &&
                                               (simd::lanes<Arch> == Eigen::internal::unpacket_traits<Packet>::size);

/// Eigen's `=`.
using plain_assignment = Eigen::internal::assign_op<float, float>;

/// The same, past the caches or not: whole packets at least. Call simd::stream_fence() after the last box that does.
struct assignment_of_boxes : plain_assignment {
  bool past_caches;

  explicit assignment_of_boxes(bool past) : past_caches(past) {}
  template <int Alignment, class Packet>
  EIGEN_STRONG_INLINE void assignPacket(float* to, const Packet& p) const {
    using arch = typename fitting_arch<Eigen::internal::unpacket_traits<Packet>::size, simd::archs>::type;
    if constexpr (Alignment >= static_cast<int>(sizeof(Packet)) && is_batch<arch, Packet>)
      simd::put(to, simd::floats<arch>(p), past_caches);
    else
      plain_assignment::template assignPacket<Alignment, Packet>(to, p);
  }
};

/// Calls assign(functor) with what an assignment of so many floats does to its boxes: what Functor says, for `=` past
/// the caches where they are more than these hold.
template <class Functor, class Assign>
void assign_boxes(index_t floats, const Functor& functor, const Assign& assign) {
  if constexpr (std::is_same_v<Functor, plain_assignment>) {
    const assignment_of_boxes put(floats >= ops::streaming_floats);
    assign(put);
    if (put.past_caches) simd::stream_fence<simd::best_arch>();
  } else {
    assign(functor);
  }
}

}  // namespace qtensor::inline QTENSOR_ABI::expr_detail

namespace Eigen::internal {

template <>
struct functor_traits<qtensor::expr_detail::assignment_of_boxes>
    : functor_traits<qtensor::expr_detail::plain_assignment> {};

}  // namespace Eigen::internal
