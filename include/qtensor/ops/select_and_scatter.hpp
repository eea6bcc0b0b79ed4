// Select and scatter: each window selects one of its elements, and values are folded into the places selected.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>
#include <qtensor/ops/reduce_window.hpp>

namespace qtensor::inline QTENSOR_ABI {

namespace ops {

/// Throws where shapes, scales or zero points do not match: constraints (C1) to (C3).
template <class X, class Values, class Element, int Rank>
void check_select_and_scatter(const X& x, const Values& values, const Element& init, const window<Rank>& w) {
  const auto extents = x.extents(), counts = w.counts(extents);
  for (std::size_t axis = 0; axis < extents.size(); ++axis) {
    require(w.base_dilations[axis] == 1 && w.window_dilations[axis] == 1,
            "select_and_scatter is given a dilation; its windows have none.");
    require(values.extents()[axis] == counts[axis], "source has ", values.extents()[axis], " values along axis ",
            static_cast<int>(axis), " for ", counts[axis], " windows; constraint (C2): shape(source) = num_windows.");
  }
  const auto check_type = [&](const auto& type_of, const char* constraint) {
    if constexpr (requires { type_of.type() == init.type(); })
      require(type_of.type() == init.type(), "the init value has scale ", init.scale, " and zero point ",
              init.zero_point, ", not ", type_of.type().scale, " and ", type_of.type().zero_point, "; constraint ",
              constraint);
  };
  if (dynamic_extents<Rank>(extents).size() > 0)
    check_type(x, "(C3): element_type(init_value) = element_type(operand).");
  if (dynamic_extents<Rank>(counts).size() > 0)
    check_type(values, "(C1): element_type(operand) = element_type(source).");
}

/// The place in x, by dense strides, of the element that a window selects; none where it holds nothing but padding.
template <class X, int Rank, class Select>
std::optional<index_t> selected_place(const X& x, const index_of_rank<Rank>& strides, const window<Rank>& w,
                                      const index_of_rank<Rank>& of_window, const Select& select) {
  using element = decltype(x.line(of_window, Rank - 1)(0));
  const auto extents = x.extents();
  std::optional<index_t> selected;
  std::optional<element> winner;
  reference::for_each_index(index_of_rank<Rank>{}, w.sizes, [&](const index_of_rank<Rank>& k) {
    index_of_rank<Rank> at{};
    index_t place = 0;
    for (std::size_t axis = 0; axis < at.size(); ++axis) {
      at[axis] = of_window[axis] * w.strides[axis] + k[axis] - w.padding_low[axis];
      if (at[axis] < 0 || at[axis] >= extents[axis]) return;
      place += at[axis] * strides[axis];
    }
    const element next = x.line(at, Rank - 1)(0);
    if (winner && select(*winner, next)) return;
    selected = place;
    winner = next;
  });
  return selected;
}

/// use(first, extents) for parts of an array of results, by an executor (cut_results).
template <class By, class Array, class Allows, class Use>
void use_in_parts(const By& by, const Array& counts, index_t last_step, index_t work, const Allows& allows,
                  const Use& use) {
  const auto cut = cut_results(by, counts, last_step, work, allows);
  if (cut.parts == 1) return use(Array{}, counts);
  cut.for_each(by, [&](index_t, index_t first, index_t n) {
    Array some = counts;
    some[static_cast<std::size_t>(cut.axis)] = n;
    use(moved_along(Array{}, cut.axis, first), some);
  });
}

}  // namespace ops

/// The gradient of pooling. For every window of `operand` (padding is not an element of it), in ascending order, the
/// element that wins `select(winner so far, next) ? winner : next` is selected, and the window's value in `source` goes
/// to its place: results[i] = output_conversion(fold of input_conversion(values) by scatter), seeded with
/// input_conversion(init), values in the order of their windows. With >= the first of equal elements stays. A window of
/// nothing but padding selects nothing, and its value is dropped.
///
///   select    a callable (E, E) -> bool on elements as they are: the conversions are not for it
///   regions   [input_conversion,] scatter [, output_conversion], as in `reduce`
///   w         sizes, strides and padding; its dilations must be 1
///   on(e)     an executor, anywhere among the regions: windows are cut along an axis on which they do not overlap
///
/// Types that cannot match do not compile; shapes, scales and zero points that do not match throw, naming the
/// constraint of the RFC.
template <class Operand, class Source, class Init, int Rank, class Select, class... Region>
auto select_and_scatter(const Operand& operand, const Source& source, const Init& init, const window<Rank>& w,
                        const Select& select, const Region&... regions) {
  using element = element_t<Operand>;
  using index_array = ops::index_of_rank<Rank>;
  static_assert(std::is_same_v<element_t<Source>, element>,
                "qtensor: select_and_scatter (C1): element_type(operand) = element_type(source).");
  static_assert(std::is_same_v<Init, element>,
                "qtensor: select_and_scatter (C3): element_type(init_value) = element_type(operand); number_like(x, 0) "
                "makes an init value.");
  static_assert(elements_type<Operand>::rank == Rank && elements_type<Source>::rank == Rank,
                "qtensor: select_and_scatter: operand, source and window have one rank.");
  static_assert(std::is_invocable_r_v<bool, const Select&, const element&, const element&>,
                "qtensor: select_and_scatter (C9): select takes two elements of the operand and gives a bool.");
  const auto x = elements(operand);
  const auto values = elements(source);
  ops::check_select_and_scatter(x, values, init, w);
  const index_array extents = x.extents(), counts = w.counts(extents), strides = dense_strides(extents);
  const index_t places = dynamic_extents<Rank>(extents).size(), windows = dynamic_extents<Rank>(counts).size();

  const auto all = ops::regions_of<std::tuple<element>>(regions...);
  const auto fold = ops::fold_of<std::tuple<element>>(all);
  const auto on = qtensor::detail::execution_among(regions...);
  using state = typename decltype(fold)::state;
  const state seed = fold.leaf(std::tuple<element>(init));

  // One accumulator a place; windows come in ascending order, and so do the values of a place. Windows that do not
  // overlap along an axis share no place.
  std::vector<state> sums(static_cast<std::size_t>(places), seed);
  const auto scatter = [&](const index_array& of_window) {
    const auto selected = ops::selected_place(x, strides, w, of_window, select);
    if (!selected) return;
    state& sum = sums[static_cast<std::size_t>(*selected)];
    sum = fold.step(sum, fold.leaf(std::tuple<element>(values.line(of_window, Rank - 1)(0))));
  };
  const auto allows = [&](std::size_t axis) { return w.sizes[axis] <= w.strides[axis]; };
  if (windows > 0)
    ops::use_in_parts(
        on.by, counts, 1, windows * dynamic_extents<Rank>(w.sizes).size(), allows,
        [&](const index_array& first, const index_array& some) { reference::for_each_index(first, some, scatter); });

  using writers = ops::result_writers<typename decltype(fold)::result, static_cast<std::size_t>(Rank)>;
  writers out(extents, fold.finish(seed, seed));
  const auto finish = [&](const index_array& at) {
    index_t place = 0;
    for (std::size_t axis = 0; axis < at.size(); ++axis) place += at[axis] * strides[axis];
    out(at, fold.finish(seed, sums[static_cast<std::size_t>(place)]));
  };
  ops::use_in_parts(
      on.by, extents, writers::step, places, ops::any_axis,
      [&](const index_array& first, const index_array& some) { reference::for_each_index(first, some, finish); });
  return out.take();
}

}  // namespace qtensor::inline QTENSOR_ABI
