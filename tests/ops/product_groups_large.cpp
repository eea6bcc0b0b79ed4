// Mirrors include/qtensor/ops/product_groups.hpp: sums up to the edge of 32 bits and beyond.
// SPDX-License-Identifier: BSD-3-Clause
#include "product_groups_check.hpp"

using namespace qtensor;
using check::compare_codes;
using check::compare_floats;
using check::random_weights;

namespace {

using int8_any = scheme<int8, group<dynamic>>;
using far_zeros = scheme<int4, group<dynamic>, zero_point<int32>>;

}  // namespace

TEST_CASE("products over groups: zero points anywhere, and groups longer than 32 bits can sum up") {
  for (const index_t m : {1, 9}) {
    compare_floats<check::first_and_last>(random_weights<far_zeros>(33, 70, false, group<dynamic>(32)), m);
    compare_codes<check::first_and_last>(random_weights<far_zeros>(33, 70, false, group<dynamic>(32)),
                                         random_weights<scheme<int8, per_channel<0>, zero_point<int32>>>(m, 70, false));
  }
  compare_codes<check::first_and_last>(random_weights<uint8_per_channel<0>>(3, 32769, false),
                                       random_weights<uint8_per_channel<0>>(2, 32769, false));
  compare_codes<check::first_and_last>(random_weights<uint8_per_channel<0>>(3, 16385, false),
                                       random_weights<uint8_per_channel<0>>(2, 16385, false));
  compare_codes<check::first_and_last>(random_weights<uint8_per_channel<0>>(3, 16384, false),
                                       random_weights<uint8_per_channel<0>>(2, 16384, false));
}
TEST_CASE("products over groups: the largest sums that tiles take") {
  auto w = random_weights<int8_any>(40, 32768, false, group<dynamic>(32768));
  auto x = random_weights<int8_per_channel<0>>(3, 32768, false);
  for (auto& c : w.codes()) c = -128;
  for (auto& c : x.codes()) c = -128;
  compare_codes(w, x);
  for (auto& c : x.codes()) c = 127;
  compare_codes(w, x);
}
