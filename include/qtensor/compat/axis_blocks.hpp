// Which elements share a scale where the axis and the block size are attributes of a model, known at run time only.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <qtensor/policy/granularity.hpp>

namespace qtensor::compat {

/// A granularity whose three forms are chosen at run time: one scale for the tensor (the default), one for every index
/// of an axis, or one for every block of an axis at every index of the others. Negative axes count from the end.
/// ONNX's `axis` and `block_size`, torch's `axis`.
class axis_blocks {
 public:
  static constexpr fixed_string name = "axis_blocks";

  constexpr axis_blocks() = default;
  /// One scale for every index of an axis.
  static constexpr axis_blocks channels(int axis) { return {form::channels, axis, 1}; }
  /// One scale for every block of `size` neighbours along an axis; size at least 1.
  static constexpr axis_blocks blocks(int axis, index_t size) {
    require(size >= 1, "a block of size ", size, " along axis ", axis, " cannot be; it needs a size of at least 1.");
    return {form::blocks, axis, size};
  }

  constexpr index_t block_extent(int rank, int on, index_t extent) const {
    const bool here = on == detail::from_front(axis_, rank);
    if (form_ == form::blocks) return here ? size_ : 1;
    return form_ == form::channels && here ? 1 : per_tensor::block_extent(rank, on, extent);
  }
  friend constexpr bool operator==(const axis_blocks&, const axis_blocks&) = default;

 private:
  enum class form { tensor, channels, blocks };
  constexpr axis_blocks(form f, int axis, index_t size) : form_(f), axis_(axis), size_(size) {}

  form form_ = form::tensor;
  int axis_ = 0;
  index_t size_ = 1;
};

}  // namespace qtensor::compat
