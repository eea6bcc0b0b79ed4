// Mirrors include/qtensor/ops/product_groups.hpp: weights of bytes, and activations that are codes already.
// SPDX-License-Identifier: BSD-3-Clause
#include "product_groups_check.hpp"

using namespace qtensor;
using check::compare_codes;
using check::compare_floats;
using check::random_weights;

namespace {

using int4_any = scheme<int4, group<dynamic>>;
using int8_any = scheme<int8, group<dynamic>>;
using uint4_any = scheme<uint4, group<dynamic>, zero_point<uint4>>;
using uint8_any = scheme<uint8, group<dynamic>, zero_point<uint8>, scale_as<bf16>>;

}  // namespace

TEST_CASE("products over groups: int8 and uint8 weights") {
  for (index_t m = 1; m <= 7; m += check::full ? 1 : 2)
    for (const index_t n : {1, 15, 33, 65})
      for (const index_t k : {1, 6, 40, 131})
        for (const index_t g : {1, 5, 32}) {
          compare_floats(random_weights<int8_any>(n, k, g == 5, group<dynamic>(g)), m);
          compare_floats(random_weights<uint8_any>(n, k, false, group<dynamic>(g)), m);
        }
  compare_floats(random_weights<int8_any>(70, 1500, false, group<dynamic>(128)), 30);
  for (const index_t m : {35, 36, 37}) {
    check::compare_floats_every_way(random_weights<int8_any>(70, 100, false, group<dynamic>(32)), m);
    check::compare_floats_every_way(random_weights<uint8_any>(70, 100, false, group<dynamic>(20)), m);
  }
}
TEST_CASE("products over groups: zero points of a format that the codes do not have") {
  compare_floats(random_weights<scheme<int4, group<dynamic>, zero_point<int8>>>(40, 131, false, group<dynamic>(32)), 5);
  compare_floats(random_weights<scheme<int8, group<dynamic>, zero_point<uint8>>>(17, 64, false, group<dynamic>(16)), 3);
}
TEST_CASE("products over groups: activations that are quantized, with and without zero points") {
  for (index_t m = 1; m <= 7; m += 2)
    for (const index_t n : {1, 16, 65})
      for (const index_t k : {4, 63, 256})
        for (const index_t g : {4, 32}) {
          const auto w8 = random_weights<uint8_any>(n, k, false, group<dynamic>(g));
          const auto w4 = random_weights<int4_any>(n, k, false, group<dynamic>(g));
          compare_codes(w8, random_weights<uint8_per_channel<0>>(m, k, false));
          compare_codes(w4, random_weights<int8_per_channel<0>>(m, k, m == 3));
          compare_codes(w4, random_weights<uint8_any, col_major>(m, k, false, group<dynamic>(g)));
          compare_codes(w8, random_weights<int8_any>(m, k, false, group<dynamic>(2 * g)));
        }
}
TEST_CASE("products over groups: many rows of activations with zero points") {
  check::compare_codes_every_way(random_weights<int4_any>(40, 200, false, group<dynamic>(64)),
                                 random_weights<uint8_any>(45, 200, false, group<dynamic>(32)));
  check::compare_codes_every_way(random_weights<uint4_any>(40, 200, false, group<dynamic>(32)),
                                 random_weights<uint8_per_channel<0>>(45, 200, false));
  check::compare_codes_every_way(random_weights<uint8_any>(40, 200, false, group<dynamic>(32)),
                                 random_weights<uint8_any>(38, 200, false, group<dynamic>(32)));
}
TEST_CASE("products over groups: groups of one side alone, which need not divide the depth") {
  using uint8_rows = scheme<uint8, per_channel<0>, zero_point<uint8, group<16>>>;
  for (const index_t k : {37, 45, 64}) {
    compare_codes(random_weights<int8_per_channel<0>>(20, k, false),
                  random_weights<int8_any>(5, k, false, group<dynamic>(16)));
    compare_codes(random_weights<uint8_rows>(20, k, false), random_weights<uint8_per_channel<0>>(5, k, false));
    compare_codes(random_weights<int4_any>(20, k, false, group<dynamic>(32)), random_weights<uint8_rows>(5, k, false));
  }
}
TEST_CASE("products over groups: activations with smaller groups cut those of the weights") {
  for (const index_t g : {64, 12, 4}) {
    compare_codes(random_weights<int4_any>(40, 200, false, group<dynamic>(64)),
                  random_weights<uint8_any>(5, 200, false, group<dynamic>(g)));
    compare_codes(random_weights<uint8_any>(40, 200, false, group<dynamic>(200)),
                  random_weights<int8_any>(5, 200, false, group<dynamic>(g)));
  }
  const auto w = random_weights<int4_any>(3, 40, false, group<dynamic>(10));
  const auto x = random_weights<int8_any>(2, 40, false, group<dynamic>(4));
  const auto v = x.view();
  const check::kept sink{2, 3};
  CHECK_THROWS_WITH_AS(ops::multiply_groups<simd::best_arch>(pack(w), check::outputs_by_rows(v), sink, serial{}),
                       "qtensor: the activations have groups of 4 and the weights of 10 elements along k; a product "
                       "takes them where their largest common divisor is a multiple of 4.",
                       error);
}
