// Mirrors include/qtensor/policy/stored.hpp.
// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <qtensor/policy/stored.hpp>
#include <qtensor/reference/quantize.hpp>
#include <qtensor/scheme/schemes.hpp>
#include <string>

using namespace qtensor;

namespace {

template <class P>
std::string name_of() {
  return std::string(std::string_view(P::name));
}

template <class G>
concept shares_zero_points = requires {
  typename zero_point<int8, G>;
};
static_assert(shares_zero_points<per_tensor> && shares_zero_points<as_scales> && !shares_zero_points<int8>);

}  // namespace

TEST_CASE("names are spelled as the types are written") {
  CHECK(name_of<scale_as<bf16>>() == "scale_as<bf16>");
  CHECK(name_of<zero_point<uint8>>() == "zero_point<uint8>");
  CHECK(name_of<zero_point<int4, per_channel<0>>>() == "zero_point<int4, per_channel<0>>");
  CHECK(name_of<offset<f16>>() == "offset<f16>");
  CHECK(name_of<tensor_scale<f32>>() == "tensor_scale<f32>");
  CHECK(name_of<stored_range<-127, 127>>() == "stored_range<-127,127>");
  CHECK(name_of<symmetric>() == "symmetric");
}

TEST_CASE("what is stored decides the value: (code - zero point) * scale, * tensor scale, + offset") {
  CHECK(dequantize_element<int8_per_tensor>(0xFB, {0.5f}) == -2.5f);
  CHECK(dequantize_element<uint8_per_tensor>(100, {0.5f}, 128) == -14.f);
  CHECK(dequantize_element<with<nvfp4, tensor_scale<f32>>>(7, {2.f, 0.25f}) == 3.f);
  using with_offset = scheme<uint4, group<32>, scale_as<f16>, offset<f16>, static_only>;
  CHECK(dequantize_element<with_offset>(15, {0.5f}, 0, -4.f) == 3.5f);
}

TEST_CASE("zero_point<F, G>: zero points shared by other elements than scales") {
  using own = scheme<uint4, group<32>, zero_point<uint4, per_channel<0>>>;
  CHECK(std::is_same_v<own::zero_granularity_type, per_channel<0>>);
  CHECK_FALSE(own::zero_points_as_scales);
  CHECK(std::is_same_v<uint4_group<32>::zero_granularity_type, group<32>>);
  CHECK(uint4_group<32>::zero_points_as_scales);
  const tensor<own> t(matrix_extents(3, 100));
  CHECK(t.scales().size() == 12);
  CHECK(t.zero_points().size() == 3);
}

TEST_CASE("stored_range: codes stay inside it, and rules scale to it (NUMERICS 7.2: i8<-127:127>, -1000 -> -127)") {
  using narrow = with<int8_per_tensor, stored_range<-127, 127>>;
  CHECK(int8::decode(quantize_element<narrow>(-1000.f, {1.f})) == -127.f);
  CHECK(int8::decode(quantize_element<int8_per_tensor>(-1000.f, {1.f})) == -128.f);
  CHECK(narrow::codes.low == -127.f);
  CHECK(narrow::codes.high == 127.f);
  using seven = with<int8_per_tensor, stored_range<-7, 7>>;
  tensor<seven, extents<dynamic>> t(extents<dynamic>(2));
  reference::quantize([](const auto& i) { return i[0] == 0 ? 14.f : -1.f; }, t.span());
  CHECK(t.scale(0) == 2.f);
  CHECK(t.codes()[0] == 7);
  CHECK(t.codes()[1] == 0);  // -0.5 ties to even
}
