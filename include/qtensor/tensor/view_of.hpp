// Views over memory that somebody else laid out: arrays of codes and scales, or interleaved blocks.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <concepts>
#include <qtensor/tensor/view.hpp>

namespace qtensor {

namespace detail {

constexpr void check_size(const char* what, std::size_t given, index_t needed) {
  require(static_cast<index_t>(given) == needed, "a view is given ", given, " ", what,
          " but its extents and granularity need ", needed, ".");
}

template <class R>
concept byte_range = requires(const R& r) {
  std::data(r);
  std::size(r);
  requires sizeof(*std::data(r)) == 1;
};

}  // namespace detail

/// Existing planar memory: codes in rows of whole bytes and one scale a block, dense in storage order. Each span must
/// have the size that the shape asks for, else qtensor::error is thrown; nothing is copied, and the memory must outlive
/// the view.
template <quantization_scheme S, storage_order Order = row_major, tensor_extents Extents>
constexpr tensor_view<S, Extents, Order> view_of(std::span<const detail::code_unit_t<S>> codes,
                                                 std::span<const detail::unit_t<typename S::scale_format>> scales,
                                                 const Extents& extents,
                                                 const typename S::granularity_type& granularity = {}) {
  static_assert(!S::is_interleaved,
                "qtensor: an interleaved scheme keeps codes and scales in one array: view_of<S>(bytes, extents).");
  static_assert(!S::has_zero_point, "qtensor: this scheme stores zero points; pass them after the scales.");
  static_assert(!S::has_tensor_scale,
                "qtensor: this scheme has two levels; pass the scale of the tensor after the scales.");
  static_assert(!S::has_offset,
                "qtensor: this scheme stores offsets, which view_of does not take; fill a tensor of it.");
  const tensor_shape<stored<S>, Extents, Order> shape{extents, granularity, granularity};
  detail::check_size("code units", codes.size(), shape.code_units());
  detail::check_size("scales", scales.size(), shape.scale_count());
  return {shape, {codes.data(), scales.data(), {}, {}, {}}};
}

/// The same with zero points, one a block of the zero points' own granularity.
template <quantization_scheme S, storage_order Order = row_major, tensor_extents Extents>
constexpr tensor_view<S, Extents, Order> view_of(
    std::span<const detail::code_unit_t<S>> codes, std::span<const detail::unit_t<typename S::scale_format>> scales,
    std::span<const detail::unit_t<typename S::zero_point_format>> zero_points, const Extents& extents,
    const typename S::granularity_type& granularity = {},
    const typename S::zero_granularity_type& zero_granularity = {}) {
  static_assert(S::has_zero_point, "qtensor: this scheme is symmetric; it has no zero points to pass.");
  static_assert(!S::has_offset && !S::has_tensor_scale,
                "qtensor: this scheme stores more than codes, scales and zero points; fill a tensor of it.");
  const tensor_shape<stored<S>, Extents, Order> shape{extents, granularity, zero_granularity};
  detail::check_size("code units", codes.size(), shape.code_units());
  detail::check_size("scales", scales.size(), shape.scale_count());
  detail::check_size("zero points", zero_points.size(), shape.zero_point_count());
  return {shape, {codes.data(), scales.data(), zero_points.data(), {}, {}}};
}

/// The same of two levels: the scale of the tensor must outlive the view, too.
template <quantization_scheme S, storage_order Order = row_major, tensor_extents Extents>
constexpr tensor_view<S, Extents, Order> view_of(std::span<const detail::code_unit_t<S>> codes,
                                                 std::span<const detail::unit_t<typename S::scale_format>> scales,
                                                 const float& tensor_scale, const Extents& extents,
                                                 const typename S::granularity_type& granularity = {}) {
  static_assert(S::has_tensor_scale,
                "qtensor: this scheme has one level of scales; it has none of the tensor to pass.");
  static_assert(!S::has_zero_point && !S::has_offset,
                "qtensor: this scheme stores more than codes and scales of two levels; fill a tensor of it.");
  const tensor_shape<stored<S>, Extents, Order> shape{extents, granularity, granularity};
  detail::check_size("code units", codes.size(), shape.code_units());
  detail::check_size("scales", scales.size(), shape.scale_count());
  return {shape, {codes.data(), scales.data(), {}, {}, &tensor_scale}};
}
template <quantization_scheme S, storage_order Order = row_major, tensor_extents Extents>
tensor_view<S, Extents, Order> view_of(std::span<const detail::code_unit_t<S>>,
                                       std::span<const detail::unit_t<typename S::scale_format>>, const float&&,
                                       const Extents&, const typename S::granularity_type& = {}) =
    delete;  // name the scale of the tensor: the view would dangle

/// Existing interleaved blocks as bytes, at any alignment: `view_of<compat::ggml::q8_0>(bytes, extents<dynamic,
/// 4096>(n))`.
template <quantization_scheme S, storage_order Order = row_major, detail::byte_range Bytes, tensor_extents Extents>
tensor_view<S, Extents, Order> view_of(const Bytes& bytes, const Extents& extents,
                                       const typename S::granularity_type& granularity = {}) {
  static_assert(
      S::is_interleaved,
      "qtensor: view_of<S>(bytes, extents) is for interleaved layouts; a planar scheme needs codes and scales.");
  const tensor_shape<stored<S>, Extents, Order> shape{extents, granularity, granularity};
  detail::check_size("bytes", std::size(bytes), shape.code_bytes());
  return {shape, {reinterpret_cast<const std::uint8_t*>(std::data(bytes)), {}, {}, {}, {}}};
}

}  // namespace qtensor
