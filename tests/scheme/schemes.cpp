// Mirrors include/qtensor/scheme/schemes.hpp: predefined schemes by name and choices, and the vectors of NUMERICS 11.
// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <qtensor/reference/quantize.hpp>
#include <qtensor/scheme/schemes.hpp>
#include <string>
#include <vector>

using namespace qtensor;

namespace {

template <class S>
std::string described() {
  return std::string(std::string_view(name<S>)) + " | " + std::string(std::string_view(choices<S>));
}

/// One block of S over these numbers: scale bits, zero point, code values.
struct block_result {
  std::uint32_t scale;
  std::int64_t zero;
  std::vector<float> codes;
  bool operator==(const block_result&) const = default;
};
template <class S>
block_result made(const std::vector<std::uint32_t>& bits) {
  tensor<S, matrix_extents> t(matrix_extents(1, static_cast<index_t>(bits.size())));
  reference::quantize([&](const auto& i) { return float_of(bits[static_cast<std::size_t>(i[1])]); }, t.span());
  block_result r{t.view().scale_code({0, 0}), t.zero_point(0, 0), {}};
  for (index_t i = 0; i < t.cols(); ++i) r.codes.push_back(S::code_format::decode(t.code(0, i)));
  return r;
}
template <class S>
block_result made_of(const std::vector<float>& x) {
  std::vector<std::uint32_t> bits;
  for (float v : x) bits.push_back(bits_of(v));
  return made<S>(bits);
}

}  // namespace

TEST_CASE("predefined schemes: what they are") {
  CHECK(described<int8_per_tensor>() == "int8 x per_tensor / f32 | ");
  CHECK(described<int8_per_channel<>>() == "int8 x per_channel<0> / f32 | ");
  CHECK(described<int8_per_channel<1>>() == "int8 x per_channel<1> / f32 | ");
  CHECK(described<uint8_per_tensor>() == "uint8 x per_tensor / f32 + zero_point<uint8> | zero_point<uint8>");
  CHECK(described<uint8_per_channel<1>>() == "uint8 x per_channel<1> / f32 + zero_point<uint8> | zero_point<uint8>");
  CHECK(described<int8_group<>>() == "int8 x group<128> / f32 | ");
  CHECK(described<int4_group<32>>() == "int4 x group<32> / f32 | ");
  CHECK(described<uint4_group<>>() == "uint4 x group<128> / f32 + zero_point<uint4> | zero_point<uint4>");
  CHECK(described<fp8_block<128, 128>>() == "e4m3 x block<128,128> / f32 | ");
  CHECK(described<mxfp8_e4m3>() == "e4m3 x group<32> / e8m0 | scale_as<e8m0>, mx_floor");
  CHECK(described<mxfp8_e5m2>() == "e5m2 x group<32> / e8m0 | scale_as<e8m0>, mx_floor");
  CHECK(described<mxfp6_e2m3>() == "e2m3 x group<32> / e8m0 | scale_as<e8m0>, mx_floor");
  CHECK(described<mxfp6_e3m2>() == "e3m2 x group<32> / e8m0 | scale_as<e8m0>, mx_floor");
  CHECK(described<mxfp4>() == "e2m1 x group<32> / e8m0 | scale_as<e8m0>, mx_floor");
  CHECK(described<mxint8>() == "mxint8 x group<32> / e8m0 | scale_as<e8m0>, mx_floor");
  CHECK(described<nvfp4>() == "e2m1 x group<16> / e4m3 | scale_as<e4m3>, nvfp4_scale, reciprocal");
  CHECK(described<hif8_block<1, 128>>() == "hif8 x block<1,128> / f32 | ");
}

TEST_CASE("mxint8: one name for the scheme and for its elements' format") {
  CHECK(quantization_scheme<mxint8>);
  CHECK(format<mxint8>);
  CHECK(std::string(std::string_view(mxint8::name)) == "mxint8");
  CHECK(decode<mxint8>(0x40) == 1.f);
  // NUMERICS 1.7: {1, -.5, 1.9921875, 2^-7} -> 127, {64, -32, 127, 0}; -2 + 2^-9 -> -127.
  CHECK(made_of<mxint8>({1.f, -.5f, 1.9921875f, 0x1p-7f}) == block_result{127, 0, {1.f, -.5f, 127.f / 64, 0.f}});
  CHECK(made_of<mxint8>({-2.f + 0x1p-9f}) == block_result{127, 0, {-127.f / 64}});
  CHECK(made_of<mxint8>({0.f}) == block_result{0, 0, {0.f}});
}

