// Mirrors include/qtensor/tensor/view.hpp: matrix(i, ...) with all that schemes store, its types and its refusals.
// SPDX-License-Identifier: BSD-3-Clause
#include "core/sentence.hpp"
#include "tensor/chips_check.hpp"

using namespace qtensor;

TEST_CASE("matrix: zero points of their own granularity, two levels of scales, offsets, interleaved blocks") {
  check_matrices<scheme<uint4, group<8>, zero_point<uint4, per_channel<0>>>>();
  check_matrices<scheme<uint4, per_tensor, zero_point<uint4, group<8>>>>();
  check_matrices<with<nvfp4, tensor_scale<f32>>>();
  check_matrices<compat::ggml::q4_1>();
  check_matrices<scheme<uint4, group<8>, scale_as<f16>, offset<f16>, static_only>>();
}

TEST_CASE("matrix: granularities that speak of the last axes stay what they are") {
  const tensor<mxfp4, dynamic_extents<3>> t(extents(2, 3, 32));
  static_assert(std::is_same_v<decltype(t.view().matrix(0)), tensor_view<mxfp4>>);
  const tensor<int8_per_channel<0>, dynamic_extents<3>> c(extents(2, 3, 32));
  static_assert(std::is_same_v<decltype(c.view().matrix(0))::granularity_type, block<dynamic, dynamic>>);
  const tensor<mxfp4, extents<2, 3, 32>> fixed;
  static_assert(std::is_same_v<decltype(fixed.view().matrix(0)), tensor_view<mxfp4, extents<3, 32>>>);
  CHECK(t.view().matrix(1).memory().codes == t.codes().data() + 48);
}

TEST_CASE("matrix: of a tensor of rank 5, of a slice, and of a matrix itself") {
  const auto t = numbered<uint4_group<8>>(extents(2, 3, 2, 3, 20));
  CHECK(shows(t.view().matrix(1, 2, 1), t.view(), {1, 2, 1, 0, 0}));
  CHECK(shows(t.view().slice<1>(1, 2).matrix(1, 1, 0), t.view(), {1, 2, 0, 0, 0}));
  const auto m = numbered<uint4_group<8>>(extents(3, 20));
  CHECK(shows(m.view().matrix(), m.view(), {0, 0}));
}

TEST_CASE("matrix: an index outside its axis is refused") {
  const tensor<mxfp4, dynamic_extents<4>> t(extents(2, 3, 4, 32));
  CHECK(sentence([&] { t.view().matrix(2, 0); }) == "qtensor: index 2 of axis 0 is outside its 2 elements.");
  CHECK(sentence([&] { t.view().matrix(0, -1); }) == "qtensor: index -1 of axis 1 is outside its 3 elements.");
}
