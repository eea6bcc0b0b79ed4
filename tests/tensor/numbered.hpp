// Tensors whose every code, scale and zero point tells where it lies, for tests of views and conversions.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <qtensor/reference/quantize.hpp>

/// A tensor of codes that count through its elements (in the tensor's own axes) and parameters that count through its
/// blocks.
template <class S, class Order = qtensor::row_major, class E>
auto numbered(const E& extents, const typename S::granularity_type& g = {},
              const typename S::zero_granularity_type& z = {}) {
  using namespace qtensor;
  tensor<S, E, Order> t(extents, g, z);
  const auto span = t.span();
  const auto storage = span.storage_extents();
  const auto unlike = [](auto count, int bits) {
    return static_cast<std::uint32_t>((count * 37 + 11) & ((index_t{1} << bits) - 1));
  };
  reference::for_each_index(typename E::array{}, storage, [&](const auto& at) {
    const auto index = reordered<Order>(at);
    index_t linear = 0;
    for (int axis = 0; axis < E::rank; ++axis) linear = linear * extents[axis] + index[static_cast<std::size_t>(axis)];
    span.set_storage_code(at, unlike(linear, S::code_format::bits));
    const index_t entry = span.scale_grid().entry(at);
    span.set_storage_scale_code(at, unlike(entry, S::scale_format::bits > 16 ? 30 : S::scale_format::bits));
    if constexpr (S::has_offset) span.set_storage_offset_code(at, unlike(entry + 5, S::offset_format::bits));
    if constexpr (S::has_zero_point) span.set_storage_zero_point(at, unlike(span.zero_grid().entry(at), 3));
  });
  if constexpr (S::has_tensor_scale) t.set_tensor_scale(0.375f);
  return t;
}

/// Whether `part` shows, element by element, what `whole` shows from `start` on. A part of lower rank (a chip) follows
/// the last axes of `start`.
template <class Whole, class Part>
bool shows(const Part& part, const Whole& whole, const typename Whole::index_array& start) {
  using namespace qtensor;
  bool same = part.tensor_scale() == whole.tensor_scale();
  constexpr std::size_t leading = static_cast<std::size_t>(Whole::rank - Part::rank);
  const auto extents = part.extents().to_array();
  reference::for_each_index(typename Part::index_array{}, extents, [&](const auto& at) {
    auto there = start;
    for (std::size_t axis = 0; axis < at.size(); ++axis) there[leading + axis] += at[axis];
    same = same && part.code(at) == whole.code(there) && part.scale_code(at) == whole.scale_code(there) &&
           part.zero_point(at) == whole.zero_point(there);
    const float a = part.storage_offset(reordered<typename Part::order_type>(at));
    const float b = whole.storage_offset(reordered<typename Whole::order_type>(there));
    same = same && bits_of(a) == bits_of(b);
  });
  return same;
}
