// Fake quantization: numbers as they come back from a scheme, quantize then dequantize without a tensor to keep.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <qtensor/ops/parallel.hpp>
#include <tuple>
#include <vector>

namespace qtensor::inline QTENSOR_ABI {

namespace ops {

/// How far along the slowest axis a slab goes that cuts no block and holds a few tiles; the whole axis where blocks, a
/// tensor scale or random numbers leave no choice.
template <quantization_scheme S, class Shape>
index_t slab_extent(const Shape& shape) {
  const index_t extent = shape.storage_extents()[0];
  if constexpr (S::has_tensor_scale || random_rounding<typename S::rounding> || Shape::rank < 2) {
    return extent;
  } else {
    const index_t block = shape.scale_grid().block[0];
    if (block >= extent) return extent;
    const index_t rest = std::max<index_t>(1, shape.extents.size() / extent);
    return std::min(extent, std::max<index_t>(1, 4 * tile_floats / rest / block) * block);
  }
}

}  // namespace ops

/// What comes back from S: dequantize(quantize<S>(x, how...)), written to `out` with these strides (in elements, one an
/// axis of the tensor). x has one row for every row that a tensor of these extents and order stores, and may be the
/// memory that `out` is, element for element, but overlaps it in no other way. `how` is nothing (dynamic), or scales,
/// or scales and zero points, or a `tensor_level`, and the scheme's granularity where its sizes are known at run time
/// only, and on(an executor).
///
/// Dynamic codes live for a slab of the slowest axis at a time, where S has no block that reaches over all of it; else,
/// and for given scales, a tensor of codes is made. Throws before anything is written.
template <quantization_scheme S, storage_order Order = row_major, tile_source X, tensor_extents Extents, class... How>
void fake_quantize_into(const X& x, const Extents& extents, float* out, const typename Extents::array& strides,
                        const How&... how) {
  using any_extents = dynamic_extents<Extents::rank>;
  const any_extents all(extents.to_array());
  const auto g = ops::granularity_among<S>(how...);
  const auto values = ops::values_among(how...);
  constexpr std::size_t given = std::tuple_size_v<decltype(values)>;
  static_assert(given <= 2 && (given == 0 || S::has_zero_point == (given == 2)),
                "qtensor: fake_quantize takes nothing, scales, or scales and zero points where the scheme has a zero "
                "point.");
  constexpr bool levelled = (std::is_same_v<How, tensor_level> || ...);
  static_assert(!levelled || (S::has_tensor_scale && given == 0),
                "qtensor: fake_quantize takes a tensor_level for dynamic schemes of two levels.");
  [[maybe_unused]] const auto level = ops::level_among(how...);
  const auto on = qtensor::detail::execution_among(how...);
  using tensor_type = tensor<S, any_extents, Order>;
  const auto once = [&](tensor_type& t, const auto& rows, const any_extents& sizes, float* to, const auto& by) {
    if (t.extents() != sizes) t = tensor_type(sizes, g);
    if constexpr (given >= 1) store_scales(t.span(), std::get<0>(values));
    if constexpr (given == 2) store_zero_points(t.span(), std::get<1>(values));
    if constexpr (levelled)
      quantize_into(rows, t.span(), *level, by);
    else if constexpr (given == 0)
      quantize_into(rows, t.span(), by);
    else
      quantize_static_into(rows, t.span(), by);
    dequantize_into(t.view(), to, strides, by);
  };
  typename S::zero_granularity_type zero_g{};
  if constexpr (std::is_same_v<typename S::zero_granularity_type, typename S::granularity_type>) zero_g = g;
  const tensor_shape<S, any_extents, Order> shape{all, g, zero_g};
  const index_t extent = shape.storage_extents()[0];
  const index_t slab = given == 0 && all.size() != 0 ? ops::slab_extent<S>(shape) : extent;
  require(x.rows() == shape.row_count() && x.cols() == shape.row_length(), "fake_quantize is given ", x.rows(),
          " rows of ", x.cols(), " elements for extents of ", shape.row_count(), " rows of ", shape.row_length(), ".");
  if (slab >= extent) {
    tensor_type t;
    return once(t, x, all, out, on);
  }
  const index_t rows = shape.row_count() / extent, step = reordered<Order>(strides)[0];
  const index_t parts =
      ops::reads_in_parts<X>() ? qtensor::detail::part_count(on.by, extent, slab, all.size() / extent) : 1;
  qtensor::detail::for_ranges(on.by, parts, extent, slab, [&](index_t, index_t begin, index_t count) {
    tensor_type t;
    for (index_t first = begin; first < begin + count; first += slab) {
      auto part = shape.storage_extents();
      part[0] = std::min(slab, begin + count - first);
      once(t, ops::part_of<0, Extents::rank>(x, first, part[0], rows), any_extents(reordered<Order>(part)),
           out + first * step, execution<serial>{});
    }
  });
}

/// The same of memory, as dense floats in row-major order: `fake_quantize<mxfp4>(source(ptr, extents(64, 96)))`.
template <quantization_scheme S, storage_order Order = row_major, format F, tensor_extents Extents, class... How>
std::vector<float> fake_quantize(const memory_source<F, Extents>& x, const How&... how) {
  std::vector<float> out(static_cast<std::size_t>(x.extents.size()));
  fake_quantize_into<S, Order>(typename memory_source<F, Extents>::template in_order<Order>(x), x.extents, out.data(),
                               dense_strides(x.extents.to_array()), how...);
  return out;
}

}  // namespace qtensor::inline QTENSOR_ABI
