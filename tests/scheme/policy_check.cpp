// What a policy of one's own has to offer, told by concepts; tests/errors has the sentences.
// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <qtensor/format/minifloat.hpp>
#include <qtensor/scheme/policy_check.hpp>

namespace qt = qtensor;

namespace {

struct doubled : qt::reciprocal {
  [[maybe_unused]] static constexpr qt::fixed_string name = "doubled";
};
struct halved : doubled {
  static constexpr float quotient(float x, float scale, float) { return x / scale / 2; }
};
struct in_double : doubled {
  static constexpr double quotient(double x, double scale, double) { return x / scale; }
};

struct up_or_down {
  using slot = qt::slot::rounding;
  static constexpr qt::fixed_string name = "up_or_down";
  static constexpr bool up(bool, bool, qt::remainder r) { return r > qt::remainder::half; }
};
struct moved : up_or_down {
  template <class F>
  static constexpr float before(float x) {
    return x + 1;
  }
};
struct moved_at_random : up_or_down {
  template <class F>
  static constexpr float before(float x, std::uint32_t word) {
    return x + static_cast<float>(word);
  }
};
struct moved_in_all_formats : up_or_down {
  static constexpr float before(float x) { return x + 1; }
};
struct moved_in_double : up_or_down {
  template <class F>
  static constexpr double before(double x) {
    return x + 1;
  }
};
struct sealed final : up_or_down {};

template <class P>
constexpr bool complete = qt::detail::policies_complete<qt::e4m3, P>;

}  // namespace

TEST_CASE("a division is one of the library's, or has a quotient of three floats: a struct that derives is another") {
  CHECK(qt::division_policy<qt::reciprocal>);
  CHECK_FALSE(qt::division_policy<doubled>);
  CHECK(qt::division_policy<halved>);
  CHECK_FALSE(qt::division_policy<in_double>);
}

TEST_CASE("a rounding has `before` as a template that gives a float, or nothing of that name") {
  CHECK_FALSE(qt::names_before<up_or_down>);
  CHECK(qt::names_before<moved>);
  CHECK(qt::rounds_before<moved, qt::e4m3>);
  CHECK(qt::names_before<moved_at_random>);
  CHECK(qt::rounds_before<moved_at_random, qt::e4m3>);
  CHECK(qt::names_before<moved_in_all_formats>);
  CHECK_FALSE(qt::rounds_before<moved_in_all_formats, qt::e4m3>);
  CHECK(qt::names_before<moved_in_double>);
  CHECK_FALSE(qt::rounds_before<moved_in_double, qt::e4m3>);
  CHECK_FALSE(qt::names_before<sealed>);  // cannot be asked
  CHECK(complete<sealed>);
}

TEST_CASE("a scale rule has the functions its statistics ask for, of the formats it meets") {
  CHECK(qt::gives_scales<qt::amax_scale, qt::e4m3, qt::f32>);
  CHECK(qt::gives_scales<qt::min_max, qt::uint8, qt::f32>);
  CHECK(qt::gives_scales<qt::peak_scale, qt::int4, qt::f16>);
  CHECK(qt::gives_scales<qt::offset_min_max, qt::uint4, qt::f16>);
  CHECK(qt::gives_scales<qt::static_only, qt::e4m3, qt::f32>);
  CHECK_FALSE(qt::gives_scales_below<qt::amax_scale, qt::e2m1, qt::e4m3>);
  CHECK(qt::gives_scales_below<qt::nvfp4_scale, qt::e2m1, qt::e4m3>);
}

TEST_CASE("the library's policies are complete") {
  CHECK(complete<qt::scale_as<qt::f16>>);
  CHECK(complete<qt::zero_point<qt::uint8>>);
  CHECK(complete<qt::symmetric>);
  CHECK(complete<qt::no_offset>);
  CHECK(complete<qt::one_level>);
  CHECK(complete<qt::full_range>);
  CHECK(complete<qt::interleaved<>>);
  CHECK(complete<qt::mx_floor>);
  CHECK(complete<qt::stochastic<>>);
  CHECK(complete<qt::to_special>);
  CHECK(complete<qt::nan_to_opposite_zero>);
  CHECK(complete<qt::block_ignores_nan>);
  CHECK(complete<qt::subnormal_to_zero>);
  CHECK(complete<qt::unrounded_scale>);
  CHECK(complete<qt::rule_multiplier>);
  CHECK(complete<qt::divide_in<qt::f16>>);
  CHECK(complete<qt::zp_before_round>);
}
