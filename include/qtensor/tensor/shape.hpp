// Shapes: bytes, scale counts and which scale belongs to which element, from a scheme and extents alone.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <qtensor/format/table.hpp>
#include <qtensor/scheme/scheme.hpp>
#include <qtensor/tensor/extents.hpp>
#include <span>

namespace qtensor {

/// Which entry of a parameter array (scales, zero points) belongs to an element. Axes are in storage order, contiguous
/// last; the array lists blocks in the same order.
template <int Rank>
struct block_grid {
  using array = std::array<index_t, static_cast<std::size_t>(Rank)>;
  array block{};   // elements that share an entry, per axis: at least 1, and no more than there are
  array stride{};  // entries from one block to the next, per axis

  constexpr index_t entry(const array& at) const {
    index_t sum = 0;
    for (std::size_t axis = 0; axis < at.size(); ++axis) sum += at[axis] / block[axis] * stride[axis];
    return sum;
  }
};

namespace detail {

/// a * b for sizes; throws where it overflows.
constexpr index_t checked_product(index_t a, index_t b) {
  index_t product = 0;
  require(!__builtin_mul_overflow(a, b, &product), "a size of ", a, " times ", b, " does not fit 63 bits.");
  return product;
}

/// The product of sizes that are at least 0, which is 0 where one of them is; throws where it overflows.
constexpr index_t checked_product(std::span<const index_t> sizes) {
  if (std::find(sizes.begin(), sizes.end(), 0) != sizes.end()) return 0;
  index_t product = 1;
  for (const index_t size : sizes) product = checked_product(product, size);
  return product;
}

/// Where a format's sub-byte codes lie: codes of whole bytes are an array of their storage type, others of bytes.
template <class S>
using code_unit_t = std::conditional_t<is_packed<typename S::code_format> || S::is_interleaved, std::uint8_t,
                                       storage_t<typename S::code_format>>;

template <class F>
struct unit_of {
  using type = storage_t<F>;
};
template <>
struct unit_of<none> {
  using type = std::uint8_t;  // of an array that is always empty
};
template <class F>
using unit_t = typename unit_of<F>::type;

/// Code of 1.0: the scale of a tensor of zeros.
template <format F>
constexpr std::uint32_t one_code() {
  if constexpr (minifloat_format<F>)
    return static_cast<std::uint32_t>(F::bias) << F::mantissa_bits;
  else if constexpr (std::is_same_v<F, f32>)
    return bits_of(1.f);
  else if constexpr (requires { F::fraction_bits; })
    return F::max >= 1.f ? 1u << F::fraction_bits : 0u;
  else {
    for (std::uint32_t c = 0; c < decode_table<F>.size(); ++c)
      if (decode_table<F>[c] == 1.f) return c;
    return 0;
  }
}

}  // namespace detail

/// Bytes of one block of an interleaved layout, and where its parts start.
template <quantization_scheme S>
struct interleaved_block {
  /// Groups with a scale each that share a block.
  static constexpr index_t groups = [] {
    if constexpr (requires { S::layout::groups; })
      return S::layout::groups;
    else
      return index_t{1};
  }();
  static constexpr index_t elements(const typename S::granularity_type& g) { return groups * g.size(); }
  static constexpr index_t scale_bytes = sizeof(detail::unit_t<typename S::scale_format>);
  static constexpr index_t offset_bytes =
      S::has_offset ? static_cast<index_t>(sizeof(detail::unit_t<typename S::offset_format>)) : 0;
  static constexpr index_t sum_bytes = [] {
    if constexpr (S::has_code_sum)
      return static_cast<index_t>(sizeof(detail::unit_t<typename S::layout::code_sum_format>));
    else
      return index_t{0};
  }();
  static constexpr index_t offset_at = groups * scale_bytes;
  static constexpr index_t sum_at = offset_at + offset_bytes;
  static constexpr index_t codes_at = sum_at + sum_bytes;
  /// Bytes of one group's codes, and of a block.
  static constexpr index_t code_bytes(const typename S::granularity_type& g) {
    return divide_up(g.size() * bits_in_memory<typename S::code_format>, 8);
  }
  static constexpr index_t bytes(const typename S::granularity_type& g) { return codes_at + groups * code_bytes(g); }
};

/// Everything about a tensor's memory that follows from its type and extents.
template <quantization_scheme S, tensor_extents Extents = matrix_extents, storage_order Order = row_major>
struct tensor_shape {
  static constexpr int rank = Extents::rank;
  using granularity_type = typename S::granularity_type;
  using zero_granularity_type = typename S::zero_granularity_type;
  using code_unit = detail::code_unit_t<S>;
  using array = typename Extents::array;
  using grid = block_grid<rank>;

