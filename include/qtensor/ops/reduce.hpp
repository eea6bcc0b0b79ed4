// Reduce: fold dimensions of one or more tensors by callables, with conversions at the leaves and of the result.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <qtensor/ops/reduce_bytes.hpp>
#include <qtensor/ops/reduce_parts.hpp>

namespace qtensor::inline QTENSOR_ABI {

/// The dimensions that a reduction folds: `dimensions(0, 2)`. Their number is part of the type, as it decides the rank
/// of the result.
template <std::size_t N>
struct dimension_list {
  std::array<int, N> items;
};
template <class... D>
requires(std::convertible_to<D, int>&&...) constexpr dimension_list<sizeof...(D)> dimensions(D... d) {
  return {{static_cast<int>(d)...}};
}

/// The conversion that changes nothing, of any number of elements.
struct identity {
  template <class T>
  constexpr const T& operator()(const T& x) const {
    return x;
  }
  template <class... T>
  requires(sizeof...(T) > 1) constexpr std::tuple<T...> operator()(const T&... x) const { return {x...}; }
};

namespace ops {

template <class T>
inline constexpr bool is_tuple = false;
template <class... T>
inline constexpr bool is_tuple<std::tuple<T...>> = true;
template <class A, class B>
inline constexpr bool is_tuple<std::pair<A, B>> = true;
template <class T, std::size_t N>
inline constexpr bool is_tuple<std::array<T, N>> = true;

/// One value as a tuple of one; a tuple as it is. What is given away is not copied: elements may own memory.
template <class T>
constexpr auto as_tuple(T&& x) {
  using value = std::remove_cvref_t<T>;
  if constexpr (is_tuple<value>)
    return std::apply(
        []<class... Item>(Item&&... item) {
          return std::tuple<std::remove_cvref_t<Item>...>(std::forward<Item>(item)...);
        },
        std::forward<T>(x));
  else
    return std::tuple<value>(std::forward<T>(x));
}
template <class T>
constexpr decltype(auto) from_tuple(T&& t) {
  if constexpr (std::tuple_size_v<std::remove_cvref_t<T>> == 1)
    return std::get<0>(std::forward<T>(t));
  else
    return std::forward<T>(t);
}

template <class F, class Tuple>
struct invocable_with : std::false_type {};
template <class F, class... T>
struct invocable_with<F, std::tuple<T...>> : std::is_invocable<const F&, const T&...> {};

/// f(a..., b...) of the items of two tuples, none of them copied.
template <class F, class A, class B>
constexpr decltype(auto) apply_to_both(const F& f, const A& a, const B& b) {
  return std::apply(
      [&](const auto&... first) -> decltype(auto) {
        return std::apply([&](const auto&... second) -> decltype(auto) { return f(first..., second...); }, b);
      },
      a);
}

/// The element types that a conversion makes of these.
template <class F, class Tuple>
using converted_t = decltype(as_tuple(std::apply(std::declval<const F&>(), std::declval<const Tuple&>())));

template <class Elements, class... Region>
auto regions_alone(const Region&... region) {
  static_assert(sizeof...(Region) >= 1 && sizeof...(Region) <= 3,
                "qtensor: a reduction takes a body, which may have an input conversion before it and an output "
                "conversion after it.");
  const auto all = std::tie(region...);
  if constexpr (sizeof...(Region) == 1) {
    return std::tuple<identity, Region..., identity>(identity{}, region..., identity{});
  } else if constexpr (sizeof...(Region) == 2) {
    using first = std::remove_cvref_t<decltype(std::get<0>(all))>;
    if constexpr (invocable_with<first, Elements>::value)
      return std::tuple<Region..., identity>(region..., identity{});
    else
      return std::tuple<identity, Region...>(identity{}, region...);
  } else {
    return std::tuple<Region...>(region...);
  }
}
/// input_conversion, body and output_conversion, the missing ones identities, from arguments among which an executor
/// may be. As in the RFC, a conversion is known by its place beside the body: it takes N elements where the body takes
/// 2N.
template <class Elements, class... Argument>
auto regions_of(const Argument&... argument) {
  return qtensor::detail::with_execution(
      [](const auto&, const auto&... region) { return regions_alone<Elements>(region...); }, argument...);
}

/// Types that know more at run time than in C++: quantized numbers their scale and zero point.
template <class T>
constexpr bool same_run_time_type(const T& a, const T& b) {
  if constexpr (requires { a.type() == b.type(); })
    return a.type() == b.type();
  else
    return true;
}
template <class... T>
constexpr bool same_run_time_types(const std::tuple<T...>& a, const std::tuple<T...>& b) {
  return [&]<std::size_t... I>(std::index_sequence<I...>) {
    return (same_run_time_type(std::get<I>(a), std::get<I>(b)) && ...);
  }
  (std::index_sequence_for<T...>{});
}

/// A fold of tuples of elements: seeded with the converted init values, then body(accumulator..., element...) for one
/// element after the other.
template <class Elements, class Input, class Body, class Output>
struct folding {
  using elements = Elements;
  using input_type = Input;
  using body_type = Body;
  using state = converted_t<Input, Elements>;
  using result = converted_t<Output, state>;

