// Mirrors include/qtensor/simd/encode.hpp: every format and policy on the inputs of the oracle, each architecture
// against the reference. SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/simd/encode.hpp>

#include "runs.hpp"

using namespace runs;

namespace {

template <class F, class... P>
using plain = scheme<F, per_tensor, static_only, P...>;

const std::vector<float>& inputs_of(const std::string& name) {
  static std::vector<float> x;
  static std::string of;
  if (of != name) {
    of = name;
    x = oracle::adversarial(oracle::format_named(name), 4000);
  }
  return x;
}

template <class F, class... P>
void check_format() {
  check_uniform<plain<F, P...>>(inputs_of(std::string(F::name)), {1.f});
}

template <class F>
void check_minifloat() {
  check_format<F>();
  check_format<F, to_special>();
}

// Formats of a user's own: other splits of the bits, each kind of specials.
struct e3m4 : minifloat<3, 4, 3, specials::ieee> {
  static constexpr fixed_string name = "e3m4";
};
struct e1m6 : minifloat<1, 6, 1, specials::nan_only> {
  static constexpr fixed_string name = "e1m6";
};
struct e6m1 : minifloat<6, 1, 31, specials::nan_is_negative_zero> {
  static constexpr fixed_string name = "e6m1";
};
struct e2m1i : minifloat<2, 1, 1, specials::ieee> {
  static constexpr fixed_string name = "e2m1i";
};

struct halves_up {
  using slot = qtensor::slot::rounding;
  static constexpr fixed_string name = "halves_up";
  static constexpr bool up(bool negative, bool, qtensor::remainder r) {
    return r > qtensor::remainder::half || (r == qtensor::remainder::half && !negative);
  }
};
struct moves_grid_points {
  using slot = qtensor::slot::rounding;
  static constexpr fixed_string name = "moves_grid_points";
  static constexpr bool up(bool, bool, qtensor::remainder) { return true; }
};
struct own_division {
  using slot = qtensor::slot::division;
  static constexpr fixed_string name = "own_division";
  static constexpr float quotient(float x, float scale, float) { return x / scale / 2; }
};

struct own_reciprocal {
  using slot = qtensor::slot::division;
  using ordinary = reciprocal;
  static constexpr fixed_string name = "own_reciprocal";
  static constexpr float quotient(float x, float scale, float) { return rounded(x * rounded(1.f / scale)); }
};

template <class F>
void check_roundings(const std::vector<float>& x) {
  check_uniform<plain<F, nearest_away>>(x, {1.f});
  check_uniform<plain<F, toward_zero>>(x, {1.f});
  check_uniform<plain<F, toward_negative>>(x, {1.f});
  check_uniform<plain<F, toward_positive>>(x, {1.f});
  check_uniform<plain<F, halves_up>>(x, {1.f});
  check_uniform<plain<F, via_f16>>(x, {1.f});
}

}  // namespace

TEST_CASE("minifloats: values, midpoints, neighbours, specials; saturating and not") {
  check_minifloat<e4m3>();
  check_minifloat<e5m2>();
  check_minifloat<e4m3fnuz>();
  check_minifloat<e3m2>();
  check::in_full<e5m2fnuz>([]<class F>() { check_minifloat<F>(); });
  check_format<e2m3>();
  check_format<e2m1>();
  check_format<e1m2>();
}

TEST_CASE("integers and fixed point: values, midpoints, neighbours, specials") {
  check_format<int8>();
  check_format<uint8>();
  check_format<int4>();
  check_format<uint4>();
  check_format<int2>();
  check::in_full<uint2>([]<class F>() { check_format<F>(); });
  check_format<mxint8_code>();
  check_uniform<plain<mxint8_code, to_special>>(inputs_of("mxint8"), {1.f});
  check_uniform<plain<narrow_range<int8>>>(inputs_of("int8"), {1.f});
  check_uniform<plain<int8, stored_range<-5, 100>>>(inputs_of("int8"), {1.f});
}

