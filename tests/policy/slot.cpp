// Mirrors include/qtensor/policy/slot.hpp.
// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <qtensor/scheme/scheme.hpp>

using namespace qtensor;

namespace {

struct nameless {
  using slot = slot::rounding;
};
struct slotless {
  static constexpr fixed_string name = "slotless";
};

static_assert(slotless::name == fixed_string("slotless"));  // all it has

template <class Slot, class... P>
constexpr bool all_fill = (fills<P, Slot> && ...);

}  // namespace

TEST_CASE("policy: an empty type that names its slot and itself") {
  CHECK(policy<nearest_even>);
  CHECK(policy<scale_as<e8m0>>);
  CHECK_FALSE(policy<nameless>);
  CHECK_FALSE(policy<slotless>);
  CHECK_FALSE(policy<int8>);  // a format
  CHECK_FALSE(policy<group<32>>);
  CHECK_FALSE(policy<int>);
  CHECK(std::is_empty_v<stochastic<7>>);
}

TEST_CASE("fills: every policy of the library fills the slot its file says") {
  CHECK(all_fill<slot::scale_format, scale_as<f32>, scale_as<bf16>, scale_as<e8m0>>);
  CHECK(all_fill<slot::zero_point, symmetric, zero_point<uint8>, zero_point<int4, per_tensor>>);
  CHECK(all_fill<slot::offset, no_offset, offset<f16>>);
  CHECK(all_fill<slot::tensor_scale, one_level, tensor_scale<f32>>);
  CHECK(all_fill<slot::stored_range, full_range, stored_range<-127, 127>>);
  CHECK(all_fill<slot::layout, planar<>, planar<high_first>, interleaved<split_halves>,
                 interleaved_with_sum<low_first, f16>, interleaved_groups<4>>);
  CHECK(all_fill<slot::rule, amax_scale, bounded_amax<>, nvfp4_scale, mx_floor, mx_even, mx_ceil, mx_rceil,
                 mx_dynamic_range<6>, min_max, peak_scale, offset_min_max, static_only>);
  CHECK(all_fill<slot::rounding, nearest_even, nearest_away, toward_negative, toward_positive, toward_zero, via_f16,
                 stochastic<>>);
  CHECK(all_fill<slot::overflow, saturate, to_special>);
  CHECK(all_fill<slot::nan, nan_propagates, nan_to_zero, nan_to_zero_point, nan_to_max, nan_to_lowest>);
  CHECK(all_fill<slot::nonfinite_block, block_propagates, block_to_zero, block_ignores, block_ignores_nan, block_literal>);
  CHECK(all_fill<slot::subnormal_amax, subnormal_exact, subnormal_to_zero>);
  CHECK(all_fill<slot::code_scale, stored_scale, unrounded_scale>);
  CHECK(all_fill<slot::division, exact_division, reciprocal>);
  CHECK(all_fill<slot::division_type, divide_in<f32>, divide_in<f16>>);
  CHECK(all_fill<slot::zero_point_order, zp_after_round, zp_before_round>);
  CHECK_FALSE(fills<nearest_even, slot::overflow>);
  CHECK_FALSE(fills<nameless, slot::rounding>);
}
