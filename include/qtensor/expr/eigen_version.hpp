// Eigen, and the only place that asks which version of it this is.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <qtensor/simd/abi.hpp>
#include <qtensor/simd/ops_intrinsics.hpp>

#include <Eigen/Core>

// EIGEN_VERSION_AT_LEAST compares (world, major, minor) up to 3.4 and (major, minor, patch) from 5 on; both say yes
// here.
#if !EIGEN_VERSION_AT_LEAST(3, 4, 0)
#error "qtensor: Eigen 3.4 or newer is needed."
#endif

namespace qtensor::inline QTENSOR_ABI {

/// 3 or 5. From 5 on, loops end with packetSegment, a part of a packet.
#if EIGEN_VERSION_AT_LEAST(5, 0, 0)
inline constexpr int eigen_generation = 5;
#else
inline constexpr int eigen_generation = 3;
#endif

namespace expr_detail {

/// Eigen's widest packet of floats; one float where Eigen is told not to vectorise.
using float_packet = Eigen::internal::packet_traits<float>::type;
inline constexpr int packet_lanes = static_cast<int>(sizeof(float_packet) / sizeof(float));

template <class Derived>
void accepts_eigen_object(const Eigen::EigenBase<Derived>&);

/// An object of Eigen: a matrix or array expression, a diagonal, a permutation, ... or such a base of one as functions
/// of any expression take (MatrixBase<Derived>, ArrayBase<Derived>, ...).
template <class X>
concept eigen_object = std::is_class_v<X> && requires(const X& x) {
  accepts_eigen_object(x);
};

/// An object of Eigen as what it is, where a base of it is given; others as they are.
template <class X>
constexpr auto& derived_of(X& x) {
  if constexpr (eigen_object<std::remove_const_t<X>>)
    return x.derived();
  else
    return x;
}
template <class X>
using derived_t = std::remove_cvref_t<decltype(derived_of(std::declval<X&>()))>;

/// Whether an expression is a matrix in memory with strides, to be read (and, where it is an lvalue, written) by
/// pointer. (Eigen 3.4 says so of rows and columns at equal distances, whose memory it does not give.)
template <class X>
inline constexpr bool has_memory = (static_cast<int>(Eigen::internal::traits<X>::Flags) & Eigen::DirectAccessBit) !=
                                       0 &&
                                   requires(const X& x) {
  x.data();
};

}  // namespace expr_detail

}  // namespace qtensor::inline QTENSOR_ABI