TEST_CASE("a user's own minifloats") {
  const std::vector<float>& x = inputs_of("e4m3");
  check_uniform<plain<e3m4>>(x, {1.f});
  check_uniform<plain<e3m4, to_special>>(x, {1.f});
  check_uniform<plain<e1m6, to_special>>(x, {1.f});
  check_uniform<plain<e6m1>>(x, {0x1p-30f});
  check_uniform<plain<e2m1i, to_special>>(x, {1.f});
  check_uniform<plain<e2m1i>>(x, {1.f});
}

TEST_CASE("roundings: each policy of the library and a user's own") {
  check_roundings<int8>(inputs_of("int8"));
  check_roundings<e4m3>(inputs_of("e4m3"));
  check_roundings<e2m1>(inputs_of("e2m1"));
}

TEST_CASE("NaN: each policy, each kind of format") {
  const std::vector<float>& x = inputs_of("e4m3");
  check_uniform<plain<e4m3, nan_to_zero>>(x, {1.f});
  check_uniform<plain<e4m3, nan_to_max>>(x, {1.f});
  check_uniform<plain<e5m2, nan_to_max, to_special>>(x, {1.f});
  check_uniform<plain<e4m3fnuz, nan_to_zero, to_special>>(x, {1.f});
  check_uniform<plain<e2m1, nan_to_max>>(x, {1.f});
  check_uniform<plain<int8, nan_to_max>>(x, {1.f});
  check_uniform<plain<uint8, zero_point<uint8>, nan_to_max>>(x, {1.f}, 9);
  check_uniform<plain<uint8, zero_point<uint8>, nan_to_zero>>(x, {1.f}, 9);
  check_uniform<plain<int8, zero_point<int8>, nan_to_zero_point, zp_before_round>>(x, {1.f}, -9);
  check_uniform<plain<mxint8_code, nan_to_max>>(x, {1.f});
  check::in_full<plain<e4m3, nan_to_lowest>>([&]<class S>() { check_uniform<S>(x, {1.f}); });
  check_uniform<plain<e2m1, nan_to_lowest>>(x, {1.f});
  check::in_full<plain<uint8, zero_point<uint8>, nan_to_lowest>>([&]<class S>() { check_uniform<S>(x, {1.f}, 9); });
  check_uniform<plain<mxint8_code, nan_to_lowest>>(x, {1.f});
}

TEST_CASE("a division of one's own that is a reciprocal for ordinary scales") {
  check_uniform<plain<e4m3, own_reciprocal>>(inputs_of("e4m3"), {2.2f});
  check_uniform<plain<int8, own_reciprocal>>(inputs_of("int8"), {2.2f});
}

TEST_CASE("which schemes have a vector encoder") {
  static_assert(simd::vector_encodable<with<mxfp4, own_reciprocal>>);
  static_assert(simd::vector_encodable<int8_per_tensor> && simd::vector_encodable<uint4_group<128>>);
  static_assert(simd::vector_encodable<mxfp4> && simd::vector_encodable<nvfp4> && simd::vector_encodable<mxint8>);
  static_assert(simd::vector_encodable<with<nvfp4, tensor_scale<f32>>>);
  static_assert(!simd::vector_encodable<plain<int16>> && !simd::vector_encodable<plain<bf16>>);
  static_assert(!simd::vector_encodable<with<mxfp4, stochastic<1>>>);
  static_assert(!simd::vector_encodable<with<mxfp4, moves_grid_points>>);
  static_assert(!simd::vector_encodable<with<mxfp4, own_division>>);
  static_assert(!simd::vector_encodable<with<mxfp4, planar<high_first>>>);
  static_assert(!simd::vector_encodable<with<mxfp4, interleaved<>>>);
  static_assert(simd::detail::step_table<nearest_even>() == 0xc8c8u);
  CHECK(simd::detail::ties_to_even<via_f16>);
}
