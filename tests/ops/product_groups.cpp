// Mirrors include/qtensor/ops/product_groups.hpp: weights of 4 bits times floats.
// SPDX-License-Identifier: BSD-3-Clause

#include "product_groups_check.hpp"
#include "threads.hpp"

using namespace qtensor;
using check::compare_floats;
using check::random_weights;

namespace {

using int4_any = scheme<int4, group<dynamic>>;
using uint4_any = scheme<uint4, group<dynamic>, zero_point<uint4>, scale_as<f16>>;

}  // namespace

TEST_CASE("products over groups: every small shape, int4") {
  for (index_t m = 1; m <= 14; m += m < 8 ? 1 : 3)
    for (const index_t n : {1, 3, 16, 17, 31, 32, 33, 65})
      for (const index_t k : {1, 2, 3, 4, 5, 8, 13, 20})
        for (const index_t g : {1, 3, 4, 8, 20})
          if ((m + n + k + g) % 3 == 0) compare_floats(random_weights<int4_any>(n, k, false, group<dynamic>(g)), m);
}
TEST_CASE("products over groups: groups of every kind, short last ones, blocks of k") {
  for (const index_t g : {16, 32, 36, 64, 100, 128, 1000})
    for (const index_t m : {1, 2, 5, 7, 12})
      compare_floats(random_weights<int4_any>(37, 1100 + g, g == 36, group<dynamic>(g)), m);
}
TEST_CASE("products over groups: many rows, of packed weights, of bytes that are made ready, in squares") {
  check::compare_floats_every_way(random_weights<int4_any>(70, 96, false, group<dynamic>(32)), 400);
  for (const index_t g : {3, 16, 20, 32, 128})
    for (const index_t m : {35, 36, 43}) {
      check::compare_floats_every_way(random_weights<int4_any>(33, 150, false, group<dynamic>(g)), m);
      check::compare_floats_every_way(random_weights<uint4_any>(33, 150, false, group<dynamic>(g)), m);
    }
  for (const index_t m : {8, 9, 15}) {  // squares that are half empty
    check::compare_floats_every_way(random_weights<int4_any>(65, 300, false, group<dynamic>(128)), m);
    check::compare_floats_every_way(random_weights<uint4_any>(33, 300, false, group<dynamic>(64)), m);
  }
  check::compare_floats_every_way(random_weights<uint4_any>(33, 1100, false, group<dynamic>(64)), 47);
  check::compare_floats_every_way(random_weights<int4_any>(33, 1100, false, group<dynamic>(1100)), 16);
  check::compare_floats_every_way(random_weights<int4_any>(65, 2100, false, group<dynamic>(16)), 200);
}
TEST_CASE("products over groups: zero points") {
  for (index_t m = 1; m <= 8; ++m)
    for (const index_t n : {1, 16, 33, 40})
      for (const index_t k : {1, 5, 32, 67})
        for (const index_t g : {2, 8, 32})
          compare_floats(random_weights<uint4_any>(n, k, g == 8, group<dynamic>(g)), m);
  compare_floats(random_weights<uint4_any>(64, 1500, true, group<dynamic>(64)), 9);
}
TEST_CASE("products over groups: nothing to do") {
  compare_floats(random_weights<int4_any>(5, 0, false, group<dynamic>(4)), 3);
  compare_floats(random_weights<int4_any>(65, 0, false, group<dynamic>(4)), 3);
  compare_floats(random_weights<int4_any>(0, 8, false, group<dynamic>(4)), 3);
  compare_floats(random_weights<int4_any>(5, 8, false, group<dynamic>(4)), 0);
  compare_floats(random_weights<int4_any>(5, 0, false, group<dynamic>(4)), 0);
}
TEST_CASE("products over groups: threads change nothing") {
  const auto on_threads = pool::threads(3);
  compare_floats(random_weights<int4_any>(300, 256, false, group<dynamic>(32)), 5, on_threads);
  compare_floats(random_weights<int4_any>(20, 1024, false, group<dynamic>(32)), 40, on_threads);
}
TEST_CASE("products over groups: rows of the wrong length are an error that says so") {
  const auto w = pack(random_weights<int4_any>(5, 8, false, group<dynamic>(4)));
  const float x[9] = {};
  const check::kept sink{1, 5};
  CHECK_THROWS_WITH_AS(ops::multiply_groups<simd::best_arch>(w, matrix_ref<const float>{x, 1, 9, 9, 1},
                                                             activation_scales::per_row, sink, serial{}),
                       "qtensor: a product of weights with 8 elements along k takes rows of 8; these have 9.", error);
}