  const Input& input;
  const Body& body;
  const Output& output;

  constexpr state leaf(const Elements& x) const { return as_tuple(std::apply(input, x)); }
  constexpr state step(const state& a, const state& b) const {
    static_assert(
        invocable_with<Body, decltype(std::tuple_cat(a, b))>::value,
        "qtensor: reduce (C6): the body takes N accumulators and N elements of the types that input_conversion gives "
        "(select_and_scatter C10: so does scatter).");
    using returned = std::remove_cvref_t<decltype(as_tuple(apply_to_both(body, a, b)))>;
    static_assert(std::is_same_v<returned, state>,
                  "qtensor: reduce (C6): the body gives the types it takes; an output_conversion changes them "
                  "afterwards (select_and_scatter C10: so does scatter).");
    return as_tuple(apply_to_both(body, a, b));
  }
  constexpr result finish(const state& seed, const state& a) const {
    require(same_run_time_types(seed, a),
            "the body gave a number of another scale or zero point than it took; constraint (C6): body has type "
            "(E, E) -> E; of scatter (C10).");
    return as_tuple(std::apply(output, a));
  }
};

/// The fold of a tuple of regions (regions_of), which must outlive it.
template <class Elements, class Input, class Body, class Output>
folding<Elements, Input, Body, Output> fold_of(const std::tuple<Input, Body, Output>& regions) {
  return {std::get<0>(regions), std::get<1>(regions), std::get<2>(regions)};
}

/// Option 3 of the RFC: the accumulator has the type of the init value, and the body takes (element, accumulator).
template <class Elements, class Init, class Body>
struct front_to_back {
  using elements = Elements;
  using body_type = identity;  // not one of our bodies: it takes the element first
  using state = Init;
  using result = Init;

  const Body& body;