  static_assert(fits_rank<granularity_type>(rank) && fits_rank<zero_granularity_type>(rank),
                "qtensor: the granularity names an axis that a tensor of this rank does not have (block<...> has at "
                "most rank sizes).");

  Extents extents{};
  [[no_unique_address]] granularity_type granularity{};
  [[no_unique_address]] zero_granularity_type zero_granularity{};

  static constexpr bool contiguous_axis_is_grouped() {
    if constexpr (S::is_interleaved)
      return detail::from_front(granularity_type::axis, rank) == Order::axis(rank, rank - 1);
    else
      return true;
  }
  static_assert(
      contiguous_axis_is_grouped(),
      "qtensor: interleaved blocks run along the contiguous axis: the last one in row_major, the first in col_major.");

  /// Extents with the contiguous axis last.
  constexpr array storage_extents() const { return reordered<Order>(extents.to_array()); }
  /// Elements along the contiguous axis.
  constexpr index_t row_length() const { return extents[Order::axis(rank, rank - 1)]; }
  /// Contiguous runs of row_length() elements.
  constexpr index_t row_count() const {
    index_t count = 1;
    for (int axis = 0; axis + 1 < rank; ++axis)
      count = detail::checked_product(count, extents[Order::axis(rank, axis)]);
    return count;
  }
  /// Bytes of the codes of one row, rounded up to whole bytes (interleaved: whole blocks, scales included).
  constexpr index_t row_bytes() const {
    if constexpr (S::is_interleaved)
      return detail::checked_product(divide_up(row_length(), interleaved_block<S>::elements(granularity)),
                                     interleaved_block<S>::bytes(granularity));
    else
      return divide_up(detail::checked_product(row_length(), bits_in_memory<typename S::code_format>), 8);
  }
  constexpr index_t code_bytes() const { return detail::checked_product(row_bytes(), row_count()); }
  constexpr index_t code_units() const { return code_bytes() / static_cast<index_t>(sizeof(code_unit)); }

  /// Blocks along an axis of the tensor.
  template <class G>
  constexpr index_t blocks(G g, int axis) const {
    return divide_up(extents[axis], g.block_extent(rank, axis, extents[axis]));
  }
  constexpr index_t scale_count() const { return count(granularity); }
  constexpr index_t zero_point_count() const { return S::has_zero_point ? count(zero_granularity) : 0; }
  constexpr grid scale_grid() const { return grid_of(granularity); }
  constexpr grid zero_grid() const { return grid_of(zero_granularity); }

  /// Distance between neighbours on every axis but the contiguous one, in code units, storage order.
  constexpr array row_strides() const {
    array stride{};
    index_t next = row_bytes() / static_cast<index_t>(sizeof(code_unit));
    const array e = storage_extents();
    for (int axis = rank - 2; axis >= 0; --axis) {
      stride[static_cast<std::size_t>(axis)] = next;
      next = detail::checked_product(next, e[static_cast<std::size_t>(axis)]);
    }
    return stride;
  }

 private:
  template <class G>
  constexpr index_t count(G g) const {
    index_t product = 1;
    for (int axis = 0; axis < rank; ++axis) product = detail::checked_product(product, blocks(g, axis));
    return product;
  }
  template <class G>
  constexpr grid grid_of(G g) const {
    grid out;
    index_t next = 1;
    for (int s = rank - 1; s >= 0; --s) {
      const int axis = Order::axis(rank, s);
      // No longer than the axis: however large blocks may be, one that holds all of it is the same.
      const index_t longest = std::max(extents[axis], index_t{1});
      out.block[static_cast<std::size_t>(s)] = std::min(g.block_extent(rank, axis, extents[axis]), longest);
      out.stride[static_cast<std::size_t>(s)] = next;
      next *= blocks(g, axis);
    }
    return out;
  }
};

}  // namespace qtensor
