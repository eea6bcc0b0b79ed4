// Granularities: which elements share a scale. One normal form: the extent of a block on every axis.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <concepts>
#include <qtensor/core/error.hpp>
#include <qtensor/core/support.hpp>
#include <type_traits>

namespace qtensor {

/// In `block<...>`: the block reaches over the whole axis.
inline constexpr index_t whole = 0;

/// A literal type, empty unless it holds a `dynamic` size. Scale counts, indices and legal slices all derive from
/// block_extent(rank, axis, extent), the number of neighbouring elements on `axis` (0 .. rank-1) that share a scale: at
/// least 1, and possibly more than `extent`. The last block of an axis may be short.
template <class G>
concept granularity = std::copyable<G> && detail::named<G> && requires(const G g, int rank, int axis, index_t extent) {
  { g.block_extent(rank, axis, extent) } -> std::same_as<index_t>;
};

/// Whether the axes and block axes a granularity names exist in a tensor of this rank; true where it does not say.
template <granularity G>
constexpr bool fits_rank(int rank) {
  if constexpr (requires { G::fits(rank); })
    return G::fits(rank);
  else
    return true;
}

namespace detail {

constexpr int from_front(index_t axis, int rank) { return static_cast<int>(axis < 0 ? rank + axis : axis); }
constexpr bool axis_exists(index_t axis, int rank) { return -rank <= axis && axis < rank; }

template <index_t First, index_t... Rest>
constexpr auto joined_numbers() {
  if constexpr (sizeof...(Rest) == 0)
    return number_name<First>();
  else
    return number_name<First>() + "," + joined_numbers<Rest...>();
}

/// A size that is a constant, or a member where the constant is `dynamic`.
template <index_t Size>
struct size_holder {
  static constexpr index_t get() { return Size; }
};
template <>
struct size_holder<dynamic> {
  index_t size = 1;
  constexpr index_t get() const { return size; }
};

}  // namespace detail

/// One scale for everything.
struct per_tensor {
  static constexpr fixed_string name = "per_tensor";
  static constexpr index_t block_extent(int, int, index_t extent) { return extent > 0 ? extent : 1; }
};

/// One scale for every index of each listed axis (oneDNN's masks). Negative axes count from the end.
template <index_t... Axis>
requires(sizeof...(Axis) > 0) struct per_axes {
  static constexpr auto name = "per_axes<" + detail::joined_numbers<Axis...>() + ">";
  static constexpr bool fits(int rank) { return (detail::axis_exists(Axis, rank) && ...); }
  static constexpr index_t block_extent(int rank, int axis, index_t extent) {
    return ((detail::from_front(Axis, rank) == axis) || ...) ? 1 : per_tensor::block_extent(rank, axis, extent);
  }
};

/// One scale for every index of one axis.
template <index_t Axis>
struct per_channel : per_axes<Axis> {
  static constexpr auto name = "per_channel<" + number_name<Axis>() + ">";
};

/// Blocks of N neighbours along one axis, single elements on the others. `group<dynamic>{64}` holds its size.
template <index_t N, index_t Axis = last_axis>
struct group : private detail::size_holder<N> {
  static_assert(N > 0 || N == dynamic,
                "qtensor: group<N> needs a positive N, or `dynamic` and a size given at run time.");
  static constexpr auto name = [] {
    if constexpr (Axis == last_axis)
      return "group<" + number_name<N>() + ">";
    else
      return "group<" + number_name<N>() + "," + number_name<Axis>() + ">";
  }();
  static constexpr index_t axis = Axis;

  constexpr group() = default;
  /// Elements that share a scale, at least 1; only for `group<dynamic>`.
  constexpr explicit group(index_t size) requires(N == dynamic) : detail::size_holder<N>{size} {
    require(size >= 1, "a group of size ", size, " cannot be; group<dynamic> needs a size of at least 1.");
  }

