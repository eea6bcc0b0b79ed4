// Sources across the order of their codes that count as larger than the caches, as this program draws that line.
// SPDX-License-Identifier: BSD-3-Clause
#include "across_check.hpp"

using namespace qtensor;

TEST_CASE("quantize_across, from memory: scales of all, of rows, of groups, codes of every width") {
  static_assert(ops::streaming_floats <= 20000);
  check::compare_shapes<int8_per_tensor>();
  check::compare_shapes<int8_per_channel<0>>();
  check::compare_shapes<uint8_per_channel<0>>();
  check::compare_shapes<mxfp8_e4m3>();
  check::compare_shapes<uint4_group<32>>();
  check::compare_shapes<scheme<int4, group<5>>>();
  check::in_full<mxfp4, mxfp6_e2m3, nvfp4, scheme<hif8, group<64>>, scheme<int2, group<400>>,
                 scheme<e4m3, block<whole, 48>>>([]<class S>() { check::compare_shapes<S>(); });
}

TEST_CASE("quantize_across, from memory: bands of rows, and bands of those") {
  const index_t rows = 2200, cols = 70;
  const std::vector<float> x = check::numbers(rows * cols, 5);
  check::compare<int8_per_channel<0>, f32>(x, rows, cols, 0);
  check::compare<mxfp8_e4m3, bf16>(x, rows, cols, 5);
}
