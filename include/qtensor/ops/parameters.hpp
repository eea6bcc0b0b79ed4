// Static scales and zero points: checked whole, then stored, so that nothing is half-written.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <qtensor/reference/quantize.hpp>
#include <qtensor/simd/abi.hpp>
#include <type_traits>

namespace qtensor::inline QTENSOR_ABI {

namespace ops {

/// What may be passed as scales or zero points: one number, or anything contiguous of numbers (std::vector, std::array,
/// a built-in array), or an Eigen vector, or matrix with one element a block.
template <class T>
concept number = std::is_arithmetic_v<std::remove_cvref_t<T>>;
// Eigen's matrices have data() and size() too, so they are told by their strides: a row of a column-major matrix has
// gaps.
template <class R>
concept eigen_numbers = !number<R> && requires(const R& r) {
  { *r.data() } -> number;
  { r.rows() } -> std::convertible_to<index_t>;
  { r.cols() } -> std::convertible_to<index_t>;
  { r.rowStride() } -> std::convertible_to<index_t>;
  { r.colStride() } -> std::convertible_to<index_t>;
};
template <class R>
concept contiguous_numbers = !number<R> && !eigen_numbers<R> && !requires(const R& r) {
  r.innerStride();
}
&&requires(const R& r) {
  { *std::data(r) } -> number;
  { std::size(r) } -> std::convertible_to<std::size_t>;
};

/// Any of them as lines of `length` numbers, `step` apart, that begin `line_step` apart; a single number is for all.
template <class T>
struct numbers {
  const T* first;
  index_t count, length, step = 1, line_step = 0;
  bool is_single = false;
  constexpr T operator[](index_t i) const {
    return first[is_single ? 0 : i < length ? i * step : i / length * line_step + i % length * step];
  }
};
template <storage_order, number T>
constexpr numbers<T> as_numbers(const T& one) {
  return {.first = &one, .count = 1, .length = 1, .is_single = true};
}
template <storage_order, contiguous_numbers R>
constexpr auto as_numbers(const R& r) {
  const auto n = static_cast<index_t>(std::size(r));
  return numbers<std::remove_cvref_t<decltype(*std::data(r))>>{.first = std::data(r), .count = n, .length = n};
}
/// A matrix of Eigen's line by line, as a tensor of this order stores its blocks.
template <storage_order Order, eigen_numbers R>
constexpr auto as_numbers(const R& r) {
  const index_t rows = r.rows(), cols = r.cols(), down = r.rowStride(), along = r.colStride();
  using all = numbers<std::remove_cvref_t<decltype(*r.data())>>;
  if constexpr (std::same_as<Order, row_major>)
    return all{.first = r.data(), .count = rows * cols, .length = cols, .step = along, .line_step = down};
  else
    return all{.first = r.data(), .count = rows * cols, .length = rows, .step = down, .line_step = along};
}

/// The zero points that a scheme holds, from the first to the last: codes that their format stores, as integers, for a
/// float cannot hold the largest int32. 0 alone where it is symmetric.
template <quantization_scheme S>
constexpr std::array<std::int64_t, 2> zero_point_range() {
  if constexpr (S::has_zero_point) {
    using format = typename S::zero_point_format;
    return {std::max(static_cast<std::int64_t>(S::codes.low), static_cast<std::int64_t>(format::min)),
            std::min(static_cast<std::int64_t>(S::codes.high), static_cast<std::int64_t>(format::max))};
  } else {
    return {0, 0};
  }
}

}  // namespace ops

/// One number, a contiguous range of numbers, or an Eigen matrix of them in memory.
template <class T>
concept parameter_values = ops::number<T> || ops::contiguous_numbers<T> || ops::eigen_numbers<T>;

/// Stores scales in a tensor, after checking all of them: a single one serves every block; a range has one a block, in
/// storage order, and however many there are, an empty tensor, whose channels have no blocks. A scale must be finite
/// and positive, before and after it is rounded to the scheme's scale format.
template <quantization_scheme S, tensor_extents E, storage_order O, parameter_values Scales>
constexpr void store_scales(const tensor_span<S, E, O>& out, const Scales& scales) {
  using format = typename S::scale_format;
  const auto given = ops::as_numbers<O>(scales);
  const index_t needed = out.shape().scale_count();
  require(given.is_single || given.count == needed || out.size() == 0, "quantize is given ", given.count,
          " scales but the tensor has ", needed, " blocks; pass one scale a block, or a single number.");
  for (index_t i = 0; i < given.count; ++i) {
    const float s = static_cast<float>(given[i]);
    require(is_finite(s) && s > 0.f, "scale ", i, " is ", s, "; a scale must be finite and positive.");
    const float kept = decode<format>(encode<format>(s));
    require(is_finite(kept) && kept > 0.f, "scale ", i, " is ", s, ", which ", std::string_view(format::name),
            " stores as ", kept, "; a stored scale must be finite and positive.");
  }
  index_t entry = 0;
  reference::for_each_block(out.scale_grid(), out.storage_extents(), [&](const auto& first, const auto&) {
    out.set_storage_scale_code(first, encode<format>(static_cast<float>(given[entry++])));
  });
}

/// Stores zero points likewise: one a block of the zero points' own granularity, each inside the range of the codes and
/// of the format that stores it.
template <quantization_scheme S, tensor_extents E, storage_order O, parameter_values ZeroPoints>
constexpr void store_zero_points(const tensor_span<S, E, O>& out, const ZeroPoints& zero_points) {
  static_assert(S::has_zero_point, "qtensor: this scheme is symmetric; it takes no zero points.");
  using format = typename S::zero_point_format;
  const auto given = ops::as_numbers<O>(zero_points);
  static_assert(std::is_integral_v<std::remove_cvref_t<decltype(given[0])>>, "qtensor: zero points are integers.");
  const index_t needed = out.shape().zero_point_count();
  require(given.is_single || given.count == needed || out.size() == 0, "quantize is given ", given.count,
          " zero points but the tensor has ", needed, " blocks of them; pass one a block, or a single number.");
  const auto [low, high] = ops::zero_point_range<S>();
  for (index_t i = 0; i < given.count; ++i)
    require(static_cast<std::int64_t>(given[i]) >= low && static_cast<std::int64_t>(given[i]) <= high, "zero point ", i,
            " is ", static_cast<std::int64_t>(given[i]), "; it must be a code that ", std::string_view(format::name),
            " holds, from ", low, " to ", high, ".");
  index_t entry = 0;
  reference::for_each_block(out.zero_grid(), out.storage_extents(), [&](const auto& first, const auto&) {
    out.set_storage_zero_point(first, static_cast<std::int64_t>(given[entry++]));
  });
}

}  // namespace qtensor::inline QTENSOR_ABI
