// Signs that change as signs do: -0 of 0, and of a NaN the other one, however an expression is read.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <qtensor/core/support.hpp>
#include <qtensor/expr/eigen_version.hpp>
#include <type_traits>
#include <utility>

namespace qtensor::inline QTENSOR_ABI::expr_detail {

/// What Eigen's opposite is of single numbers. Packets of Eigen 3 are subtracted from 0 where they are wide, which
/// makes no -0.
struct flipped_sign {
  float operator()(float x) const { return float_of(bits_of(x) ^ 0x80000000u); }
  template <class Packet>
  Packet packetOp(const Packet& x) const {
    return Eigen::internal::pxor(x, Eigen::internal::pset1<Packet>(-0.f));
  }
};
using opposite = Eigen::internal::scalar_opposite_op<float>;
template <class Op>
concept is_negation = std::is_same_v<Op, opposite> || std::is_same_v<Op, flipped_sign>;

/// What shows the elements of another expression.
template <template <class> class Wrapper>
inline constexpr bool shows_elements = false;
template <>
inline constexpr bool shows_elements<Eigen::Transpose> = true;
template <>
inline constexpr bool shows_elements<Eigen::ArrayWrapper> = true;
template <>
inline constexpr bool shows_elements<Eigen::MatrixWrapper> = true;

/// Whether an expression has an opposite of Eigen's in it that packets would take for a difference.
template <class Xpr>
inline constexpr bool has_opposite = false;
template <class Xpr>
inline constexpr bool has_opposite<const Xpr> = has_opposite<Xpr>;
template <class Op, class Xpr>
inline constexpr bool has_opposite<Eigen::CwiseUnaryOp<Op, Xpr>> = has_opposite<Xpr>;
template <class Xpr>
inline constexpr bool has_opposite<Eigen::CwiseUnaryOp<opposite, Xpr>> = eigen_generation < 5 || has_opposite<Xpr>;
template <class Op, class Left, class Right>
inline constexpr bool has_opposite<Eigen::CwiseBinaryOp<Op, Left, Right>> = has_opposite<Left> || has_opposite<Right>;
template <template <class> class Wrapper, class Xpr>
requires shows_elements<Wrapper>
inline constexpr bool has_opposite<Wrapper<Xpr>> = has_opposite<Xpr>;
template <class Xpr, int Rows, int Cols, bool inner_panel>
inline constexpr bool has_opposite<Eigen::Block<Xpr, Rows, Cols, inner_panel>> = has_opposite<Xpr>;

template <class Xpr>
struct sign_keeping {
  static const Xpr& of(const Xpr& x) { return x; }
};
/// The expression with flipped_sign in their place; the expression itself where there are none.
template <class Xpr>
decltype(auto) with_signs(const Xpr& x) {
  return sign_keeping<Xpr>::of(x);
}
template <class Xpr>
using with_signs_t = const std::remove_cvref_t<decltype(with_signs(std::declval<const Xpr&>()))>;

template <class Op, class Xpr>
requires has_opposite<Eigen::CwiseUnaryOp<Op, Xpr>>
struct sign_keeping<Eigen::CwiseUnaryOp<Op, Xpr>> {
  static auto of(const Eigen::CwiseUnaryOp<Op, Xpr>& x) {
    if constexpr (std::is_same_v<Op, opposite>)
      return Eigen::CwiseUnaryOp<flipped_sign, with_signs_t<Xpr>>(with_signs(x.nestedExpression()));
    else
      return Eigen::CwiseUnaryOp<Op, with_signs_t<Xpr>>(with_signs(x.nestedExpression()), x.functor());
  }
};
template <class Op, class Left, class Right>
requires has_opposite<Eigen::CwiseBinaryOp<Op, Left, Right>>
struct sign_keeping<Eigen::CwiseBinaryOp<Op, Left, Right>> {
  static auto of(const Eigen::CwiseBinaryOp<Op, Left, Right>& x) {
    return Eigen::CwiseBinaryOp<Op, with_signs_t<Left>, with_signs_t<Right>>(with_signs(x.lhs()), with_signs(x.rhs()),
                                                                             x.functor());
  }
};
template <template <class> class Wrapper, class Xpr>
requires has_opposite<Wrapper<Xpr>>
struct sign_keeping<Wrapper<Xpr>> {
  static auto of(const Wrapper<Xpr>& x) { return Wrapper<with_signs_t<Xpr>>(with_signs(x.nestedExpression())); }
};
template <class Xpr, int Rows, int Cols, bool inner_panel>
requires has_opposite<Xpr>
struct sign_keeping<Eigen::Block<Xpr, Rows, Cols, inner_panel>> {
  static auto of(const Eigen::Block<Xpr, Rows, Cols, inner_panel>& x) {
    return Eigen::Block<with_signs_t<Xpr>, Rows, Cols, inner_panel>(with_signs(x.nestedExpression()), x.startRow(),
                                                                    x.startCol(), x.rows(), x.cols());
  }
};

}  // namespace qtensor::inline QTENSOR_ABI::expr_detail

namespace Eigen::internal {

template <>
struct functor_traits<qtensor::expr_detail::flipped_sign> {
  enum { Cost = NumTraits<float>::AddCost, PacketAccess = packet_traits<float>::Vectorizable };
};

}  // namespace Eigen::internal
