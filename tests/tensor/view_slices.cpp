// Mirrors include/qtensor/tensor/view.hpp: slices show the elements they are slices of, whatever shares a scale.
// SPDX-License-Identifier: BSD-3-Clause
#include "tensor/slices_check.hpp"

using namespace qtensor;

TEST_CASE("slices: whole bytes start anywhere where scales do not mind") {
  check_slices<int8_per_tensor>(1, 1);
  check_slices<int8_per_tensor, col_major>(1, 1);
  check_slices<uint8_per_channel<0>>(1, 1);
  check_slices<uint8_per_channel<1>, col_major>(1, 1);
  check_slices<scheme<int16, per_axes<0, 1>>>(1, 1);
}

TEST_CASE("slices: groups and blocks, along either axis, in both orders") {
  check_slices<uint4_group<32>>(1, 32);
  check_slices<mxfp4>(1, 32);
  check_slices<along<0, mxfp8_e4m3>, col_major>(1, 1);  // one block reaches over the axis
  check_slices<scheme<int8, group<4, 0>>>(4, 1);
  check_slices<scheme<int8, group<4, 0>>, col_major>(4, 1);
  check_slices<fp8_block<4, 16>>(4, 16);
  check_slices<fp8_block<4, 16>, col_major>(4, 16);
  check_slices<scheme<int8, group<dynamic>>>(1, 24, group<dynamic>(24));
}

TEST_CASE("slices: every axis of a tensor of rank 4") {
  const auto t = numbered<scheme<int8, block<2, 4>>>(extents(3, 2, 6, 10));
  const auto v = t.view();
  CHECK(shows(v.slice<0>(1, 2), v, {1, 0, 0, 0}));
  CHECK(shows(v.slice<1>(1, 1), v, {0, 1, 0, 0}));
  CHECK(shows(v.slice<2>(4, 2), v, {0, 0, 4, 0}));
  CHECK(shows(v.slice<3>(8, 2), v, {0, 0, 0, 8}));
  CHECK(shows(v.slice<3>(4, 6).slice<0>(2, 1).slice<2>(2, 3), v, {2, 0, 2, 4}));
}

TEST_CASE("slices: inside one block that reaches over the whole axis, anywhere") {
  const auto t = numbered<scheme<int8, group<32>>>(matrix_extents(3, 20));
  CHECK(shows(t.view().middle_cols(7, 5), t.view(), {0, 7}));
  CHECK(shows(t.view().middle_cols(7, 5).middle_cols(2, 3), t.view(), {0, 9}));
}
