// Mirrors include/qtensor/scheme/scheme.hpp.
// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <qtensor/format/table.hpp>
#include <qtensor/scheme/schemes.hpp>
#include <string>

using namespace qtensor;

namespace {

template <class A, class B>
constexpr bool same = std::is_same_v<A, B>;

// One choice, one type: order does not matter, and saying a default is saying nothing.
static_assert(
    same<scheme<e2m1, group<32>, scale_as<e8m0>, mx_floor>, scheme<e2m1, group<32>, mx_floor, scale_as<e8m0>>>);
static_assert(same<scheme<uint4, group<128>, zero_point<uint4>, scale_as<f16>, nearest_away, reciprocal>,
                   scheme<uint4, group<128>, reciprocal, nearest_away, scale_as<f16>, zero_point<uint4>>>);
static_assert(same<scheme<int8, per_tensor>,
                   scheme<int8, per_tensor, scale_as<f32>, symmetric, no_offset, one_level, full_range, planar<>,
                          amax_scale, nearest_even, saturate, nan_propagates, block_propagates, subnormal_exact,
                          stored_scale, exact_division, divide_in<f32>, zp_after_round>>);
static_assert(
    same<scheme<uint8, per_tensor, zero_point<uint8>, min_max>, scheme<uint8, per_tensor, zero_point<uint8>>>);
static_assert(same<scheme<hif8, per_tensor, nearest_away>, scheme<hif8, per_tensor>>);
static_assert(!same<scheme<hif8, per_tensor, nearest_even>, scheme<hif8, per_tensor>>);
static_assert(!same<scheme<int8, per_tensor, static_only>, scheme<int8, per_tensor>>);
static_assert(same<scheme<int8, per_tensor>, basic_scheme<int8, per_tensor>>);
static_assert(same<scheme<int8, per_tensor, reciprocal>, basic_scheme<int8, per_tensor, reciprocal>>);
// ... and any two orders of the slots give the slots' own order.
static_assert(same<scheme<e4m3, per_tensor, to_special, scale_as<bf16>>,
                   basic_scheme<e4m3, per_tensor, scale_as<bf16>, to_special>>);

// The defaults.
using plain = scheme<int8, per_tensor>;
static_assert(same<plain::scale_format, f32> && same<plain::zero_point_format, none> &&
              same<plain::offset_format, none>);
static_assert(same<plain::tensor_scale_format, none> && same<plain::layout, planar<>> && same<plain::rule, amax_scale>);
static_assert(same<plain::rounding, nearest_even> && same<plain::overflow, saturate> &&
              same<plain::nan, nan_propagates>);
static_assert(same<plain::nonfinite_block, block_propagates> && same<plain::subnormal_amax, subnormal_exact>);
static_assert(same<plain::code_scale, stored_scale> && same<plain::division, exact_division> &&
              same<plain::division_type, f32>);
static_assert(same<plain::zero_point_order, zp_after_round> && same<plain::code_format, int8> &&
              same<plain::granularity_type, per_tensor>);
static_assert(!plain::has_zero_point && !plain::has_offset && !plain::has_tensor_scale && !plain::is_interleaved);

// with: one slot, several, the granularity, the scale format.
static_assert(same<with<mxfp4, mx_rceil, nan_to_zero>, scheme<e2m1, group<32>, scale_as<e8m0>, mx_rceil, nan_to_zero>>);
static_assert(same<with<with<mxfp4, mx_rceil>, mx_floor>, mxfp4> && same<with<mxfp4>, mxfp4>);
static_assert(same<with<mxfp4, group<16>>, scheme<e2m1, group<16>, scale_as<e8m0>, mx_floor>>);
static_assert(same<with<int4_group<32>, scale_as<f16>, per_tensor>, scheme<int4, per_tensor, scale_as<f16>>>);
static_assert(same<with<int8_per_tensor, zero_point<int8>>, scheme<int8, per_tensor, zero_point<int8>>>);
static_assert(same<with<uint8_per_tensor, symmetric, amax_scale>, scheme<uint8, per_tensor>>);
// Checked only when all are in place: neither half of this exchange is a scheme.
static_assert(same<with<mxfp8_e4m3, scale_as<f32>, amax_scale>, scheme<e4m3, group<32>>>);
static_assert(same<with<mxfp8_e4m3, amax_scale, scale_as<f32>>, scheme<e4m3, group<32>>>);
// e8m0 scales without a rule: static_only, which stays that way.
static_assert(same<stored<mxfp4>::rule, static_only>);
static_assert(same<with<stored<mxfp4>, group<16>>, scheme<e2m1, group<16>, scale_as<e8m0>, static_only>>);
static_assert(same<with<stored<mxfp4>, mx_floor>, mxfp4>);

// along: groups on another axis.
static_assert(same<along<0, mxfp8_e4m3>, scheme<e4m3, group<32, 0>, scale_as<e8m0>, mx_floor>>);
static_assert(same<along<-1, along<0, mxfp4>>, mxfp4> && same<along<0, stored<mxfp4>>, stored<along<0, mxfp4>>>);
static_assert(same<along<1, scheme<int4, group<dynamic>>>, scheme<int4, group<dynamic, 1>>>);

// stored: what the bytes mean.
static_assert(same<stored<with<mxfp4, mx_rceil, nan_to_zero, nearest_away>>, stored<mxfp4>>);
static_assert(same<stored<uint8_per_tensor>, scheme<uint8, per_tensor, zero_point<uint8>>>);
static_assert(!same<stored<int4_group<32>>, stored<uint4_group<32>>> &&
              !same<stored<mxfp4>, stored<with<mxfp4, group<16>>>>);
static_assert(same<stored<stored<nvfp4>>, stored<nvfp4>>);
static_assert(!same<stored<with<int8_per_tensor, stored_range<-7, 7>>>, stored<int8_per_tensor>>);

// A struct that derives from a scheme is a scheme with a short name.
struct my_weights : scheme<int4, group<64>, scale_as<f16>> {};
static_assert(quantization_scheme<my_weights> && quantization_scheme<mxfp4> && quantization_scheme<mxint8>);
static_assert(!quantization_scheme<int8> && !quantization_scheme<int> && !quantization_scheme<nearest_even> &&
              !quantization_scheme<per_tensor>);
static_assert(same<stored<my_weights>, scheme<int4, group<64>, scale_as<f16>>>);
static_assert(same<with<my_weights, group<32>>, scheme<int4, group<32>, scale_as<f16>>>);
static_assert(same<along<0, my_weights>, scheme<int4, group<64, 0>, scale_as<f16>>>);

/// A user's own format in twelve lines,
struct nf4 {
  static constexpr int bits = 4;
  static constexpr bool is_integer = false;
  static constexpr bool is_signed = true;
  static constexpr float min = -1.f, max = 1.f;
  static constexpr fixed_string name = "nf4";
  static constexpr float levels[16] = {-1.f,     -0.69619f, -0.52507f, -0.39492f, -0.28444f, -0.18477f, -0.09105f, 0.f,
                                       0.07958f, 0.16093f,  0.24611f,  0.33792f,  0.44071f,  0.56262f,  0.72296f,  1.f};
  static constexpr float decode(std::uint32_t code) { return levels[code & 15]; }
};
/// own granularity, scales shared by pairs of rows,
struct row_pairs {
  static constexpr fixed_string name = "row_pairs";
  static constexpr index_t block_extent(int, int axis, index_t extent) {
    return axis == 0 ? 2 : extent > 0 ? extent : 1;
  }
};
/// and own rounding.
struct away_from_zero {
  using slot = slot::rounding;
  static constexpr fixed_string name = "away_from_zero";
  static constexpr bool up(bool, bool, qtensor::remainder r) { return r != qtensor::remainder::zero; }
};
using mine = scheme<nf4, row_pairs, away_from_zero>;
static_assert(quantization_scheme<mine> && same<mine::rounding, away_from_zero>);

std::string text(std::string_view name) { return std::string(name); }

}  // namespace

