// Mirrors include/qtensor/simd/own_policies.hpp: a user's rule, division and rounding, each with its vector form.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/ops/quantize.hpp>
#include <qtensor/simd/own_policies.hpp>

#include "ops/special_blocks.hpp"

namespace user {

/// Twice the usual scale, none below 2^-20.
struct wide_scale {
  using slot = qtensor::slot::rule;
  using statistics = qtensor::absolute_maximum;
  static constexpr qtensor::fixed_string name = "user::wide_scale";
  template <qtensor::format Code, qtensor::format Scale>
  static constexpr float scale(float amax, qtensor::code_range codes) {
    const float s = qtensor::rounded(2.f * amax) / codes.high;
    return s < 0x1p-20f ? 0x1p-20f : s;
  }
};
/// x * RN(3 / scale).
struct thrice {
  using slot = qtensor::slot::division;
  static constexpr qtensor::fixed_string name = "user::thrice";
  static constexpr float quotient(float x, float scale, float) { return qtensor::rounded(x * (3.f / scale)); }
};
/// Magnitudes a quarter larger, ties to even.
struct generous {
  using slot = qtensor::slot::rounding;
  static constexpr qtensor::fixed_string name = "user::generous";
  static constexpr bool up(bool negative, bool odd, qtensor::remainder r) {
    return qtensor::nearest_even::up(negative, odd, r);
  }
  template <qtensor::format F>
  static constexpr float before(float x) {
    return qtensor::rounded(x * 1.25f);
  }
};

}  // namespace user

namespace qtensor::inline QTENSOR_ABI::simd {

template <class S, class A>
struct vector_rule<user::wide_scale, S, A> {
  static constexpr bool enabled = true, bounded = false;
  static floats<A> scale(const words<A>& amax, float) {
    const floats<A> s = simd::div(simd::mul(simd::bits_as<float>(amax), floats<A>(2.f)), floats<A>(S::codes.high));
    return simd::max(s, floats<A>(0x1p-20f));
  }
};
template <class A>
struct vector_inverse<user::thrice, A> {
  static constexpr bool enabled = true;
  static floats<A> of(const floats<A>& scale, float) { return simd::div(floats<A>(3.f), scale); }
};
template <class Code, class A>
struct vector_before<user::generous, Code, A> {
  static constexpr bool enabled = true;
  static floats<A> of(const floats<A>& x) { return simd::mul(x, floats<A>(1.25f)); }
};

}  // namespace qtensor::inline QTENSOR_ABI::simd

using namespace qtensor;

TEST_CASE("own policies: schemes with them are for vectors, others are not") {
  using rule = scheme<int8, group<32>, user::wide_scale>;
  using division = scheme<e4m3, group<32>, user::thrice>;
  using rounding = scheme<e2m1, group<16>, scale_as<e4m3>, user::generous>;
  CHECK(simd::vector_scaled<rule>);
  CHECK(simd::vector_encodable<division>);
  CHECK(simd::vector_encodable<rounding>);
  special_blocks::check_scheme<rule>();
  special_blocks::check_scheme<with<rule, block_literal>>();
  special_blocks::check_scheme<with<rule, user::thrice, user::generous>>();
  special_blocks::check_scheme<division>();
  special_blocks::check_scheme<rounding>();
  special_blocks::check_scheme<scheme<int8, per_channel<1>, user::generous, user::thrice>>();
  special_blocks::check_scheme<scheme<int4, per_tensor, user::generous>>();
}