  constexpr const Elements& leaf(const Elements& x) const { return x; }
  constexpr state step(const state& a, const Elements& x) const {
    using returned = std::remove_cvref_t<decltype(as_tuple(apply_to_both(body, x, a)))>;
    static_assert(std::is_same_v<returned, state>,
                  "qtensor: reduce, front to back: the body takes (element, accumulator) and gives an accumulator, "
                  "whose type is that of the init value.");
    return as_tuple(apply_to_both(body, x, a));
  }
  constexpr result finish(const state& seed, const state& a) const {
    require(same_run_time_types(seed, a), "the body gave a number of another scale or zero point than the init value ",
            "has; constraint: element_type(init_values) = element_type(results).");
    return a;
  }
};

/// Inputs as a tuple of element sources, init values as a tuple.
template <class X>
auto inputs_of(const X& x) {
  if constexpr (is_tuple<X>)
    return std::apply(
        [](const auto&... one) {
          return std::tuple<elements_type<std::remove_cvref_t<decltype(one)>>...>(elements(one)...);
        },
        x);
  else
    return std::tuple<elements_type<X>>(elements(x));
}
template <class Inputs>
struct element_tuple;
template <class... X>
struct element_tuple<std::tuple<X...>> {
  using type = std::tuple<typename X::value_type...>;
  static constexpr int rank = std::tuple_element_t<0, std::tuple<X...>>::rank;
  static_assert(((X::rank == rank) && ...), "qtensor: reduce (C1): all inputs have one shape, hence one rank.");
};

/// Throws unless inputs and init values agree, as far as types did not say it.
template <class Inputs, class Init>
void check_inputs(const Inputs& inputs, const Init& init) {
  using all = element_tuple<Inputs>;
  static_assert(std::tuple_size_v<Inputs> == std::tuple_size_v<Init>,
                "qtensor: reduce (C3): there are as many init values as inputs.");
  const auto shape = std::get<0>(inputs).extents();
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    (require(std::get<I>(inputs).extents() == shape, "input ", static_cast<int>(I),
             " has another shape than input 0; constraint (C1): same(shape(inputs...))."),
     ...);
    const bool is_empty = std::find(shape.begin(), shape.end(), 0) != shape.end();  // no type to compare with
    const auto check_type = [&](const auto& input, const auto& value, int i) {
      if constexpr (requires { value.type() == input.type(); })
        require(is_empty || value.type() == input.type(), "init value ", i, " has scale ", value.scale,
                " and zero point ", value.zero_point, ", its input ", input.type().scale, " and ",
                input.type().zero_point, "; constraint (C2): element_type(inputs...) = element_type(init_values...).");
    };
    if constexpr (std::is_same_v<typename all::type, Init>)
      (check_type(std::get<I>(inputs), std::get<I>(init), static_cast<int>(I)), ...);
  }
  (std::make_index_sequence<std::tuple_size_v<Inputs>>{});
}

/// The lines of all inputs through one index: i -> a tuple of elements.
template <class... X, std::size_t Rank>
auto lines_of(const std::tuple<X...>& inputs, const std::array<index_t, Rank>& at, int axis) {
  return std::apply(
      [&](const auto&... x) {
        return [lines = std::tuple(x.line(at, axis)...)](index_t i) {
          return std::apply([&](const auto&... line) { return std::tuple<typename X::value_type...>(line(i)...); },
                            lines);
        };
      },
      inputs);
}

/// A line of neighbours of one input: i -> a tuple of the element.
template <class Unit, class T>
struct unit_tuples {
  Unit unit;
  std::tuple<T> operator()(index_t i) const { return std::tuple<T>(unit(i)); }
};

/// Calls use(line_through): index -> lines_of it, as lines of neighbours where a single input has them so: loops over
/// those are the faster ones.
template <class... X, class Use>
void with_lines(const std::tuple<X...>& inputs, int axis, const Use& use) {
  using first_type = std::tuple_element_t<0, std::tuple<X...>>;
  using index_array = index_of_rank<first_type::rank>;
  if constexpr (sizeof...(X) == 1 && requires(const first_type& x) { x.line(index_array{}, axis).unit(); }) {
    const first_type& x = std::get<0>(inputs);
    if (x.line(index_array{}, axis).step == 1)
      return use([&x, axis](const index_array& at) {
        const auto unit = x.line(at, axis).unit();
        return unit_tuples<std::remove_const_t<decltype(unit)>, typename first_type::value_type>{unit};
      });
  }
  use([&inputs, axis](const index_array& at) { return lines_of(inputs, at, axis); });
}

/// Whether floats lie as they are folded, by a body of ours.
template <class Fold, class Line>
inline constexpr bool folds_floats = false;
template <class Fold, class Unit>
requires requires(const Unit& unit) {
  typename Fold::body_type::rule;
  requires std::is_same_v<decltype(unit.first), const float*>;
  requires std::is_same_v<typename Fold::state, std::tuple<float>>;
  requires std::is_same_v<typename Fold::input_type, identity> ||
      std::is_same_v<typename Fold::input_type, convert_to<f32>>;
}
inline constexpr bool folds_floats<Fold, unit_tuples<Unit, float>> = true;

/// A step of n folds side by side: states[i] takes element i of a line. Floats go by vectors.
template <class Fold, class Line>
void step_beside(const Fold& fold, const Line& line, index_t n, typename Fold::state* states) {
  if constexpr (folds_floats<Fold, Line>) {
    using op = typename lanes_of<typename Fold::body_type::rule>::type;
    simd::fold_lines<op>(&line.unit.first, 1, n, &std::get<0>(states[0]));
  } else {
    for (index_t i = 0; i < n; ++i) states[i] = fold.step(states[i], fold.leaf(line(i)));
  }
}

/// Which dimensions are folded, and what is left.
template <int Rank, std::size_t N>
struct split_shape {
  static constexpr std::size_t kept_rank = static_cast<std::size_t>(Rank) - N;
  index_of_rank<Rank> kept{}, folded{};  // extents, 1 on the axes of the other kind
  std::array<bool, static_cast<std::size_t>(Rank)> is_folded{};
  std::array<int, kept_rank> kept_axes{};
  int last_folded = -1;

