// Elements: what reductions read one by one and give back - quantized numbers, floats, integers, of any rank.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <qtensor/ops/source.hpp>
#include <qtensor/reference/number.hpp>
#include <valarray>

namespace qtensor::inline QTENSOR_ABI {

/// A tensor whose elements are read by value, whatever it is in memory.
///   rank, value_type
///   extents()                an array of index_t
///   contiguous_axis()        the axis along which neighbours are neighbours in memory
///   line(index, axis)        a callable: i -> the element at index + i along the axis
template <class X>
concept element_source = requires(const X x, const std::array<index_t, static_cast<std::size_t>(X::rank)>& at, int axis,
                                  index_t i) {
  typename X::value_type;
  { x.extents() } -> std::convertible_to<std::array<index_t, static_cast<std::size_t>(X::rank)>>;
  { x.contiguous_axis() } -> std::convertible_to<int>;
  { x.line(at, axis)(i) } -> std::convertible_to<typename X::value_type>;
};

namespace ops {

template <int Rank>
using index_of_rank = std::array<index_t, static_cast<std::size_t>(Rank)>;

/// An index with i added along an axis.
template <std::size_t Rank>
constexpr std::array<index_t, Rank> moved_along(std::array<index_t, Rank> at, int axis, index_t i) {
  at[static_cast<std::size_t>(axis)] += i;
  return at;
}

template <std::size_t Rank>
constexpr std::array<index_t, Rank> sum_of(std::array<index_t, Rank> a, const std::array<index_t, Rank>& b) {
  for (std::size_t i = 0; i < Rank; ++i) a[i] += b[i];
  return a;
}

/// Elements of T at constant distances in memory.
template <class T, int Rank>
struct strided_elements {
  using value_type = T;
  static constexpr int rank = Rank;
  const T* data;
  index_of_rank<Rank> sizes, strides;

  /// Neighbours; and elements at any distance.
  struct unit_line {
    const T* first;
    T operator()(index_t i) const { return first[i]; }
  };
  struct line_type {
    const T* first;
    index_t step;
    T operator()(index_t i) const { return first[i * step]; }
    unit_line unit() const { return {first}; }
  };
  constexpr const index_of_rank<Rank>& extents() const { return sizes; }
  constexpr int contiguous_axis() const {
    for (int axis = Rank - 1; axis > 0; --axis)
      if (strides[static_cast<std::size_t>(axis)] == 1) return axis;
    return strides[0] == 1 ? 0 : Rank - 1;
  }
  line_type line(const index_of_rank<Rank>& at, int axis) const {
    const T* first = data;
    for (std::size_t a = 0; a < at.size(); ++a) first += at[a] * strides[a];
    return {first, strides[static_cast<std::size_t>(axis)]};
  }
};

/// Elements of bf16 or f16 memory, as real<F>.
template <format F, int Rank>
struct half_elements {
  using value_type = real<F>;
  static constexpr int rank = Rank;
  strided_elements<storage_t<F>, Rank> codes;

  struct line_type {
    typename strided_elements<storage_t<F>, Rank>::line_type codes;
    real<F> operator()(index_t i) const { return real<F>::of_code(codes(i)); }
  };
  constexpr const index_of_rank<Rank>& extents() const { return codes.sizes; }
  constexpr int contiguous_axis() const { return codes.contiguous_axis(); }
  line_type line(const index_of_rank<Rank>& at, int axis) const { return {codes.line(at, axis)}; }
};

/// Elements of a quantized tensor. S is its scheme with the conversion policies that its owner knows; a view has lost
/// them.
template <quantization_scheme S, tensor_view_type View>
struct quantized_elements {
  using value_type = quantized_number<S>;
  using scheme_type = S;
  using view_type = View;
  static constexpr int rank = View::rank;
  using index_array = typename View::index_array;
  /// Codes of whole units under one scale: a line is a pointer and a step.
  static constexpr bool is_plain = !S::is_interleaved && !is_packed<typename S::code_format> &&
                                   std::is_same_v<typename S::granularity_type, per_tensor> &&
                                   std::is_same_v<typename S::zero_granularity_type, per_tensor>;
  View view;

