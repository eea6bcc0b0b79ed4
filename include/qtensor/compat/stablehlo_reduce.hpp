// StableHLO's reduce, reduce_window and select_and_scatter on tensors of run-time type (NUMERICS 7.4).
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <qtensor/compat/stablehlo_elementwise.hpp>
#include <qtensor/ops/select_and_scatter.hpp>
#include <type_traits>

namespace qtensor::compat::stablehlo {

/// One element of each of N tensors.
using scalars = std::vector<scalar>;

/// Windows as the operations' attributes give them; an empty list means its default (1, padding 0).
struct window_attributes {
  std::vector<index_t> window_dimensions{}, window_strides{}, base_dilations{}, window_dilations{};
  std::vector<std::array<index_t, 2>> padding{};
};

inline namespace QTENSOR_ABI {

namespace pieces {

/// Tensors of every rank are computed as tensors of this one, with leading dimensions of 1.
inline constexpr int most_rank = 8;
using wide_index = ops::index_of_rank<most_rank>;

inline wide_index widened(const std::vector<index_t>& items, index_t fill) {
  require(items.size() <= most_rank, "the tensor has rank ", static_cast<index_t>(items.size()),
          "; reductions at run time take ranks up to ", most_rank, ".");
  wide_index out{};
  out.fill(fill);
  std::copy(items.begin(), items.end(), out.end() - static_cast<index_t>(items.size()));
  return out;
}
inline std::vector<index_t> narrowed(const wide_index& items, std::size_t rank) {
  return std::vector<index_t>(items.end() - static_cast<index_t>(rank), items.end());
}

inline window<most_rank> windows_of(const window_attributes& w, std::size_t rank) {
  const auto list = [&](const std::vector<index_t>& items, const char* name, bool required) {
    require(items.size() == rank || (items.empty() && !required), name, " has ", static_cast<index_t>(items.size()),
            " items and the tensor rank ", static_cast<index_t>(rank), "; constraint: size(", name, ") = rank.");
    return widened(items, 1);
  };
  window<most_rank> out{.sizes = list(w.window_dimensions, "window_dimensions", true),
                        .strides = list(w.window_strides, "window_strides", false),
                        .base_dilations = list(w.base_dilations, "base_dilations", false),
                        .window_dilations = list(w.window_dilations, "window_dilations", false)};
  require(w.padding.size() == rank || w.padding.empty(), "padding has ", static_cast<index_t>(w.padding.size()),
          " items and the tensor rank ", static_cast<index_t>(rank), "; constraint: shape(padding) = [rank, 2].");
  for (std::size_t i = 0; i < w.padding.size(); ++i) {
    out.padding_low[most_rank - rank + i] = w.padding[i][0];
    out.padding_high[most_rank - rank + i] = w.padding[i][1];
  }
  return out;
}

/// The elements of N tensors of one shape, together.
inline auto elements_of_all(const std::vector<const tensor*>& x) {
  const wide_index extents = widened(x[0]->shape(), 1);
  const wide_index strides = dense_strides(extents);
  return generated(dynamic_extents<most_rank>(extents), [=](const wide_index& at) {
    index_t place = 0;
    for (std::size_t axis = 0; axis < at.size(); ++axis) place += at[axis] * strides[axis];
    scalars all;
    for (const tensor* one : x) all.push_back(one->at(place));
    return all;
  });
}

inline scalars convert_all(const std::vector<element_type>& from, const scalars& x,
                           const std::vector<element_type>& to) {
  scalars out;
  for (std::size_t i = 0; i < x.size(); ++i) out.push_back(to_destination_type(from[i], x[i], to[i]));
  return out;
}

inline void check_per_tensor(const element_type& type) {
  require(!type.is_quantized() || !type.quantized().is_per_axis(),
          "a tensor is quantized per axis; constraint: reductions take per-tensor quantized tensors.");
}

/// is_promotable(from, to): of one kind, and not fewer bits (of the storage, where quantized).
inline bool is_promotable(const element_type& from, const element_type& to) {
  if (from.is_quantized() != to.is_quantized()) return false;
  if (from.is_quantized())
    return from.quantized().expressed() == to.quantized().expressed() && bits_of(from.stored()) <= bits_of(to.stored());
  const auto kind = [](basic_type t) { return is_float(t) ? 2 : is_integer(t) ? 1 + 2 * (is_signed(t) ? 1 : 0) : 0; };
  return kind(from.stored()) == kind(to.stored()) && bits_of(from.stored()) <= bits_of(to.stored());
}

/// What the operations check of inputs and init values: their types, and those of the body.
inline std::vector<element_type> check_inputs(const std::vector<const tensor*>& x,
                                              const std::vector<const tensor*>& init,
                                              const std::vector<element_type>& body,
                                              const std::vector<element_type>& results) {
  require(!x.empty() && x.size() == init.size() && x.size() == body.size() && x.size() == results.size(),
          static_cast<index_t>(x.size()), " inputs, ", static_cast<index_t>(init.size()),
          " init values; constraint (C3): 0 < size(inputs) = size(init_values) = size(results) = N.");
  std::vector<element_type> types;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const index_t n = static_cast<index_t>(i);
    require(x[i]->shape() == x[0]->shape(), "input ", n,
            " has another shape than input 0; constraint (C1): same(shape(inputs...)).");
    require(x[i]->type() == init[i]->type(), "input ", n, " is ", to_string(x[i]->type()), " and its init value ",
            to_string(init[i]->type()), "; constraint (C2): element_type(inputs...) = element_type(init_values...).");
    require(init[i]->shape().empty(), "init value ", n, " has dimensions; it is a single element.");
    require(is_promotable(x[i]->type(), body[i]), "input ", n, " is ", to_string(x[i]->type()), " and the body takes ",
            to_string(body[i]), "; constraint (C6): is_promotable(element_type(inputs[i]), Ei).");
    check_per_tensor(x[i]->type());
    check_per_tensor(body[i]);
    check_per_tensor(results[i]);
    types.push_back(x[i]->type());
  }
  return types;
}

/// Dense results of N scalars as N tensors.
inline std::vector<tensor> results_of(const dense<scalars, most_rank>& all, const std::vector<index_t>& shape,
                                      const std::vector<element_type>& types) {
  std::vector<tensor> out;
  for (std::size_t i = 0; i < types.size(); ++i) {
    out.emplace_back(types[i], shape);
    for (index_t place = 0; place < all.size(); ++place) out[i].set(place, all.data()[place][i]);
  }
  return out;
}

inline scalars init_of(const std::vector<const tensor*>& init) {
  scalars out;
  for (const tensor* one : init) out.push_back(one->at(0));
  return out;
}

// ---- the library's own bodies --------------------------------------------------------------------------------------

/// add, multiply, max and min (reference/number.hpp), of the elements of one tensor.
template <class Body>
concept named_body = requires {
  typename Body::rule;
};

template <class Rule>
constexpr binary operation_of() {
  if constexpr (std::is_same_v<Rule, qtensor::detail::add_rule>)
    return binary::add;
  else if constexpr (std::is_same_v<Rule, qtensor::detail::multiply_rule>)
    return binary::multiply;
  else
    return std::is_same_v<Rule, qtensor::detail::max_rule> ? binary::maximum : binary::minimum;
}

/// Any body as one of scalars.
template <class Body>
auto body_of_scalars(const Body& body, const std::vector<element_type>& types) {
  if constexpr (named_body<Body>) {
    require(types.size() == 1, "one of the library's bodies is given for ", static_cast<index_t>(types.size()),
            " tensors; it folds one.");
    return [type = types[0]](const scalars& a, const scalars& b) {
      constexpr binary op = operation_of<typename Body::rule>();
      return scalars{stablehlo::apply(op, type, a[0], type, b[0], type)};
    };
  } else {
    return std::cref(body);
  }
}

/// A tensor's elements as those of another type, each by to_destination_type.
template <executor By>
tensor converted(const By& by, const tensor& x, const element_type& type) {
  if (x.type() == type) return x;
  if (!x.type().is_quantized() && !type.is_quantized()) return convert(x, type.stored());
  tensor y(type, x.shape());
  if (x.type().computed() == type.computed()) {
    retype(by, x, y);
  } else {
    compute_each(by, y, [&](index_t i) { return to_destination_type(x.type(), x.at(i), type); });
  }
  return y;
}

/// Folds by a body of the library, of types that it has as types of C++: fold(elements, init, conversion of leaves)
/// gives results of the body's type, of this shape. None where it has not, or where there is nothing to fold.
template <executor By, tensor_extents Extents, class Fold>
std::optional<tensor> folded(const By& by, const tensor& x, const tensor& init, const element_type& type,
                             const std::vector<index_t>& shape, const Extents& sizes, const Fold& fold) {
  std::optional<tensor> y(std::in_place, type, shape);
  if (x.size() == 0 || y->size() == 0) return std::nullopt;
  const auto keep = [&](const auto* results) { std::memcpy(y->bytes().data(), results, y->bytes().size()); };
  if (!x.type().is_quantized()) {
    const tensor leaves = converted(by, x, type), seed = converted(by, init, type);
    const auto of_numbers = [&]<class T>(T number) {
      std::memcpy(&number, seed.bytes().data(), sizeof number);
      keep(fold(values(reinterpret_cast<const T*>(leaves.bytes().data()), sizes), number, identity{}).data());
      return std::move(y);
    };
    switch (type.stored()) {
      case basic_type::f32:
        return of_numbers(float{});
      case basic_type::i32:
        return of_numbers(std::int32_t{});
      case basic_type::i64:
        return of_numbers(std::int64_t{});
      default:
        return std::nullopt;
    }
  }
  const quantized_type &from = x.type().quantized(), &to = type.quantized();
  const bool is_wide = to.storage() == basic_type::i32 && to.expressed() == basic_type::f32 &&
                       to.storage_min() == min_value(to.storage()) && to.storage_max() == max_value(to.storage());
  if (!has_kernel(from) || !(is_wide || (has_kernel(to) && to.storage() == from.storage()))) return std::nullopt;
  const auto of_codes = [&]<class From, class To>(From, To) {
    using view = tensor_view<uniform<From>, Extents>;
    using unit = storage_t<From>;
    const number_type<typename view::scheme_type> leaf = {static_cast<float>(from.scales()[0]),
                                                          static_cast<std::int32_t>(from.zero_points()[0])};
    const number_type<uniform<To>> accumulator = {static_cast<float>(to.scales()[0]),
                                                  static_cast<std::int32_t>(to.zero_points()[0])};
    const auto zero = static_cast<unit>(leaf.zero_point);
    const view codes({sizes, {}, {}}, {reinterpret_cast<const unit*>(x.bytes().data()), &leaf.scale, &zero, {}, {}});
    keep(fold(codes, leaf.of_code(static_cast<std::uint8_t>(init.at(0).integer)), accumulator).codes().data());
    return std::move(y);
  };
  const auto of_bytes = [&]<class From>(From code) { return is_wide ? of_codes(code, int32{}) : of_codes(code, code); };
  return is_signed(from.storage()) ? of_bytes(int8{}) : of_bytes(uint8{});
}

/// A shape with neighbouring axes that are folded, or kept, joined.
struct joined_shape {
  std::array<index_t, 4> extents{1, 1, 1, 1};
  dimension_list<2> folded;

  /// None where it takes more than four axes.
  static std::optional<joined_shape> of(const std::vector<index_t>& shape, const std::vector<bool>& is_folded) {
    joined_shape joined;
    std::size_t last = shape.size();
    while (last > 0 && shape[last - 1] == 1) --last;
    const bool folds_last = last > 0 && is_folded[last - 1];
    joined.folded = folds_last ? dimension_list<2>{{1, 3}} : dimension_list<2>{{0, 2}};
    for (std::size_t axis = last, to = 3; axis-- > 0;) {
      const bool folds = folds_last == (to % 2 == 1);
      if (shape[axis] != 1 && is_folded[axis] != folds && to-- == 0) return std::nullopt;
      joined.extents[to] *= shape[axis];
    }
    return joined;
  }
};

}  // namespace pieces

/// reduce_window of N tensors: leaves become elements of the types `body_types`, results of `result_types` (which are
/// the same in the shipped specification), by to_destination_type. `body` takes N accumulators and N elements as
/// `scalars` each, and gives N; of one tensor it may be qtensor::add, multiply, max or min. The fold is that of
/// qtensor::reduce_window. on(executor) may come last, here and below; a body is then called by several threads at a
/// time. Throws naming the constraint that fails. Cost: with those bodies that of
/// qtensor::reduce_window for f32, i32, i64 and for i8 and ui8 with all their codes, expressed in f32, in bodies of
/// that storage or i32; else element by element.
template <class Body, qtensor::detail::execution_option... On>
std::vector<tensor> reduce_window(const std::vector<const tensor*>& inputs, const std::vector<const tensor*>& inits,
                                  const window_attributes& attributes, const std::vector<element_type>& body_types,
                                  const Body& body, const std::vector<element_type>& result_types, const On&... on) {
  const auto types = pieces::check_inputs(inputs, inits, body_types, result_types);
  const auto by = qtensor::detail::execution_among(on...).by;
  const auto body_of_scalars = pieces::body_of_scalars(body, body_types);
  const std::size_t rank = inputs[0]->shape().size();
  const auto w = pieces::windows_of(attributes, rank);
  if constexpr (pieces::named_body<Body>) {
    const dynamic_extents<pieces::most_rank> sizes(pieces::widened(inputs[0]->shape(), 1));
    const auto shape = pieces::narrowed(w.counts(sizes.to_array()), rank);
    const auto fold = [&](const auto& x, const auto& init, const auto& leaf) {
      return qtensor::reduce_window(x, init, w, leaf, body, identity{}, on...);
    };
    if (const auto y = pieces::folded(by, *inputs[0], *inits[0], body_types[0], shape, sizes, fold))
      return {pieces::converted(by, *y, result_types[0])};
  }
  const auto y = qtensor::reduce_window(
      pieces::elements_of_all(inputs), pieces::init_of(inits), w,
      [&](const scalars& x) { return pieces::convert_all(types, x, body_types); }, body_of_scalars,
      [&](const scalars& x) { return pieces::convert_all(body_types, x, result_types); }, on...);
  return pieces::results_of(y, pieces::narrowed(y.extents(), rank), result_types);
}

/// reduce of N tensors, likewise: a window over the whole of each folded dimension.
template <class Body, qtensor::detail::execution_option... On>
std::vector<tensor> reduce(const std::vector<const tensor*>& inputs, const std::vector<const tensor*>& inits,
                           const std::vector<index_t>& dimensions, const std::vector<element_type>& body_types,
                           const Body& body, const std::vector<element_type>& result_types, const On&... on) {
  const auto types = pieces::check_inputs(inputs, inits, body_types, result_types);
  const auto by = qtensor::detail::execution_among(on...).by;
  const auto body_of_scalars = pieces::body_of_scalars(body, body_types);
  const std::vector<index_t>& shape = inputs[0]->shape();
  const index_t rank = static_cast<index_t>(shape.size());
  window_attributes w;
  w.window_dimensions.assign(shape.size(), 1);
  std::vector<bool> folded(shape.size(), false);
  for (index_t d : dimensions) {
    require(d >= 0 && d < rank, "dimension ", d, " is reduced, but the inputs have rank ", rank,
            "; constraint (C4): 0 <= dimensions < rank(inputs[0]).");
    require(!folded[static_cast<std::size_t>(d)], "dimension ", d,
            " is given twice; constraint (C5): is_unique(dimensions).");
    folded[static_cast<std::size_t>(d)] = true;
    w.window_dimensions[static_cast<std::size_t>(d)] = shape[static_cast<std::size_t>(d)];
  }
  std::vector<index_t> kept;
  for (std::size_t axis = 0; axis < shape.size(); ++axis)
    if (!folded[axis]) kept.push_back(shape[axis]);
  if (inputs[0]->size() == 0) {  // nothing to fold: the init value, converted, or no results
    const scalars seed =
        pieces::convert_all(body_types, pieces::convert_all(types, pieces::init_of(inits), body_types), result_types);
    dense<scalars, pieces::most_rank> y(pieces::widened(kept, 1), seed);
    return pieces::results_of(y, kept, result_types);
  }
  if constexpr (pieces::named_body<Body>) {
    if (const auto joined = pieces::joined_shape::of(shape, folded); joined && inputs.size() == 1) {
      const auto fold = [&](const auto& x, const auto& init, const auto& leaf) {
        return qtensor::reduce(x, init, joined->folded, leaf, body, identity{}, on...);
      };
      if (const auto y =
              pieces::folded(by, *inputs[0], *inits[0], body_types[0], kept, dynamic_extents<4>(joined->extents), fold))
        return {pieces::converted(by, *y, result_types[0])};
    }
  }
  const auto y = reduce_window(inputs, inits, w, body_types, body_of_scalars, result_types, on...);
  std::vector<tensor> out;
  for (const tensor& one : y) {
    out.emplace_back(one.type(), kept);
    std::copy(one.bytes().begin(), one.bytes().end(), out.back().bytes().begin());
  }
  return out;
}

/// select_and_scatter: `select` takes two elements of the operand, scatter's leaves become `scatter_type` and the
/// result `result_type`.
template <class Select, class Scatter, qtensor::detail::execution_option... On>
tensor select_and_scatter(const tensor& operand, const tensor& source, const tensor& init,
                          const window_attributes& attributes, const Select& select, const element_type& scatter_type,
                          const Scatter& scatter, const element_type& result_type, const On&... on) {
  require(operand.type() == source.type(), "operand is ", to_string(operand.type()), " and source ",
          to_string(source.type()), "; constraint (C1): element_type(operand) = element_type(source).");
  require(operand.type() == init.type(), "operand is ", to_string(operand.type()), " and the init value ",
          to_string(init.type()), "; constraint (C3): element_type(init_value) = element_type(operand).");
  require(operand.shape().size() == source.shape().size(),
          "operand and source have different ranks; constraint (C2): shape(source) = num_windows.");
  const auto types = pieces::check_inputs({&operand}, {&init}, {scatter_type}, {result_type});
  const auto w = pieces::windows_of(attributes, operand.shape().size());
  const auto y = qtensor::select_and_scatter(
      pieces::elements_of_all({&operand}), pieces::elements_of_all({&source}), pieces::init_of({&init}), w,
      [&](const scalars& a, const scalars& b) { return static_cast<bool>(select(a[0], b[0])); },
      [&](const scalars& x) { return pieces::convert_all(types, x, {scatter_type}); },
      [&](const scalars& a, const scalars& b) { return scalars{scatter(a[0], b[0])}; },
      [&](const scalars& x) { return pieces::convert_all({scatter_type}, x, {result_type}); }, on...);
  return pieces::results_of(y, operand.shape(), {result_type})[0];
}

}  // namespace QTENSOR_ABI

}  // namespace qtensor::compat::stablehlo
