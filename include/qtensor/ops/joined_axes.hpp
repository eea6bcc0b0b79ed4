// Axes of tensors, joined to fewer and longer ones wherever that moves no element to another block.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>
#include <qtensor/simd/kernel.hpp>
#include <qtensor/tensor/view.hpp>

namespace qtensor::inline QTENSOR_ABI::ops {

/// Schemes, extents and orders whose axes may be joined: what their kernels know of a row are numbers of the view. That
/// is so unless rows are cut into groups of a length that the type says.
template <class S, class E, storage_order O>
inline constexpr bool may_join_axes = [] {
  using G = typename S::granularity_type;
  if constexpr (E::rank <= 1 || S::is_interleaved)
    return false;
  else if constexpr (simd::detail::static_group<G> == 0)
    return true;
  else
    return qtensor::detail::from_front(G::axis, E::rank) != O::axis(E::rank, E::rank - 1);
}();

/// A view, and elements in memory beside it, as a tensor of the same rank whose first axes are 1: the rows of
/// (8, 64, 7, 7) with a scale for each of the 64 are (1, 1, 8, 3136) in blocks of 49.
template <tensor_view_type View>
class joined_axes {
  using S = typename View::scheme_type;
  using array = typename View::index_array;
  using grid = typename View::grid;
  using extents_type = dynamic_extents<View::rank>;
  static constexpr std::size_t rank = static_cast<std::size_t>(View::rank), last = rank - 1;

 public:
  using view_type = basic_tensor_view<S, extents_type, typename View::order_type, typename View::access_type>;

  /// `steps`: elements in memory from one index to the next, in storage order. Nothing where no axes can be joined.
  /// `but_last`: the last axis stays alone.
  static std::optional<joined_axes> of(const View& w, const array& steps, bool but_last = false) {
    const array sizes = w.storage_extents();
    constexpr index_t unit_bits = index_t{8 * sizeof(typename View::code_unit)};
    const auto axis_of = [&](std::size_t a) {
      const index_t bits =
          a == last ? index_t{is_packed_code ? S::code_format::bits : unit_bits} : w.row_strides()[a] * unit_bits;
      return axis{sizes[a], steps[a], bits, part(w.scale_grid(), a), part(w.zero_grid(), a)};
    };
    joined_axes found;
    std::size_t to = last;
    axis joined = axis_of(last);
    for (std::size_t a = last; a-- > 0;) {
      const axis outer = axis_of(a);
      const bool may_join = !but_last || a + 1 < last;
      if (may_join && (outer.size == 1 || joined.take(outer))) continue;
      found.put(to--, joined);
      joined = outer;
    }
    found.put(to, joined);
    if (found.sizes_ == sizes || to == 0) return {};
    if (View::rank == 2 && sizes[last] != 1) return {};  // rows of matrices have kernels of their own
    for (; to-- > 0;) {
      found.put(to, joined);
      found.sizes_[to] = found.scales_.block[to] = found.zeros_.block[to] = 1;
      found.steps_[to] = found.steps_[to + 1] * found.sizes_[to + 1];
      found.bits_[to] = found.bits_[to + 1] * found.sizes_[to + 1];
    }
    return found;
  }

  const array& sizes() const { return sizes_; }
  const array& steps() const { return steps_; }
  view_type view(const View& w) const {
    array rows{};
    for (std::size_t a = 0; a < last; ++a) rows[a] = bits_[a] / index_t{8 * sizeof(typename View::code_unit)};
    rows[last] = w.row_strides()[last];
    const auto& m = w.memory();
    return view_type(
        {extents_type(reordered<typename View::order_type>(sizes_)), w.granularity(), w.zero_granularity()},
        {m.codes, m.scales, m.zero_points, m.offsets, m.tensor_scale}, rows, scales_, zeros_);
  }

 private:
  static constexpr bool is_packed_code =
      std::is_same_v<typename View::code_unit, std::uint8_t> && S::code_format::bits < 8;

  /// How an axis is cut into blocks: elements of one, and entries from one to the next.
  struct cut {
    index_t block, step;
    /// The same of an axis of `size` elements joined with one outside it that has `count`; false where that is none.
    bool take(index_t size, const cut& outer, index_t count) {
      if (block >= size) {
        *this = {outer.block * size, outer.step};
        return true;
      }
      return outer.block == 1 && count > 1 && size % block == 0 && outer.step == size / block * step;
    }
  };
  struct axis {
    index_t size, step, bits;  // elements, elements in memory and bits of codes from one to the next
    cut scales, zeros;

    bool take(const axis& outer) {
      if ((size > 1 && outer.step != step * size) || outer.bits != bits * size) return false;
      axis both = *this;
      if (size == 1) both.step = outer.step;  // there is nothing to step over
      if (!both.scales.take(size, outer.scales, outer.size)) return false;
      if (S::has_zero_point && !both.zeros.take(size, outer.zeros, outer.size)) return false;
      both.size *= outer.size;
      *this = both;
      return true;
    }
  };
  static cut part(const grid& g, std::size_t a) { return {g.block[a], g.stride[a]}; }

  void put(std::size_t a, const axis& x) {
    sizes_[a] = x.size, steps_[a] = x.step, bits_[a] = x.bits;
    scales_.block[a] = x.scales.block, scales_.stride[a] = x.scales.step;
    zeros_.block[a] = x.zeros.block, zeros_.stride[a] = x.zeros.step;
  }

  array sizes_{}, steps_{}, bits_{};
  grid scales_{}, zeros_{};
};

/// Calls use(view, sizes, steps) with the axes of a view and of elements in memory joined, or returns false.
template <tensor_view_type View, class Use>
bool with_joined_axes(const View& w, const typename View::index_array& steps, const Use& use) {
  if constexpr (may_join_axes<typename View::scheme_type, typename View::extents_type, typename View::order_type>)
    if (const auto axes = joined_axes<View>::of(w, steps)) {
      use(axes->view(w), axes->sizes(), axes->steps());
      return true;
    }
  return false;
}

/// Calls use(view) with a matrix of one column as the row that its codes are, or returns false.
template <tensor_view_type View, class Use>
requires(View::rank == 2) bool with_column_as_row(const View& w, const Use& use) {
  return w.storage_extents()[1] == 1 &&
         with_joined_axes(w, w.row_strides(), [&](const auto& row, const auto&...) { use(row); });
}

}  // namespace qtensor::inline QTENSOR_ABI::ops
