// Options of products: the arithmetic, the executor, the destination. Values in any order, told apart by their types.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <qtensor/core/executor.hpp>
#include <qtensor/simd/abi.hpp>
#include <tuple>

namespace qtensor::inline QTENSOR_ABI {

/// How a product computes.
///   fixed_order   integers exactly, everything else by one fma chain over ascending k: the same bits on every CPU
///   bf16, f16     both operands rounded to the format; bf16 sums in an order of the CPU's choice, f16 by the chain
///   int8_rows     float activations quantized to int8, a scale for each row, then as integers
///   int8_groups   the same with a scale for each group of the weights
enum class product_math { fixed_order, bf16, f16, int8_rows, int8_groups };

/// The option that names an arithmetic: `matmul(W, X, bf16_math)`.
template <product_math M>
struct product_arithmetic {
  static constexpr product_math math = M;
};
inline constexpr product_arithmetic<product_math::bf16> bf16_math{};
inline constexpr product_arithmetic<product_math::f16> f16_math{};
inline constexpr product_arithmetic<product_math::int8_rows> int8_activations{};
inline constexpr product_arithmetic<product_math::int8_groups> int8_group_activations{};

/// The option that names where a result goes: `matmul(W, X, into(Y))`. A reference where Dst is one.
template <class Dst>
struct product_destination {
  Dst dst;
};
template <class Dst>
constexpr product_destination<Dst> into(Dst&& dst) {
  return {std::forward<Dst>(dst)};
}

/// The option that makes a quantized result static: its scales (and zero points), as quantize<S>(x, ...) takes them;
/// none where they are in the destination already.
template <class... Values>
struct result_scales {
  std::tuple<Values...> values;
};
template <class... Values>
constexpr result_scales<Values...> with_scales(Values&&... values) {
  static_assert(sizeof...(Values) <= 2, "qtensor: with_scales takes scales, or scales and zero points.");
  return {std::tuple<Values...>(std::forward<Values>(values)...)};
}

namespace ops {

template <class T>
inline constexpr bool is_arithmetic_option = false;
template <product_math M>
inline constexpr bool is_arithmetic_option<product_arithmetic<M>> = true;
template <class T>
inline constexpr bool is_destination = false;
template <class Dst>
inline constexpr bool is_destination<product_destination<Dst>> = true;

template <class T>
inline constexpr bool is_result_scales = false;
template <class... Values>
inline constexpr bool is_result_scales<result_scales<Values...>> = true;

template <class Option>
constexpr auto arithmetic_in(const Option& option) {
  if constexpr (is_arithmetic_option<Option>)
    return std::tie(option);
  else
    return std::tuple<>();
}

}  // namespace ops

/// What every product takes: an arithmetic or an executor.
template <class Option>
inline constexpr bool is_product_option = ops::is_arithmetic_option<Option> || detail::is_execution<Option>;

/// The options of a product, read: `math` as a constant, `by` as a value.
template <product_math Math, executor By>
struct product_options {
  using executor_type = By;
  static constexpr product_math math = Math;
  By by;
};

/// Reads options; without any: fixed order, serial.
template <class... Option>
auto read_product_options(const Option&... option) {
  static_assert((is_product_option<Option> && ...),
                "qtensor: a product takes bf16_math, f16_math, int8_activations or int8_group_activations, and "
                "on(executor); matmul also takes into(destination), with_scales(...) and an epilogue.");
  static_assert((0 + ... + (ops::is_arithmetic_option<Option> ? 1 : 0)) <= 1,
                "qtensor: a product computes in one arithmetic; keep one of bf16_math, f16_math, int8_activations and "
                "int8_group_activations.");
  const auto usual = std::make_tuple(product_arithmetic<product_math::fixed_order>{});
  const auto math = std::get<0>(std::tuple_cat(ops::arithmetic_in(option)..., usual));
  const auto on = detail::execution_among(option...);
  return product_options<decltype(math)::math, decltype(on.by)>{on.by};
}

/// A matrix with the options of products that it takes part in: what `W.with(int8_activations, on(pool))` returns.
/// Matrix is a view, or a reference to packed weights.
template <class Matrix, class Options>
struct with_product_options {
  Matrix matrix;
  Options options;
};
template <class Matrix, class... Option>
auto attach_options(std::type_identity<Matrix>, std::type_identity_t<Matrix> matrix, const Option&... option) {
  const auto options = read_product_options(option...);
  return with_product_options<Matrix, std::remove_const_t<decltype(options)>>{matrix, options};
}

}  // namespace qtensor::inline QTENSOR_ABI
