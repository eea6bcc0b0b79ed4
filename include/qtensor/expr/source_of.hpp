// The source that an Eigen expression is quantized from: memory, decoded codes, or the expression's own elements.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <qtensor/expr/mixed_source.hpp>

namespace qtensor::inline QTENSOR_ABI {

namespace expr_detail {

/// The source of an expression of floats for a tensor of this order; quantized matrices are decoded in runs.
template <storage_order Order, class Xpr>
auto source_of(const Xpr& x) {
  if constexpr (folded_elements<Xpr>) {
    return operand_in_order<Order>(x);
  } else if constexpr (goes_by_parts<Xpr, Order>) {
    return mixed_source<Xpr, Order>(x);
  } else {
    return expression_source<Xpr, Order>(x);
  }
}

/// The format of the scalars that sources may have.
template <class Scalar>
struct scalar_format {};
template <>
struct scalar_format<float> : std::type_identity<f32> {};
template <>
struct scalar_format<Eigen::bfloat16> : std::type_identity<bf16> {};
template <>
struct scalar_format<Eigen::half> : std::type_identity<f16> {};
template <class Xpr>
concept numbers_in_memory = has_memory<Xpr> && requires {
  typename scalar_format<typename Xpr::Scalar>::type;
};

/// Calls use(expression of floats): the expression itself, or half and bfloat16 widened, which is exact.
template <class Xpr, class Use>
decltype(auto) with_floats(const Eigen::DenseBase<Xpr>& x, Use use) {
  using scalar = typename Xpr::Scalar;
  constexpr bool widens = std::is_same_v<scalar, Eigen::half> || std::is_same_v<scalar, Eigen::bfloat16>;
  static_assert(
      std::is_same_v<scalar, float> || widens,
      "qtensor: quantize takes expressions of float, Eigen::half or Eigen::bfloat16; add .cast<float>() to this one.");
  if constexpr (std::is_same_v<scalar, float>) {
    decltype(auto) floats = with_signs(x.derived());
    return use(floats);
  } else if constexpr (widens) {
    const auto floats = x.derived().template cast<float>();
    return use(floats);
  }
}

/// Calls use(source of an expression, for a tensor of this order): numbers in memory come as they lie there.
template <storage_order Order, class Xpr, class Use>
decltype(auto) with_source(const Eigen::DenseBase<Xpr>& x, Use use) {
  if constexpr (numbers_in_memory<Xpr>) {
    using number = typename scalar_format<typename Xpr::Scalar>::type;
    const Xpr& memory = x.derived();
    const auto elements =
        source<number>(reinterpret_cast<const storage_t<number>*>(memory.data()),
                       matrix_extents(memory.rows(), memory.cols()), {memory.rowStride(), memory.colStride()});
    return use(typename decltype(elements)::template in_order<Order>(elements));
  } else {
    return with_floats(x, [&](const auto& floats) -> decltype(auto) { return use(source_of<Order>(floats)); });
  }
}

}  // namespace expr_detail

}  // namespace qtensor::inline QTENSOR_ABI