  struct unit_line {
    typename View::code_pointer first;
    number_type<S> type;
    quantized_number<S> operator()(index_t i) const {
      return type.of_code(qtensor::detail::code_of<typename S::code_format>(first[i]));
    }
  };
  struct plain_line {
    typename View::code_pointer first;
    index_t step;
    number_type<S> type;
    unit_line unit() const { return {first, type}; }
    quantized_number<S> operator()(index_t i) const {
      return type.of_code(qtensor::detail::code_of<typename S::code_format>(first[i * step]));
    }
  };
  struct general_line {
    const View* view;
    index_array at;
    int axis;
    quantized_number<S> operator()(index_t i) const {
      const index_array index = moved_along(at, axis, i);
      return {view->code(index), decode<typename S::scale_format>(view->scale_code(index)),
              static_cast<std::int32_t>(view->storage_zero_point(reordered<typename View::order_type>(index)))};
    }
  };

  constexpr index_array extents() const { return view.extents().to_array(); }
  static constexpr int contiguous_axis() { return View::order_type::axis(rank, rank - 1); }
  auto line(const index_array& at, int axis) const {
    if constexpr (is_plain) {
      const index_array in_storage = reordered<typename View::order_type>(at);
      const index_t step = axis == contiguous_axis()
                               ? 1
                               : view.row_strides()[static_cast<std::size_t>(View::order_type::axis(rank, axis))];
      return plain_line{view.row(in_storage) + in_storage[in_storage.size() - 1], step, type()};
    } else {
      return general_line{&view, at, axis};
    }
  }
  /// The one type of all elements, where there is one; that of scale 1 where there are no elements.
  number_type<S> type() const requires(std::same_as<typename S::granularity_type, per_tensor>&&
                                           std::same_as<typename S::zero_granularity_type, per_tensor>) {
    if (view.size() == 0) return {};
    const index_array first{};
    return {decode<typename S::scale_format>(view.storage_scale_code(first)),
            static_cast<std::int32_t>(view.storage_zero_point(first))};
  }
};

}  // namespace ops

/// Dense elements of any type that owns its memory, row-major: what reductions to floats, integers and booleans give,
/// and an input of others.
template <class T, int Rank>
class dense {
 public:
  using value_type = T;
  static constexpr int rank = Rank;
  using index_array = ops::index_of_rank<Rank>;

  dense() = default;
  explicit dense(const index_array& extents, const T& value = T())
      : extents_(extents), elements_(value, static_cast<std::size_t>(dynamic_extents<Rank>(extents).size())) {}

  const index_array& extents() const { return extents_; }
  index_t extent(int axis) const { return extents_[static_cast<std::size_t>(axis)]; }
  index_t size() const { return static_cast<index_t>(elements_.size()); }
  T* data() { return std::begin(elements_); }
  const T* data() const { return std::begin(elements_); }
  T& operator[](const index_array& at) { return elements_[place(at)]; }
  const T& operator[](const index_array& at) const { return elements_[place(at)]; }
  template <class... I>
  requires(sizeof...(I) == static_cast<std::size_t>(Rank)) const T& operator()(I... at) const {
    return (*this)[index_array{static_cast<index_t>(at)...}];
  }

 private:
  std::size_t place(const index_array& at) const {
    index_t sum = 0;
    for (std::size_t axis = 0; axis < at.size(); ++axis) sum = sum * extents_[axis] + at[axis];
    return static_cast<std::size_t>(sum);
  }
  index_array extents_{};
  std::valarray<T> elements_;
};

/// Existing memory of any type as elements: `values(ptr, extents(2, 3))`, row-major and dense. (bf16 and f16 are
/// `source<bf16>(ptr, extents)`.)
template <class T, tensor_extents Extents>
ops::strided_elements<T, Extents::rank> values(const T* data, const Extents& extents) {
  return {data, extents.to_array(), dense_strides(extents.to_array())};
}

/// Elements that are a function of their index: `generated(extents(3, 4), [](auto at) { return at[1]; })`, for
/// instance the positions that an arg-max carries along.
template <class F, int Rank>
struct generated_elements {
  using value_type = std::remove_cvref_t<std::invoke_result_t<const F&, const ops::index_of_rank<Rank>&>>;
  static constexpr int rank = Rank;
  ops::index_of_rank<Rank> sizes;
  F f;

