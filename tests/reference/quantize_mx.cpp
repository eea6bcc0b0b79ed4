// Mirrors include/qtensor/reference/quantize.hpp: the MX formats under every power-of-two rule against the block
// oracle. SPDX-License-Identifier: BSD-3-Clause
#include "reference/quantize_check.hpp"

namespace {

using namespace oracle;
namespace qt = qtensor;

template <class Code, class Rule, class... P>
using mx_scheme = qt::scheme<Code, qt::mx_group<>, qt::scale_as<qt::e8m0>, Rule, P...>;

/// All four rules of one element format.
template <class Code>
void check_rules(const char* name) {
  check_groups<mx_scheme<Code, qt::mx_floor>>(mx_oracle(name, mx_rule::floor));
  check_groups<mx_scheme<Code, qt::mx_even>>(mx_oracle(name, mx_rule::even));
  check_groups<mx_scheme<Code, qt::mx_ceil>>(mx_oracle(name, mx_rule::ceil));
  check_groups<mx_scheme<Code, qt::mx_rceil>>(mx_oracle(name, mx_rule::rceil));
}

template <int Range>
void check_range() {
  check_groups<mx_scheme<qt::e2m1, qt::mx_dynamic_range<Range>>>([](const std::vector<float>& x,
                                                                    const block_list& blocks) {
    return mx_by(
        x, blocks, format_named("e2m1"), [](std::uint32_t a) { return dynamic_range_code(a, Range); }, conversion{});
  });
}

}  // namespace

TEST_CASE("quantize: MX e4m3 under floor, even, ceil and rceil") { check_rules<qt::e4m3>("e4m3"); }
TEST_CASE("quantize: MX e5m2 under floor, even, ceil and rceil") { check_rules<qt::e5m2>("e5m2"); }
TEST_CASE("quantize: MX e2m3 under floor, even, ceil and rceil") { check_rules<qt::e2m3>("e2m3"); }
TEST_CASE("quantize: MX e3m2 under floor, even, ceil and rceil") { check_rules<qt::e3m2>("e3m2"); }
TEST_CASE("quantize: MX e2m1 under floor, even, ceil and rceil") { check_rules<qt::e2m1>("e2m1"); }
TEST_CASE("quantize: MX e1m2 under floor, even, ceil and rceil") { check_rules<qt::e1m2>("e1m2"); }
TEST_CASE("quantize: MXINT8 under floor, even, ceil and rceil") { check_rules<qt::mxint8_code>("mxint8"); }

TEST_CASE("quantize: CANN's dynamic range rule for e2m1, every kind of dst_type_max") {
  check_range<0>();
  check_range<6>();
  check_range<7>();
  check_range<8>();
  check_range<12>();
}

TEST_CASE("quantize: policies for roundings and non-finite blocks reach the MX formats") {
  conversion c;
  c.round = rounding::toward_negative;
  check_groups<mx_scheme<qt::e2m1, qt::mx_floor, qt::toward_negative>>(mx_oracle("e2m1", mx_rule::floor, c));
  c.round = rounding::nearest_away;
  check_groups<mx_scheme<qt::e2m1, qt::mx_floor, qt::nearest_away>>(mx_oracle("e2m1", mx_rule::floor, c));
  c.round = rounding::via_f16;
  check_groups<mx_scheme<qt::e5m2, qt::mx_floor, qt::via_f16>>(mx_oracle("e5m2", mx_rule::floor, c));
  c = {};
  c.blocks = nonfinite::to_zero;
  check_groups<mx_scheme<qt::e4m3, qt::mx_floor, qt::block_to_zero>>(mx_oracle("e4m3", mx_rule::floor, c));
  c.blocks = nonfinite::ignores;
  c.nan = nan_rule::to_max;
  check_groups<mx_scheme<qt::e2m1, qt::mx_floor, qt::block_ignores, qt::nan_to_max>>(
      mx_oracle("e2m1", mx_rule::floor, c));
  c.over = overflow::to_special;
  c.nan = nan_rule::propagates;
  check_groups<mx_scheme<qt::e4m3, qt::mx_floor, qt::block_ignores, qt::to_special>>(
      mx_oracle("e4m3", mx_rule::floor, c));
}
