// Mirrors include/qtensor/ops/quantize.hpp and dequantize.hpp: users' own formats, granularities and roundings.
// SPDX-License-Identifier: BSD-3-Clause
#include "format/of_users.hpp"
#include "round_trip.hpp"

using namespace qtensor;
using check::check_matrix;

namespace {

using of_users::int12;
using of_users::nf4;
struct q3_12 : fixed_point<16, 12> {
  static constexpr fixed_string name = "q3_12";
};
struct row_pairs {
  static constexpr fixed_string name = "row_pairs";
  static constexpr index_t block_extent(int, int axis, index_t extent) {
    return axis == 0 ? 2 : extent > 0 ? extent : 1;
  }
};
struct away_from_zero {
  using slot = slot::rounding;
  static constexpr fixed_string name = "away_from_zero";
  static constexpr bool up(bool, bool, qtensor::remainder r) { return r != qtensor::remainder::zero; }
};

}  // namespace

TEST_CASE("quantize: a user's format, granularity and rounding") {
  check_matrix<scheme<nf4, group<64>>>(5, 300);
  check_matrix<scheme<nf4, group<64, 0>>, col_major>(70, 9);
  check_matrix<scheme<nf4, row_pairs>>(7, 70);
  check_matrix<scheme<int8, row_pairs>>(7, 70);
  check_matrix<scheme<int8, per_channel<0>, away_from_zero>>(7, 70);
  check_matrix<scheme<e4m3, group<32>, away_from_zero>>(7, 70);
}

TEST_CASE("quantize: a user's integers and fractions of more than 8 bits") {
  check_matrix<scheme<int12, per_channel<1>>>(7, 70);
  check_matrix<scheme<int12, group<32>, scale_as<f16>, interleaved<>>>(3, 70);
  check_matrix<scheme<q3_12, group<32>>, col_major>(70, 7);
}