  struct line_type {
    const F* f;
    ops::index_of_rank<Rank> at;
    int axis;
    value_type operator()(index_t i) const { return (*f)(ops::moved_along(at, axis, i)); }
  };
  const ops::index_of_rank<Rank>& extents() const { return sizes; }
  int contiguous_axis() const { return Rank - 1; }
  line_type line(const ops::index_of_rank<Rank>& at, int axis) const { return {&f, at, axis}; }
};
template <tensor_extents Extents, class F>
generated_elements<F, Extents::rank> generated(const Extents& extents, F f) {
  return {extents.to_array(), std::move(f)};
}

/// How a type becomes an element_source: `elements_of<X>::of(x)`. Specialised for sources themselves, quantized
/// tensors and views, and memory; expr/ adds Eigen's expressions.
template <class X>
struct elements_of {
  static_assert(element_source<X>,
                "qtensor: reductions take quantized tensors and views, source(ptr, extents), values(ptr, extents), "
                "generated(extents, f), or (with expr/reduce.hpp) Eigen expressions.");
  static const X& of(const X& x) { return x; }
};
template <quantized X>
struct elements_of<X> {
  static auto of(const X& x) {
    const auto view = as_view(x);
    return ops::quantized_elements<typename X::scheme_type, std::remove_const_t<decltype(view)>>{view};
  }
};
template <class T, int Rank>
struct elements_of<dense<T, Rank>> {
  static auto of(const dense<T, Rank>& x) {
    return ops::strided_elements<T, Rank>{x.data(), x.extents(), dense_strides(x.extents())};
  }
};
template <format F, tensor_extents Extents>
struct elements_of<memory_source<F, Extents>> {
  static auto of(const memory_source<F, Extents>& x) {
    const ops::strided_elements<storage_t<F>, Extents::rank> codes{x.data, x.extents.to_array(), x.strides};
    if constexpr (std::same_as<F, f32>)
      return codes;
    else
      return ops::half_elements<F, Extents::rank>{codes};
  }
};

/// Any tensor as elements; what it refers to must outlive the result.
template <class X>
decltype(auto) elements(const X& x) {
  return elements_of<X>::of(x);
}
template <class X>
using elements_type = std::remove_cvref_t<decltype(elements(std::declval<const X&>()))>;
template <class X>
using element_t = typename elements_type<X>::value_type;

/// x with a function applied to every element, when it is read: `converted(x, requantize_to<S>(scale, zero_point))`.
template <class X, class F>
struct converted_elements {
  using value_type = std::remove_cvref_t<std::invoke_result_t<const F&, element_t<X>>>;
  static constexpr int rank = elements_type<X>::rank;
  elements_type<X> x;
  F f;

  template <class Line>
  struct line_type {
    Line from;
    const F* f;
    value_type operator()(index_t i) const { return (*f)(from(i)); }
  };
  auto extents() const { return x.extents(); }
  int contiguous_axis() const { return x.contiguous_axis(); }
  auto line(const ops::index_of_rank<rank>& at, int axis) const {
    return line_type<decltype(x.line(at, axis))>{x.line(at, axis), &f};
  }
};
template <class X, class F>
converted_elements<X, F> converted(const X& x, F f) {
  return {elements(x), std::move(f)};
}

/// A real number as an element of x's type: the init value 0 of a quantized tensor is `number_like(x, 0)`. x's elements
/// have one type.
template <class X>
auto number_like(const X& x, float number) {
  using value = element_t<X>;
  if constexpr (quantized_number_type<value>)
    return elements(x).type()(number);
  else
    return static_cast<value>(number);
}

}  // namespace qtensor::inline QTENSOR_ABI
