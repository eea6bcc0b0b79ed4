// The ways to reduce quantized tensors that were proposed and agreed: each a line over `reduce`, for comparison.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <qtensor/ops/reduce.hpp>

// What differs, for a ui8 tensor x, an i32 accumulator type A and a ui8 result type R (number_type each):
//
//                    leaves            init value   accumulator   result          order
//   reduce           conversion(x)     of x's type  conversion's  conversion(acc) free (ours: front to back)
//   rescale_first    A(x), stored      of type A    A             R(acc)          free
//   front_to_back    x                 any type     init's        acc             front to back, by definition
//   approved         A(x)              of x's type  A             R(acc)          free
//   shipped          A(x)              of x's type  A             acc             free
//
// A conversion is any callable; A and R are types, and their conversions implicit (to_destination_type).
namespace qtensor::inline QTENSOR_ABI::rfc {

namespace detail {

/// What is_promotable compares: whether numbers are quantized (then their expressed type is f32), and their bits.
template <class T>
constexpr int bits_of_type() {
  if constexpr (quantized_number_type<T>)
    return T::scheme_type::code_format::bits;
  else if constexpr (qtensor::detail::is_real<T>)
    return T::format_type::bits;
  else if constexpr (std::same_as<T, bool>)
    return 1;
  else
    return static_cast<int>(8 * sizeof(T));
}
template <class T>
constexpr int kind_of_type() {
  return quantized_number_type<T> ? 0 : std::same_as<T, bool> ? 1 : std::integral<T> ? 2 : 3;
}

}  // namespace detail

/// is_promotable(From, To) of the specification: the same kind (boolean, integer, float, quantized with the same
/// expressed type), and not fewer bits (of the storage, where quantized).
template <class From, class To>
inline constexpr bool is_promotable = detail::kind_of_type<From>() == detail::kind_of_type<To>() &&
                                      detail::bits_of_type<From>() <= detail::bits_of_type<To>();

/// Option 2: the input is re-scaled as a whole to the accumulator's type, reduced in it from an init value of that
/// type, and the result re-scaled. The same numbers as `reduce` gives with conversions, if its init value converts to
/// this one.
template <class X, class Init, std::size_t N, class Widen, class Body, class Narrow = identity>
auto rescale_first(const X& x, const Init& init, const dimension_list<N>& dims, const Widen& widen, const Body& body,
                   const Narrow& narrow = {}) {
  const auto inputs = ops::inputs_of(x);
  const std::tuple<Widen, Body, Narrow> regions(widen, body, narrow);
  const auto fold = ops::fold_of<std::tuple<element_t<X>>>(regions);
  static_assert(std::is_same_v<std::tuple<Init>, typename decltype(fold)::state>,
                "qtensor: reduce (C2): each init value has the element type of its input; number_like(x, 0) makes it.");
  return ops::reduce_by(inputs, fold, std::tuple<Init>(init), dims);
}

/// Option 3: the accumulator's type is that of the init value, and the body takes (element, accumulator). The result
/// has the init value's type.
template <class X, class Init, std::size_t N, class Body>
auto front_to_back(const X& x, const Init& init, const dimension_list<N>& dims, const Body& body) {
  const auto inputs = ops::inputs_of(x);
  const auto inits = ops::as_tuple(init);
  using element = typename ops::element_tuple<std::remove_const_t<decltype(inputs)>>::type;
  ops::check_inputs(inputs, inits);
  const ops::front_to_back<element, std::remove_const_t<decltype(inits)>, Body> fold{body};
  return ops::reduce_by(inputs, fold, inits, dims);
}

/// As approved (08/25/2023): no regions for conversions; leaves are converted to the body's type, and results to
/// theirs.
template <class X, class Init, std::size_t N, class Accumulator, class Body, class Result>
auto approved(const X& x, const Init& init, const dimension_list<N>& dims, const Accumulator& accumulator,
              const Body& body, const Result& result) {
  static_assert(is_promotable<element_t<X>, typename Accumulator::value_type>,
                "qtensor: reduce (C6): is_promotable(element_type(inputs), E) - the accumulator is of the same kind "
                "and has at least the bits of an element.");
  return reduce(x, init, dims, accumulator, body, result);
}

/// As the specification shipped: leaves are converted to the body's type, which is the type of the results (C8).
template <class X, class Init, std::size_t N, class Accumulator, class Body>
auto shipped(const X& x, const Init& init, const dimension_list<N>& dims, const Accumulator& accumulator,
             const Body& body) {
  return approved(x, init, dims, accumulator, body, identity{});
}

}  // namespace qtensor::inline QTENSOR_ABI::rfc
