// Mirrors include/qtensor/tensor/view.hpp: slices of packed and interleaved codes, with offsets and second scales.
// SPDX-License-Identifier: BSD-3-Clause
#include "tensor/slices_check.hpp"

using namespace qtensor;

TEST_CASE("slices: packed codes start at whole bytes") {
  check_slices<scheme<int4, per_tensor>>(1, 2);
  check_slices<scheme<int4, per_tensor>, col_major>(2, 1);
  check_slices<scheme<int2, per_channel<0>>>(1, 4);
  check_slices<scheme<e2m3, per_tensor>>(1, 4);
  check_slices<scheme<e3m2, per_tensor>, col_major>(4, 1);
  check_slices<scheme<int4, per_tensor, planar<high_first>>>(1, 2);
}

TEST_CASE("slices: interleaved blocks, offsets, two levels of scales") {
  check_slices<compat::ggml::q8_0>(1, 32);
  check_slices<compat::ggml::q4_1>(1, 32);
  check_slices<scheme<uint4, group<8>, scale_as<f16>, offset<f16>, static_only>>(1, 8);
  check_slices<with<nvfp4, tensor_scale<f32>>>(1, 16);
  check_slices<scheme<uint4, group<8>, zero_point<uint4, per_channel<0>>>>(1, 8);
}
