// Mirrors include/qtensor/ops/quantize.hpp and dequantize.hpp: formats whose codes have an odd number of bits.
// SPDX-License-Identifier: BSD-3-Clause
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