TEST_CASE("int8 and int4: NUMERICS 11") {
  using int8s = int8_per_tensor;
  CHECK(made<int8s>({0x3F800000, 0xC0000000, 0x3F000000}) == block_result{0x3C810204, 0, {64, -127, 32}});
  CHECK(made<int8s>({0x00000000, 0x80000000}) == block_result{0x3F800000, 0, {0, 0}});
  CHECK(made<int8s>({0x40400000}) == block_result{0x3CC18306, 0, {127}});
  CHECK(made<int8s>({0x7F7FFFFF, 0x3F800000}) == block_result{0x7C010204, 0, {127, 0}});
  CHECK(made<int8s>({0x00000001, 0x00000200}) == block_result{0x00800000, 0, {0, 0}});
  CHECK(made<int8s>({0xBF800000, 0x3E99999A, 0x3DCCCCCD, 0x3F800000}) ==
        block_result{0x3C010204, 0, {-127, 38, 13, 127}});
  using int4s = int4_group<>;
  CHECK(made<int4s>({0x3F800000, 0xC0000000, 0x3F000000}) == block_result{0x3E924925, 0, {3, -7, 2}});
  CHECK(made<int4s>({0x40400000}) == block_result{0x3EDB6DB7, 0, {7}});
  CHECK(made<int4s>({0x7F7FFFFF, 0x3F800000}) == block_result{0x7E124924, 0, {7, 0}});
  CHECK(made<int4s>({0xBF800000, 0x3E99999A, 0x3DCCCCCD, 0x3F800000}) == block_result{0x3E124925, 0, {-7, 2, 1, 7}});
}

TEST_CASE("uint8 with a zero point: NUMERICS 11") {
  CHECK(made_of<uint8_per_tensor>({0, 2, -3, -2.5f, 1.34f, .5f}) ==
        block_result{0x3CA0A0A1, 153, {153, 255, 0, 26, 221, 179}});
  CHECK(made_of<uint8_per_tensor>({1, 2.1f, 1.3f, 2.5f, 3.34f, 4}) ==
        block_result{0x3C808081, 0, {64, 134, 83, 159, 213, 255}});
  CHECK(made_of<uint8_per_tensor>({-1, -2.1f, -1.3f, -2.5f, -3.34f, -4}) ==
        block_result{0x3C808081, 255, {191, 121, 172, 96, 42, 0}});
  CHECK(made_of<uint8_per_tensor>({0, 0}) == block_result{0x3F800000, 0, {0, 0}});
  CHECK(made_of<uint8_per_tensor>({5}) == block_result{0x3CA0A0A1, 0, {255}});
}

TEST_CASE("nvfp4: torchao's one-level vectors of NUMERICS 2.4") {
  CHECK(made_of<nvfp4>({6, 3, -1, .25f}) == block_result{0x38, 0, {6, 3, -1, 0}});
  CHECK(made_of<nvfp4>({1, -.5f, .3f, .1f}) == block_result{0x23, 0, {6, -3, 1.5f, .5f}});
  CHECK(made_of<nvfp4>({0, 0}) == block_result{0x08, 0, {0, 0}});
  CHECK(made_of<nvfp4>({.05f, -.02f}) == block_result{0x08, 0, {3, -1.5f}});
  CHECK(made_of<nvfp4>({3000, 1}).scale == 0x7E);
}

TEST_CASE("MX schemes: the floor rule's vectors of NUMERICS 3") {
  CHECK(made_of<mxfp8_e4m3>({1, -1, 1.5f, .125f}) == block_result{119, 0, {256, -256, 384, 32}});
  CHECK(made_of<mxfp8_e5m2>({1, -1, 1.5f, .125f}) == block_result{112, 0, {32768, -32768, 49152, 4096}});
  CHECK(made_of<mxfp4>({4, -5, 2.5f, -.25f, 7, .5625f}) == block_result{127, 0, {4, -4, 2, 0, 6, .5f}});
  CHECK(made_of<mxfp4>({0, 0}) == block_result{0, 0, {0, 0}});
}
