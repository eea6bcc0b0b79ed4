// Mirrors include/qtensor/ops/product_groups.hpp: formats of every kind that count in powers of two.
// SPDX-License-Identifier: BSD-3-Clause
#include "product_groups_check.hpp"

using namespace qtensor;
using check::compare_floats;
using check::compare_floats_every_way;
using check::random_weights;

namespace {

template <class S>
void compare_all(const index_t g) {
  for (const index_t m : {1, 3, 8})
    for (const index_t k : {3, 32, 100, 700})
      compare_floats<check::first_and_last>(random_weights<S>(m == 3 ? 65 : 17, k, k == 100, group<dynamic>(g)), m);
  compare_floats_every_way<check::first_and_last>(random_weights<S>(17, 70, false, group<dynamic>(g)), 45);
}

}  // namespace

TEST_CASE("products over groups: mxfp4 and nvfp4, with a scale of the tensor too") {
  for (index_t m = 1; m <= 7; ++m)
    for (const index_t k : {1, 16, 33, 160, 1100}) {
      compare_floats<check::first_and_last>(random_weights<mxfp4>(33, k, k == 33), m);
      compare_floats<check::first_and_last>(random_weights<nvfp4>(33, k, false), m);
    }
  compare_floats<check::first_and_last>(random_weights<with<nvfp4, tensor_scale<f32>>>(40, 70, false), 9);
  compare_floats_every_way<check::first_and_last>(random_weights<with<nvfp4, tensor_scale<f32>>>(40, 1100, false), 17);
  compare_floats_every_way<check::first_and_last>(random_weights<mxfp4>(33, 100, false), 44);
  compare_floats_every_way<check::first_and_last>(random_weights<nvfp4>(33, 100, false), 44);
}
TEST_CASE("products over groups: the smallest and the largest powers of two, and NaN, scale exactly") {
  for (const int code : {0, 1, 127, 254, 255}) {
    auto w = random_weights<mxfp4>(20, 64, false);
    for (auto& s : w.scales()) s = static_cast<std::uint8_t>(code);
    compare_floats<check::first_and_last>(w, 2);
  }
}
TEST_CASE("products over groups: other formats that count") {
  compare_all<scheme<e2m3, group<dynamic>>>(32);
  compare_all<scheme<e1m2, group<dynamic>, scale_as<e5m2>>>(20);
  compare_all<scheme<mxint8_code, group<dynamic>>>(32);
  compare_all<scheme<int2, group<dynamic>>>(32);
  compare_all<scheme<uint2, group<dynamic>, zero_point<uint2>>>(7);
}
