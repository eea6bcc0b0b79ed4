// Mirrors include/qtensor/ops/quantize.hpp and dequantize.hpp: codes of an odd number of bits, and those
// that lie from the top of a byte down.
// SPDX-License-Identifier: BSD-3-Clause
#include "format/of_users.hpp"
#include "round_trip.hpp"

using namespace qtensor;
using check::check_matrix;

namespace {

struct int3 : integer<3, signed> {
  static constexpr fixed_string name = "int3";
};
struct int5 : integer<5, signed> {
  static constexpr fixed_string name = "int5";
};

}  // namespace

TEST_CASE("quantize: codes of odd widths, in rows longer than a tile and groups that end inside bytes") {
  check_matrix<scheme<int3, group<12>>>(2, 5000);
  check_matrix<scheme<int3, group<8>>>(3, 70);
  check_matrix<scheme<int3, per_tensor>>(2, 9001);
  check_matrix<scheme<int5, group<4>>>(2, 4500);
  check_matrix<scheme<int5, group<7>>, col_major>(4500, 2);
}

TEST_CASE("quantize: codes from the top of a byte down, in every granularity and in rows that end inside bytes") {
  using turned = planar<high_first>;
  check_matrix<scheme<of_users::nf4, group<64>, turned>>(5, 301);
  check_matrix<scheme<of_users::nf4, per_channel<1>, turned>>(33, 127);
  check_matrix<scheme<int4, per_tensor, turned>>(2, 9001);
  check_matrix<scheme<int4, per_channel<0>, turned>>(40, 17);
  check_matrix<scheme<int4, per_channel<1>, turned>, col_major>(70, 9);
  check_matrix<scheme<int4, group<5>, turned>>(50, 13);
  check_matrix<scheme<int4, group<8, 0>, turned>>(20, 35);
  check_matrix<with<mxfp4, turned>>(130, 33);
  check_matrix<with<uint4_group<32>, turned>, col_major>(70, 65);
  check_matrix<scheme<uint4, block<4, 6>, zero_point<uint4>, turned>>(9, 31);
  check_matrix<with<nvfp4, tensor_scale<f32>, turned>>(5, 300);
  check_matrix<scheme<int2, group<32>, turned>>(6, 131);
  check_matrix<scheme<int4, group<32>, stochastic<1>, turned>>(3, 70);
}
