// Mirrors include/qtensor/tensor/view.hpp: matrix(i, ...) of tensors of higher rank, whatever shares a scale.
// SPDX-License-Identifier: BSD-3-Clause
#include "tensor/chips_check.hpp"

using namespace qtensor;

TEST_CASE("matrix: one scale for all, per channel, per axes") {
  check_matrices<int8_per_tensor>();
  check_matrices<int8_per_channel<0>>();
  check_matrices<int8_per_channel<1>>();
  check_matrices<uint8_per_channel<2>>();
  check_matrices<uint8_per_channel<-1>>();
  check_matrices<scheme<int8, per_axes<0, 2>>>();
}

TEST_CASE("matrix: groups and blocks, also across the leading axis") {
  check_matrices<mxfp4>();
  check_matrices<along<1, mxfp8_e4m3>>();
  check_matrices<along<-2, mxfp8_e4m3>>();
  check_matrices<scheme<int8, group<2, 0>>>();
  check_matrices<scheme<int8, block<2, 4, 8>>>();
  check_matrices<fp8_block<4, 16>>();
  check_matrices<scheme<int8, block<8>>>();
  check_matrices<scheme<int8, group<dynamic>>>(group<dynamic>(24));
}
