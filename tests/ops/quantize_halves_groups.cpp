// Mirrors include/qtensor/ops/quantize.hpp: bf16 and f16 in memory, into groups.
// SPDX-License-Identifier: BSD-3-Clause
#include "halves_check.hpp"

using namespace halves_check;

TEST_CASE("16-bit sources: uint4 groups, with zero points") { check_scheme<uint4_group<32>, orders::both>(); }
TEST_CASE("16-bit sources: groups that ignore what is not finite") {
  check_scheme<scheme<e4m3, per_channel<1>, bounded_amax<>, block_ignores_nan, nan_to_zero>>();
  check::in_full<with<uint4_group<32>, block_ignores>>([]<class S>() { check_scheme<S>(); });
}
TEST_CASE("16-bit sources: int8 groups of an odd size") { check_scheme<int8_group<24>>(); }
TEST_CASE("16-bit sources: mxfp8, mxfp6") {
  check_scheme<mxfp8_e4m3>();
  check::in_full<mxfp6_e2m3>([]<class S>() { check_scheme<S>(); });
}
TEST_CASE("16-bit sources: mxfp4 along both axes") {
  check::in_full<mxfp4>([]<class S>() { check_scheme<S>(); });
  check_scheme<with<mxfp4, group<32, 0>>, orders::both>();
}
TEST_CASE("16-bit sources: nvfp4, one and two levels") {
  check::in_full<nvfp4>([]<class S>() { check_scheme<S>(); });
  check_scheme<with<nvfp4, tensor_scale<f32>>, orders::both>();
}