  split_shape(const index_of_rank<Rank>& extents, const dimension_list<N>& dims) {
    for (int d : dims.items) {
      require(d >= 0 && d < Rank, "dimension ", d, " is reduced, but the inputs have rank ", Rank,
              "; constraint (C4): 0 <= dimensions < rank(inputs[0]).");
      require(!is_folded[static_cast<std::size_t>(d)], "dimension ", d,
              " is given twice; constraint (C5): is_unique(dimensions).");
      is_folded[static_cast<std::size_t>(d)] = true;
    }
    std::size_t next = 0;
    for (std::size_t axis = 0; axis < extents.size(); ++axis) {
      kept[axis] = is_folded[axis] ? 1 : extents[axis];
      folded[axis] = is_folded[axis] ? extents[axis] : 1;
      if (is_folded[axis])
        last_folded = static_cast<int>(axis);
      else
        kept_axes[next++] = static_cast<int>(axis);
    }
  }
  /// An index of the result.
  std::array<index_t, kept_rank> result_index(const index_of_rank<Rank>& at) const {
    std::array<index_t, kept_rank> index{};
    for (std::size_t i = 0; i < kept_rank; ++i) index[i] = at[static_cast<std::size_t>(kept_axes[i])];
    return index;
  }
};

/// Calls write(result index, results) for every result of a fold; write is a result_writers. Whatever the order in
/// memory, each result is seeded first and takes its elements by ascending index, last axis fastest.
template <class Inputs, class Fold, std::size_t N, int Rank, class Write>
void fold_dimensions(const Inputs& inputs, const Fold& fold, const typename Fold::state& seed,
                     const split_shape<Rank, N>& shape, Write& write) {
  using state = typename Fold::state;
  using index_array = index_of_rank<Rank>;
  // Along the contiguous axis where the order allows it: one result a line where it is the last folded axis, a panel of
  // results side by side where it is kept.
  int axis = std::get<0>(inputs).contiguous_axis();
  const bool panels = N == 0 || !shape.is_folded[static_cast<std::size_t>(axis)];
  if (!panels) axis = shape.last_folded;
  const auto a = static_cast<std::size_t>(axis);
  index_array kept = shape.kept, folded = shape.folded;
  const index_t length = panels ? kept[a] : folded[a];
  (panels ? kept : folded)[a] = length > 0 ? 1 : 0;

  // Results next to each other along the longest kept axis, a step of each in turn: while one waits for its steps, the
  // CPU goes on with the next.
  const int beside = static_cast<int>(std::max_element(kept.begin(), kept.end()) - kept.begin());
  struct chain {
    index_array at;
    state acc;
  };
  const auto in_turn = [&]<std::size_t... I>(const index_array& at, std::index_sequence<I...>) {
    std::array all{chain{I == 0 ? at : moved_along(at, beside, static_cast<index_t>(I)), seed}...};
    reference::for_each_index(index_array{}, folded, [&](const index_array& along) {
      with_lines(inputs, axis, [&](const auto& line_through) {
        const std::array line{line_through(sum_of(all[I].at, along))...};
        std::array here{all[I].acc...};  // in registers: nothing that is read can be it
        for (index_t i = 0; i < length; ++i) ((here[I] = fold.step(here[I], fold.leaf(line[I](i)))), ...);
        ((all[I].acc = here[I]), ...);
      });
    });
    (write(shape.result_index(all[I].at), fold.finish(seed, all[I].acc)), ...);
  };
  const auto result = [&](const index_array& at) { in_turn(at, std::index_sequence<0>{}); };
  constexpr index_t panel = 512;
  std::vector<state> acc(panels ? static_cast<std::size_t>(std::min(panel, length)) : 0, seed);
  const auto results = [&](index_array at) {
    for (at[a] = 0; at[a] < length; at[a] += panel) {
      const index_t count = std::min(panel, length - at[a]);
      std::fill(acc.begin(), acc.end(), seed);
      reference::for_each_index(index_array{}, folded, [&](const index_array& along) {
        with_lines(inputs, axis, [&](const auto& line_through) {
          step_beside(fold, line_through(sum_of(at, along)), count, acc.data());
        });
      });
      for (index_t i = 0; i < count; ++i)
        write(shape.result_index(moved_along(at, axis, i)), fold.finish(seed, acc[static_cast<std::size_t>(i)]));
    }
  };
  if constexpr (byte_fold<Inputs, Fold>::value && N > 0) {
    // Not where a fold along lines has to go another way than memory does.
    const bool in_order = axis == std::get<0>(inputs).contiguous_axis();
    if (in_order && dynamic_extents<Rank>(std::get<0>(inputs).extents()).size() >= fewest_bytes) {
      byte_folder folder(std::get<0>(inputs), fold, seed, shape, write, result, results);
      if (folder.run()) return;
    }
  }
  if (panels) return reference::for_each_index(index_array{}, kept, results);
  constexpr index_t chains = 8, shortest = 32;  // short ones do not wait for long
  const auto b = static_cast<std::size_t>(beside);
  const index_t count = std::exchange(kept[b], 1), in_chains = length < shortest ? 0 : count / chains * chains;
  reference::for_each_index(index_array{}, kept, [&](index_array at) {
    for (; at[b] < in_chains; at[b] += chains) in_turn(at, std::make_index_sequence<chains>{});
    for (; at[b] < count; ++at[b]) result(at);
  });
}

/// What holds results of one element type: a quantized tensor, dense elements, or one element where no axis is left.
template <class T, std::size_t Rank>
struct result_of {
  using type = dense<T, static_cast<int>(Rank)>;
};
template <class S, std::size_t Rank>
struct result_of<quantized_number<S>, Rank> {
  static_assert(std::is_same_v<typename S::granularity_type, per_tensor> &&
                    std::is_same_v<typename S::zero_granularity_type, per_tensor>,
                "qtensor: a reduction gives per-tensor quantized results; name a per_tensor scheme in the output "
                "conversion, requantize_to<S>(scale, zero_point).");
  using type = tensor<S, dynamic_extents<static_cast<int>(Rank)>>;
};
template <class T>
struct result_of<T, 0> {
  using type = T;
};
template <class S>
struct result_of<quantized_number<S>, 0> {
  using type = quantized_number<S>;
};

/// Writes results of one type; quantized ones all have the type of the result of the seed alone.
template <class T, std::size_t Rank>
class result_writer {
 public:
  using value_type = T;
  using type = typename result_of<T, Rank>::type;
  using index_array = std::array<index_t, Rank>;
  /// Whether a result lies in memory as a unit of its own.
  static constexpr bool has_units = [] {
    if constexpr (quantized_number_type<T>)
      return Rank > 0 && !is_packed<typename T::scheme_type::code_format>;
    else
      return Rank > 0;
  }();

