// Mirrors include/qtensor/ops/product_groups.hpp: formats of one's own, offsets.
// SPDX-License-Identifier: BSD-3-Clause
#include "product_groups_check.hpp"

using namespace qtensor;
using check::compare_codes;
using check::compare_floats;
using check::random_weights;

namespace {

/// A user's own 4-bit formats: values farther apart than those of e2m1, and of one sign.
template <int Step>
struct stairs {
  static constexpr int bits = 4;
  static constexpr bool is_integer = false, is_signed = true;
  static constexpr float unit = 0.25f, min = -2 * Step, max = 1.75f * Step;
  static constexpr fixed_string name = "stairs";
  static constexpr float decode(std::uint32_t c) { return (static_cast<float>(c) - 8.f) * unit * Step; }
};
template <class S>
void compare_all(const index_t g) {
  for (const index_t m : {1, 3, 8})
    for (const index_t k : {3, 32, 100, 700})
      compare_floats<check::first_and_last>(random_weights<S>(m == 3 ? 65 : 17, k, k == 100, group<dynamic>(g)), m);
  compare_floats<check::first_and_last>(random_weights<S>(17, 70, false, group<dynamic>(g)), 45);  // made ready
}

}  // namespace

TEST_CASE("products over groups: formats of one's own, of narrow and of wide values") {
  compare_all<scheme<stairs<1>, group<dynamic>>>(32);
  compare_all<scheme<stairs<15>, group<dynamic>>>(12);
  check::in_full<scheme<stairs<7>, group<dynamic>>>([]<class S>() { compare_all<S>(32); });
  compare_codes<check::first_and_last>(
      random_weights<scheme<stairs<15>, group<dynamic>>>(40, 50, false, group<dynamic>(8)),
      random_weights<uint8_per_channel<0>>(3, 50, false));
  compare_codes<check::first_and_last>(random_weights<mxfp4>(40, 50, false),
                                       random_weights<uint8_per_channel<0>>(3, 50, false));
}
TEST_CASE("products over groups: offsets beside the scales") {
  compare_all<scheme<uint4, group<dynamic>, offset<f16>, scale_as<f16>, static_only>>(32);
  for (const index_t k : {32, 70})
    compare_codes<check::first_and_last>(
        random_weights<scheme<uint4, group<32>, offset<f32>, static_only>>(20, k, false),
        random_weights<uint8_per_channel<0>>(3, k, false));
}
