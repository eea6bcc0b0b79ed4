// Mirrors include/qtensor/ops/product_groups.hpp: sums up to the edge of 32 bits and beyond.
// SPDX-License-Identifier: BSD-3-Clause
#include "product_groups_check.hpp"

using namespace qtensor;
using check::compare_codes;
using check::compare_floats;
using check::random_weights;

namespace {

/// The outputs of a matrix too large for a cache, whose codes are asked for, are those of its parts, which are not.
template <class S, class... G>
void check_parts(index_t outputs, index_t depth, const G&... granularity) {
  constexpr index_t part = 64;
  using A = simd::best_arch;
  const auto w = random_weights<S>(outputs, depth, false, granularity...);
  const auto all = pack(w);
  REQUIRE(!ops::weights_are_near(all.layout()));
  const auto product = [&](const auto& weights, index_t m, const std::vector<float>& x) {
    check::kept y{m, weights.rows()};
    const matrix_ref<const float> rows{x.data(), m, depth, depth, 1};
    ops::multiply_groups<A>(weights, rows, activation_scales::per_row, y, serial{});
    return y;
  };
  for (const index_t m : {1, 2, 3, 6, 7, 13}) {
    const auto x = check::numbers(m * depth, static_cast<unsigned>(m));
    const auto y = product(all, m, x);
    for (const index_t first : {index_t{0}, 10 * part, outputs / part * part}) {
      const index_t n = std::min(part, outputs - first);
      std::vector<float> want;
      for (index_t r = 0; r < m; ++r)
        want.insert(want.end(), y.y.begin() + (r * outputs + first), y.y.begin() + (r * outputs + first + n));
      product(pack(w.view().template slice<0>(first, n)), m, x).require_equal(want);
    }
  }
}

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
TEST_CASE("products over groups: weights from memory, whose codes are asked for, give the bits of their parts") {
  check_parts<int4_group<32>>(1100, 2100);
  check_parts<scheme<int4, per_channel<0>>>(1100, 2100);  // a block that leaves the first cache
  check_parts<int8_any>(1100, 1000, group<dynamic>(40));
  check_parts<mxfp6_e2m3>(1100, 1000);  // expanded
  check_parts<scheme<uint4, qtensor::group<64>, zero_point<uint8>>>(1100, 2100);
}