TEST_CASE("name: code format, granularity, scale format, then what else is stored") {
  CHECK(text(name<mxfp4>) == "e2m1 x group<32> / e8m0");
  CHECK(text(name<int4_group<32>>) == "int4 x group<32> / f32");
  CHECK(text(name<uint8_per_channel<1>>) == "uint8 x per_channel<1> / f32 + zero_point<uint8>");
  CHECK(text(name<scheme<uint4, group<32>, zero_point<uint4, per_channel<0>>>>) ==
        "uint4 x group<32> / f32 + zero_point<uint4, per_channel<0>>");
  CHECK(text(name<with<nvfp4, tensor_scale<f32>>>) == "e2m1 x group<16> / e4m3 / f32");
  CHECK(text(name<scheme<uint4, group<32>, scale_as<f16>, offset<f16>, static_only>>) ==
        "uint4 x group<32> / f16 + offset<f16>");
  CHECK(text(name<my_weights>) == "int4 x group<64> / f16");
  CHECK(text(name<mine>) == "nf4 x row_pairs / f32");
  CHECK(text(name<scheme<e4m3, block<dynamic, 128>>>) == "e4m3 x block<dynamic,128> / f32");
}

TEST_CASE("name: the same for schemes that differ in conversion policies only; choices lists those") {
  CHECK(text(name<with<mxfp4, mx_rceil>>) == text(name<mxfp4>));
  CHECK(text(choices<with<mxfp4, nan_to_zero, mx_rceil>>) == "scale_as<e8m0>, mx_rceil, nan_to_zero");
  CHECK(text(choices<int8_per_tensor>) == "");
  CHECK(text(choices<mine>) == "away_from_zero");
  CHECK(text(choices<my_weights>) == "scale_as<f16>");
}

TEST_CASE("codes: the format's range, or the stored range") {
  CHECK(int8_per_tensor::codes.low == -128.f);
  CHECK(int8_per_tensor::codes.high == 127.f);
  CHECK(scheme<narrow_range<int8>, per_tensor>::codes.low == -127.f);
  CHECK(scheme<int8, per_tensor, stored_range<-100, 50>>::codes.high == 50.f);
  CHECK(mxfp4::codes.high == 6.f);
}

TEST_CASE("a user's format needs nothing else: its values are found and sorted") {
  CHECK(sorted<nf4>.count == 16);
  CHECK(decode_table<nf4>[1] == -0.69619f);
  CHECK(mine::codes.high == 1.f);
}
