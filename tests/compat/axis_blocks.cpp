// Mirrors include/qtensor/compat/axis_blocks.hpp: which elements share a scale, chosen at run time.
// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <qtensor/compat/axis_blocks.hpp>
#include <qtensor/tensor/tensor.hpp>

#include "core/sentence.hpp"

using namespace qtensor;
using compat::axis_blocks;

TEST_CASE("axis_blocks: one scale for the tensor, an index of an axis, or a block of an axis") {
  static_assert(granularity<axis_blocks> && !has_static_blocks<axis_blocks>);
  using sized = scheme<int8, axis_blocks>;
  const auto count = [](const axis_blocks& g) {
    return tensor<sized, extents<3, dynamic, 5>>(extents<3, dynamic, 5>(7), g).shape().scale_count();
  };
  CHECK(count({}) == 1);
  CHECK(count(axis_blocks::channels(0)) == 3);
  CHECK(count(axis_blocks::channels(1)) == 7);
  CHECK(count(axis_blocks::channels(-1)) == 5);
  CHECK(count(axis_blocks::blocks(1, 2)) == 3 * 4 * 5);
  CHECK(count(axis_blocks::blocks(-3, 3)) == 7 * 5);
  CHECK(count(axis_blocks::blocks(2, 9)) == 3 * 7);
}

TEST_CASE("axis_blocks: a block's extent on every axis, as the other granularities give it") {
  constexpr axis_blocks tensor, channels = axis_blocks::channels(-2), blocks = axis_blocks::blocks(1, 4);
  for (int axis = 0; axis < 3; ++axis) {
    CHECK(tensor.block_extent(3, axis, 6) == per_tensor::block_extent(3, axis, 6));
    CHECK(channels.block_extent(3, axis, 6) == per_channel<1>::block_extent(3, axis, 6));
    CHECK(blocks.block_extent(3, axis, 6) == group<4, 1>().block_extent(3, axis, 6));
  }
  CHECK(tensor.block_extent(1, 0, 0) == 1);
  CHECK(axis_blocks::blocks(1, 4) == blocks);
  CHECK(axis_blocks::blocks(1, 5) != blocks);
}

TEST_CASE("axis_blocks: a block of no elements is refused") {
  CHECK(sentence([] { axis_blocks::blocks(1, 0); }) ==
        "qtensor: a block of size 0 along axis 1 cannot be; it needs a size of at least 1.");
}