  result_writer(const index_array& extents, const T& of_seed) : like_(of_seed), strides_(dense_strides(extents)) {
    if constexpr (Rank == 0) {
      out_ = of_seed;
    } else if constexpr (quantized_number_type<T>) {
      using S = typename T::scheme_type;
      out_ = type(dynamic_extents<static_cast<int>(Rank)>(extents));
      if (out_.size() > 0) {
        out_.span().set_storage_scale_code({}, encode<typename S::scale_format>(of_seed.scale));
        if constexpr (S::has_zero_point) out_.span().set_storage_zero_point({}, of_seed.zero_point);
      }
    } else {
      out_ = type(extents);
    }
  }
  /// What the memory holds for a result; throws where it has another type than the others.
  auto unit_of(const T& value) const {
    require(same_run_time_type(like_, value),
            "two results have different scales or zero points; constraint: results have one element type.");
    if constexpr (quantized_number_type<T>)
      return qtensor::detail::unit_from<typename T::scheme_type::code_format>(value.code);
    else
      return value;
  }
  /// The units of the results from an index on, along the last axis.
  auto* units(const index_array& at) requires has_units {
    index_t place = 0;
    for (std::size_t axis = 0; axis < Rank; ++axis) place += at[axis] * strides_[axis];
    if constexpr (quantized_number_type<T>)
      return out_.codes().data() + place;
    else
      return out_.data() + place;
  }
  void set(const index_array& at, const T& value) {
    if constexpr (Rank == 0) {
      out_ = value;
    } else if constexpr (has_units) {
      *units(at) = unit_of(value);
    } else {
      unit_of(value);
      out_.span().set_storage_code(at, value.code);
    }
  }
  type take() { return std::move(out_); }
  /// Results along the last axis from whose multiples on others begin in another byte.
  static constexpr index_t step = has_units ? 1 : 8;