  constexpr index_t size() const { return this->get(); }
  static constexpr bool fits(int rank) { return detail::axis_exists(Axis, rank); }
  constexpr index_t block_extent(int rank, int on, index_t) const {
    return on == detail::from_front(Axis, rank) ? size() : 1;
  }
  friend constexpr bool operator==(const group& a, const group& b) { return a.size() == b.size(); }
};

/// The groups of the OCP MX formats; used with e8m0 scales.
template <index_t N = 32, index_t Axis = last_axis>
using mx_group = group<N, Axis>;

/// Blocks on the last axes, single elements on the leading (batch) ones: `block<128, 128>`, `block<1, 128>`,
/// `block<whole, 1>`, `block<dynamic, dynamic>{1, 128}`.
template <index_t... B>
requires(sizeof...(B) > 0) struct block {
  static_assert(
      ((B > 0 || B == whole || B == dynamic) && ...),
      "qtensor: block<...> takes positive sizes, `whole` for a whole axis, or `dynamic` and sizes given at run time.");
  static constexpr auto name = "block<" + detail::joined_numbers<B...>() + ">";
  static constexpr bool is_dynamic = ((B == dynamic) || ...);
  static constexpr int rank = static_cast<int>(sizeof...(B));

  constexpr block() = default;
  /// One size per block axis, `whole` or at least 1; a size that is part of the type must be repeated as it is.
  template <class... Size>
  requires(is_dynamic && sizeof...(Size) == sizeof...(B) &&
           (std::convertible_to<Size, index_t> && ...)) constexpr explicit block(Size... size)
      : sizes_{{static_cast<index_t>(size)...}} {
    constexpr std::array<index_t, sizeof...(B)> fixed{B...};
    for (std::size_t i = 0; i < fixed.size(); ++i) {
      require(sizes_.values[i] >= 0, "a block of ", sizes_.values[i], " on block axis ", i,
              " cannot be; sizes are at least 1, or `whole`.");
      require(fixed[i] == dynamic || fixed[i] == sizes_.values[i], "block axis ", i, " has size ", fixed[i],
              " in its type but is given ", sizes_.values[i], "; repeat the size of the type.");
    }
  }

  static constexpr bool fits(int tensor_rank) { return tensor_rank >= rank; }
  constexpr index_t block_extent(int tensor_rank, int axis, index_t extent) const {
    const int on = axis - (tensor_rank - rank);
    if (on < 0) return 1;
    const index_t size = sizes_.get(static_cast<std::size_t>(on));
    return size == whole ? per_tensor::block_extent(tensor_rank, axis, extent) : size;
  }
  friend constexpr bool operator==(const block& a, const block& b) {
    for (std::size_t i = 0; i < sizeof...(B); ++i)
      if (a.sizes_.get(i) != b.sizes_.get(i)) return false;
    return true;
  }

 private:
  struct fixed_sizes {
    static constexpr index_t get(std::size_t i) { return std::array<index_t, sizeof...(B)>{B...}[i]; }
  };
  struct held_sizes {
    std::array<index_t, sizeof...(B)> values{(B == dynamic ? 1 : B)...};
    constexpr index_t get(std::size_t i) const { return values[i]; }
  };
  [[no_unique_address]] std::conditional_t<is_dynamic, held_sizes, fixed_sizes> sizes_{};
};

/// Whether a granularity's blocks are part of its type.
template <granularity G>
inline constexpr bool has_static_blocks = std::is_empty_v<G>;

namespace detail {

/// The only value of a granularity whose type says all, for whoever is given none.
template <class G>
constexpr G only_granularity() {
  static_assert(has_static_blocks<G>,
                "qtensor: this scheme's block sizes are known at run time only; pass them as a granularity: "
                "quantize<S>(x, group<dynamic>{64}), tensor<S>(extents, group<dynamic>{64}).");
  return {};
}

}  // namespace detail

}  // namespace qtensor
