// Extents: the sizes of a tensor's axes, each part of the type or known at run time.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <concepts>
#include <qtensor/core/error.hpp>
#include <qtensor/core/support.hpp>
#include <type_traits>
#include <utility>

namespace qtensor {

/// `extents<dynamic, 4096>(rows)`: rank 2, the last extent part of the type. Holds its dynamic extents only (as mdspan
/// does); construct from those, or from all of them. Extents are at least 0; a negative one, or one that differs from
/// the type's, throws. `extents(2, 3, 64)` deduces all-dynamic extents. Any rank from 1.
template <index_t... E>
requires(sizeof...(E) > 0) class extents {
  static_assert(((E >= 0 || E == dynamic) && ...), "qtensor: an extent is at least 0, or `dynamic`.");

 public:
  static constexpr int rank = static_cast<int>(sizeof...(E));
  static constexpr int dynamic_rank = (0 + ... + (E == dynamic ? 1 : 0));
  /// Whether the type fixes every extent.
  static constexpr bool is_static = dynamic_rank == 0;
  using array = std::array<index_t, sizeof...(E)>;

  constexpr extents() = default;
  template <class... Size>
  requires((sizeof...(Size) == sizeof...(E) || sizeof...(Size) == static_cast<std::size_t>(dynamic_rank)) &&
           sizeof...(Size) > 0 &&
           (std::convertible_to<Size, index_t> && ...)) constexpr explicit extents(Size... size) {
    const std::array<index_t, sizeof...(Size)> given{static_cast<index_t>(size)...};
    int next = 0;
    for (int axis = 0; axis < rank; ++axis) {
      const index_t fixed = static_extent(axis);
      if (sizeof...(Size) < sizeof...(E) && fixed != dynamic) continue;  // only dynamic extents were given
      set(axis, given[static_cast<std::size_t>(next++)]);
    }
  }
  /// From one number an axis.
  constexpr explicit extents(const array& sizes) {
    for (int axis = 0; axis < rank; ++axis) set(axis, sizes[static_cast<std::size_t>(axis)]);
  }
  /// From extents of the same rank: implicit where every extent these fix is fixed to the same number there.
  template <index_t... Other>
  requires(sizeof...(Other) == sizeof...(E) && !std::same_as<extents<Other...>, extents> &&
           ((E == dynamic || Other == dynamic || E == Other) &&
            ...)) constexpr explicit(((E != dynamic && Other == dynamic) || ...))
      extents(const extents<Other...>& other) {
    for (int axis = 0; axis < rank; ++axis) set(axis, other[axis]);
  }

  /// The extent the type fixes, or `dynamic`.
  static constexpr index_t static_extent(int axis) { return array{E...}[static_cast<std::size_t>(axis)]; }
  constexpr index_t operator[](int axis) const {
    const index_t fixed = static_extent(axis);
    if constexpr (is_static)
      return fixed;
    else
      return fixed != dynamic ? fixed : values_[static_cast<std::size_t>(dynamic_position(axis))];
  }
  constexpr array to_array() const {
    array all{};
    for (int axis = 0; axis < rank; ++axis) all[static_cast<std::size_t>(axis)] = (*this)[axis];
    return all;
  }
  /// Number of elements; throws where it overflows.
  constexpr index_t size() const {
    index_t product = 1;
    bool too_large = false;
    for (int axis = 0; axis < rank; ++axis) {
      if ((*this)[axis] == 0) return 0;
      too_large = too_large || __builtin_mul_overflow(product, (*this)[axis], &product);
    }
    require(!too_large, "the product of the ", rank,
            " extents does not fit 63 bits; a tensor has fewer elements than that.");
    return product;
  }

  template <index_t... Other>
  friend constexpr bool operator==(const extents& a, const extents<Other...>& b) {
    if constexpr (sizeof...(Other) != sizeof...(E))
      return false;
    else {
      for (int axis = 0; axis < rank; ++axis)
        if (a[axis] != b[axis]) return false;
      return true;
    }
  }

 private:
  static constexpr int dynamic_position(int axis) {
    int position = 0;
    for (int before = 0; before < axis; ++before) position += static_extent(before) == dynamic ? 1 : 0;
    return position;
  }
  constexpr void set(int axis, index_t size) {
    const index_t fixed = static_extent(axis);
    require(size >= 0, "extent ", axis, " is ", size, "; an extent is at least 0.");
    require(fixed == dynamic || fixed == size, "extent ", axis, " is ", size, " but its type fixes it to ", fixed, ".");
    if constexpr (!is_static)
      if (fixed == dynamic) values_[static_cast<std::size_t>(dynamic_position(axis))] = size;
  }

  struct nothing {};
  [[no_unique_address]] std::conditional_t<is_static, nothing,
                                           std::array<index_t, static_cast<std::size_t>(dynamic_rank)>>
      values_{};
};

namespace detail {
template <class>
inline constexpr index_t dynamic_for = dynamic;

template <int Rank>
struct all_dynamic {
  template <std::size_t... I>
  static extents<(static_cast<void>(I), dynamic)...> make(std::index_sequence<I...>);
  using type = decltype(make(std::make_index_sequence<static_cast<std::size_t>(Rank)>{}));
};

template <class T>
inline constexpr bool is_extents = false;
template <index_t... E>
inline constexpr bool is_extents<extents<E...>> = true;
}  // namespace detail

template <class... Size>
requires(std::convertible_to<Size, index_t>&&...) extents(Size...)
->extents<detail::dynamic_for<Size>...>;

/// All extents known at run time only.
template <int Rank>
using dynamic_extents = typename detail::all_dynamic<Rank>::type;
using matrix_extents = extents<dynamic, dynamic>;

template <class E>
concept tensor_extents = detail::is_extents<std::remove_cv_t<E>>;

/// Storage orders. A col_major tensor lies in memory as the row_major tensor of the reversed shape.
struct row_major {  // the last axis is contiguous
  static constexpr int axis(int, int storage_axis) { return storage_axis; }
};
struct col_major {  // the first axis is contiguous
  static constexpr int axis(int rank, int storage_axis) { return rank - 1 - storage_axis; }
};
template <class O>
concept storage_order = std::same_as<O, row_major> || std::same_as<O, col_major>;

/// An index or shape turned from the tensor's axes into storage order (contiguous axis last), or back: it is its own
/// inverse.
template <storage_order Order, std::size_t Rank>
constexpr std::array<index_t, Rank> reordered(const std::array<index_t, Rank>& axes) {
  std::array<index_t, Rank> out{};
  for (std::size_t i = 0; i < Rank; ++i)
    out[i] = axes[static_cast<std::size_t>(Order::axis(static_cast<int>(Rank), static_cast<int>(i)))];
  return out;
}

/// Elements from one index to the next of each axis where the last axis is contiguous and nothing lies between;
/// 0 where that does not fit 63 bits: no two elements are so far apart.
template <std::size_t Rank>
constexpr std::array<index_t, Rank> dense_strides(const std::array<index_t, Rank>& extents) {
  std::array<index_t, Rank> strides{};
  index_t next = 1;
  for (std::size_t axis = Rank; axis-- > 0;) {
    strides[axis] = next;
    if (__builtin_mul_overflow(next, extents[axis], &next)) next = 0;
  }
  return strides;
}

}  // namespace qtensor