 private:
  T like_;
  index_array strides_;
  type out_{};
};

/// Writers of a tuple of results.
template <class Results, std::size_t Rank>
class result_writers;
template <class... T, std::size_t Rank>
class result_writers<std::tuple<T...>, Rank> {
 public:
  using index_array = std::array<index_t, Rank>;
  result_writers(const index_array& extents, const std::tuple<T...>& of_seed)
      : all_(std::apply([&](const T&... seed) { return std::tuple(result_writer<T, Rank>(extents, seed)...); },
                        of_seed)) {}
  void operator()(const index_array& at, const std::tuple<T...>& values) {
    [&]<std::size_t... I>(std::index_sequence<I...>) { (std::get<I>(all_).set(at, std::get<I>(values)), ...); }
    (std::index_sequence_for<T...>{});
  }
  static constexpr index_t step = std::max({result_writer<T, Rank>::step...});
  /// The results result_of(i), i < n, from an index on along the last axis.
  template <class ResultOf>
  void row(const index_array& at, index_t n, const ResultOf& result_of) {
    if constexpr (sizeof...(T) == 1 && (result_writer<T, Rank>::has_units && ...)) {
      auto* const to = first().units(at);
      for (index_t i = 0; i < n; ++i) to[i] = first().unit_of(std::get<0>(result_of(i)));
    } else {
      for (index_t i = 0; i < n; ++i) (*this)(moved_along(at, static_cast<int>(Rank) - 1, i), result_of(i));
    }
  }
  /// The writer of the first results.
  auto& first() { return std::get<0>(all_); }
  auto take() {
    return std::apply(
        [](auto&... writer) {
          return from_tuple(std::tuple<typename std::remove_reference_t<decltype(writer)>::type...>(writer.take()...));
        },
        all_);
  }

