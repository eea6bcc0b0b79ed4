// Reductions on an executor: parts of the elements that make some of the results, and where these results go.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <qtensor/core/executor.hpp>
#include <qtensor/ops/elements.hpp>
#include <tuple>

// Only kept axes are cut, and axes of windows: every result is folded by one thread, in its own order.
namespace qtensor::inline QTENSOR_ABI::ops {

/// Where results of these extents are cut: along an axis for which allows(axis) holds, last ones at multiples of
/// `last_step`; all of them take the work of so many elements.
template <executor By, std::size_t Rank, class Allows>
qtensor::detail::longest_cut cut_results(const By& by, const std::array<index_t, Rank>& extents, index_t last_step,
                                         index_t work, const Allows& allows) {
  qtensor::detail::longest_cut cut;
  for (std::size_t axis = 0; axis < Rank; ++axis)
    if (extents[axis] > 0 && allows(axis))
      cut.consider(by, static_cast<int>(axis), extents[axis], axis == Rank - 1 ? last_step : 1, work / extents[axis]);
  return cut;
}
inline constexpr auto any_axis = [](std::size_t) { return true; };

/// Elements from an index on of a source: all that the source is, but for extents and lines.
template <class X>
struct elements_part : X {
  using index_array = index_of_rank<X::rank>;
  index_array first, sizes;

  const index_array& extents() const { return sizes; }
  auto line(const index_array& at, int axis) const { return X::line(sum_of(at, first), axis); }
};

/// Elements [first, first + n) of all inputs along an axis.
template <class... X>
auto inputs_part(const std::tuple<X...>& inputs, int axis, index_t first, index_t n) {
  return std::apply(
      [&](const X&... x) {
        const auto part = [&]<class One>(const One& one) {
          index_of_rank<One::rank> sizes = one.extents();
          sizes[static_cast<std::size_t>(axis)] = n;
          return elements_part<One>{one, moved_along(index_of_rank<One::rank>{}, axis, first), sizes};
        };
        return std::tuple<elements_part<X>...>(part(x)...);
      },
      inputs);
}

/// A result_writer (ops/reduce.hpp) for results from an index on.
template <class Writer>
class writer_part {
 public:
  using value_type = typename Writer::value_type;
  using index_array = typename Writer::index_array;
  static constexpr bool has_units = Writer::has_units;

  writer_part(Writer& all, const index_array& first) : all_(all), first_(first) {}
  auto unit_of(const value_type& value) const { return all_.unit_of(value); }
  auto* units(const index_array& at) const requires has_units { return all_.units(sum_of(at, first_)); }

 private:
  Writer& all_;
  index_array first_;
};

/// result_writers for them.
template <class Writers>
class writers_part {
 public:
  using index_array = typename Writers::index_array;

  writers_part(Writers& all, const index_array& first) : all_(all), first_(first) {}
  template <class Values>
  void operator()(const index_array& at, const Values& values) const {
    all_(sum_of(at, first_), values);
  }
  template <class ResultOf>
  void row(const index_array& at, index_t n, const ResultOf& result_of) const {
    all_.row(sum_of(at, first_), n, result_of);
  }
  auto first() const { return writer_part(all_.first(), first_); }

 private:
  Writers& all_;
  index_array first_;
};

}  // namespace qtensor::inline QTENSOR_ABI::ops