 private:
  std::tuple<result_writer<T, Rank>...> all_;
};

/// Folds dimensions by any fold, into new results, on an executor that is cut along a kept axis.
template <class Inputs, class Fold, std::size_t N, executor By = serial>
auto reduce_by(const Inputs& inputs, const Fold& fold, const typename Fold::state& seed, const dimension_list<N>& dims,
               const By& by = {}) {
  constexpr int rank = element_tuple<Inputs>::rank;
  static_assert(static_cast<int>(N) <= rank,
                "qtensor: reduce (C4, C5): more dimensions are given than the inputs have.");
  const split_shape<rank, N> shape(std::get<0>(inputs).extents(), dims);
  using writers = result_writers<typename Fold::result, shape.kept_rank>;
  const auto extents = shape.result_index(shape.kept);
  writers out(extents, fold.finish(seed, seed));
  if constexpr (!std::same_as<By, serial>) {
    constexpr index_t at_once = byte_fold<Inputs, Fold>::value ? 8 : 1;
    const index_t work = dynamic_extents<rank>(std::get<0>(inputs).extents()).size() / at_once;
    const auto cut = cut_results(by, extents, writers::step, work, any_axis);
    if (cut.parts > 1) {
      cut.for_each(by, [&](index_t, index_t first, index_t n) {
        const auto some = inputs_part(inputs, shape.kept_axes[static_cast<std::size_t>(cut.axis)], first, n);
        const split_shape<rank, N> kept(std::get<0>(some).extents(), dims);
        writers_part to(out, moved_along(typename writers::index_array{}, cut.axis, first));
        fold_dimensions(some, fold, seed, kept, to);
      });
      return out.take();
    }
  }
  fold_dimensions(inputs, fold, seed, shape, out);
  return out.take();
}

}  // namespace ops

/// results[j...] = output_conversion(fold of input_conversion(x[...]) over `dims`): the accumulator starts as
/// input_conversion(init), then takes body(accumulator, element) for one element after the other by ascending index,
/// last axis fastest. (The RFC leaves the order free; this is ours, for every body.)
///
///   x         a tensor (see `elements`), or a std::tuple of N tensors of one shape
///   init      an element of x's type (number_like(x, 0)), or a tuple of N; used once, at the front
///   dims      any subset of the dimensions; results keep the others in order
///   regions   [input_conversion,] body [, output_conversion]: callables; conversions take N elements and give N (as a
///             tuple where N > 1), the body takes N accumulators and N elements and gives N. A missing conversion is
///             the identity.
///   on(e)     an executor, anywhere among the regions: kept axes are cut, so that each result is folded by one thread,
///             in order; the callables and functions in x are then called by several threads at a time. A reduction of
///             all axes stays on one thread
///
/// Gives a tensor<S> where results are quantized numbers, else dense elements; a single element where no dimension is
/// left; a tuple of these where N > 1. Types that cannot match do not compile; shapes, scales and zero points that do
/// not match throw, naming the constraint of the RFC. (Every scheme is expressed in f32, so expressed types agree.)
/// Callables are pure: how often they are called is not said, as results may be known already.
///   reduce(x, number_like(x, 0), dimensions(1), requantize_to<i32>(.25f), add, requantize_to<u8>(1.f, 5))
template <class X, class Init, std::size_t N, class... Region>
auto reduce(const X& x, const Init& init, const dimension_list<N>& dims, const Region&... regions) {
  const auto inputs = ops::inputs_of(x);
  using element = typename ops::element_tuple<std::remove_const_t<decltype(inputs)>>::type;
  const auto inits = ops::as_tuple(init);
  static_assert(std::is_same_v<std::remove_const_t<decltype(inits)>, element>,
                "qtensor: reduce (C2): each init value has the element type of its input; number_like(x, 0) makes it.");
  ops::check_inputs(inputs, inits);
  const auto all = ops::regions_of<element>(regions...);
  const auto fold = ops::fold_of<element>(all);
  return ops::reduce_by(inputs, fold, fold.leaf(inits), dims, qtensor::detail::execution_among(regions...).by);
}

}  // namespace qtensor::inline QTENSOR_ABI
