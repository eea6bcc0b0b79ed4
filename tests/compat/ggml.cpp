// Mirrors include/qtensor/compat/ggml.hpp: the vectors of NUMERICS 8.3, byte for byte.
// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <qtensor/compat/ggml_rows.hpp>
#include <qtensor/ops/quantize.hpp>
#include <qtensor/scheme/schemes.hpp>
#include <qtensor/tensor/view_of.hpp>
#include <string>
#include <vector>

#include "compat/ggml_check.hpp"
#include "core/sentence.hpp"
#include "reference/quantize_check.hpp"
#include "simd/check.hpp"

using namespace qtensor;
namespace ggml = qtensor::compat::ggml;

namespace {

using plain::bytes;
using plain::example;

/// A scale as its two bytes, then codes.
bytes block_of(std::initializer_list<int> head, const std::vector<int>& rest) {
  bytes out;
  for (int b : head) out.push_back(static_cast<std::uint8_t>(b));
  for (int b : rest) out.push_back(static_cast<std::uint8_t>(b));
  return out;
}

/// The numbers of a block as a view of S reads them.
template <class S>
std::vector<float> values(const bytes& memory) {
  const auto v = view_of<S>(memory, extents(32));
  std::vector<float> out;
  for (index_t i = 0; i < 32; ++i) out.push_back(reference::value(v, {i}));
  return out;
}

const std::vector<int> q8_codes = {-127, -119, -111, -103, -95, -87, -79, -71, -64, -56, -48, -40, -32, -24, -16, -8,
                                   0,    8,    16,   24,   32,  40,  48,  56,  64,  71,  79,  87,  95,  103, 111, 119};

}  // namespace

TEST_CASE("q8_0: the example's bytes, d = 2808") {
  tensor<ggml::q8_0, extents<dynamic>> t(extents(32));
  reference::quantize([](const auto& i) { return example(i[0]); }, t.span());
  CHECK(bytes(t.blocks().begin(), t.blocks().end()) == block_of({0x08, 0x28}, q8_codes));
}

TEST_CASE("q4_0 and mxfp4: the example's bytes") {
  std::vector<float> x;
  for (index_t i = 0; i < 32; ++i) x.push_back(example(i));
  bytes q4(18), mx(17);
  REQUIRE(ggml::quantize_row(2, x.data(), q4.data(), 32).ok());
  REQUIRE(ggml::quantize_row(39, x.data(), mx.data(), 32).ok());
  CHECK(q4 == block_of({0x00, 0x38}, {0x80, 0x91, 0x91, 0xA2, 0xA2, 0xB3, 0xB3, 0xC4, 0xC4, 0xD5, 0xD5, 0xE6, 0xE6,
                                      0xF7, 0xF7, 0xF8}));
  CHECK(mx == block_of({0x7F}, {0x0E, 0x0E, 0x1D, 0x1D, 0x2D, 0x2D, 0x3C, 0x3C, 0x4C, 0x4B, 0x4B, 0x5A, 0x5A, 0x59,
                                0x59, 0x60}));
}

TEST_CASE("q4_0 and q5_0: a zero block has d = -0") {
  const std::vector<float> x(32, 0.f);
  bytes q4(18), q5(22);
  REQUIRE(ggml::quantize_row(2, x.data(), q4.data(), 32).ok());
  REQUIRE(ggml::quantize_row(6, x.data(), q5.data(), 32).ok());
  CHECK(q4 == block_of({0x00, 0x80}, std::vector<int>(16, 0x88)));
  CHECK((q5[0] == 0x00 && q5[1] == 0x80));
}

TEST_CASE("q8_0: codes times d") {
  const float d = f16::decode(0x2808);
  const auto x = values<ggml::q8_0>(block_of({0x08, 0x28}, q8_codes));
  for (std::size_t i = 0; i < 32; ++i) CHECK(x[i] == static_cast<float>(q8_codes[i]) * d);
}

TEST_CASE("q8_0: a zero block has d = 0 and codes 0") {
  tensor<ggml::q8_0, extents<dynamic>> t(extents(32));
  reference::quantize([](const auto& i) { return i[0] % 2 == 0 ? 0.f : -0.f; }, t.span());
  CHECK(bytes(t.blocks().begin(), t.blocks().end()) == bytes(34, 0));
}

TEST_CASE("q8_0: codes see d before it became f16, and round half away") {
  // amax 127 * 1.5 gives d = 1.5 exactly; 0.75 and -2.25 are ties of codes.
  tensor<ggml::q8_0, extents<dynamic>> t(extents(32));
  const float numbers[] = {190.5f, 0.75f, -2.25f};
  reference::quantize([&](const auto& i) { return i[0] < 3 ? numbers[i[0]] : 0.f; }, t.span());
  CHECK(t.scale(0) == 1.5f);
  CHECK(int8::decode(t.code(1)) == 1.f);
  CHECK(int8::decode(t.code(2)) == -2.f);
}

TEST_CASE("q4_0: (code - 8) * d, low nibbles first half") {
  const auto x = values<ggml::q4_0>(block_of(
      {0x00, 0x38}, {0x80, 0x91, 0x91, 0xA2, 0xA2, 0xB3, 0xB3, 0xC4, 0xC4, 0xD5, 0xD5, 0xE6, 0xE6, 0xF7, 0xF7, 0xF8}));
  // d = 0.5: the example in steps of half, rounded by ggml.
  const std::vector<int> q = {0, 1, 1, 2,  2,  3,  3,  4,  4,  5,  5,  6,  6,  7,  7,  8,
                              8, 9, 9, 10, 10, 11, 11, 12, 12, 13, 13, 14, 14, 15, 15, 15};
  for (std::size_t i = 0; i < 32; ++i) {
    INFO("element ", i);
    CHECK(x[i] == static_cast<float>(q[i] - 8) * 0.5f);
  }
}

TEST_CASE("q4_1: code * d + m") {
  std::vector<int> codes;
  for (int j = 0; j < 16; ++j) codes.push_back(j | (15 - j) << 4);
  const auto x = values<ggml::q4_1>(block_of({0x00, 0x38, 0x00, 0xC4}, codes));  // d = .5, m = -4
  for (std::size_t j = 0; j < 16; ++j) {
    CHECK(x[j] == static_cast<float>(j) * 0.5f - 4.f);
    CHECK(x[j + 16] == static_cast<float>(15 - j) * 0.5f - 4.f);
  }
}

TEST_CASE("mxfp4: the example's bytes, e = 7F") {
  const auto x = values<ggml::mxfp4>(block_of(
      {0x7F}, {0x0E, 0x0E, 0x1D, 0x1D, 0x2D, 0x2D, 0x3C, 0x3C, 0x4C, 0x4B, 0x4B, 0x5A, 0x5A, 0x59, 0x59, 0x60}));
  const std::vector<float> first = {-4, -4, -3, -3, -3, -3, -2, -2, -2, -1.5f, -1.5f, -1, -1, -.5f, -.5f, 0};
  const std::vector<float> second = {0, 0, .5f, .5f, 1, 1, 1.5f, 1.5f, 2, 2, 2, 3, 3, 3, 3, 4};
  for (std::size_t j = 0; j < 16; ++j) {
    INFO("element ", j);
    CHECK(x[j] == first[j]);
    CHECK(x[j + 16] == second[j]);
  }
}

TEST_CASE("ue4m3: the vectors of NUMERICS 8.3, and its odd codes") {
  using ggml::ue4m3;
  CHECK(ue4m3::encode(1.f) == 0x38);
  CHECK(ue4m3::encode(1.0625f) == 0x39);  // e4m3, ties to even, gives 38
  CHECK(ue4m3::encode(.015f) == 0x07);
  CHECK(ue4m3::encode(240.f) == 0x77);
  for (float x : {248.f, 255.f, 256.f, 448.f, 1e30f, infinity}) CHECK(ue4m3::encode(x) == 0x7E);
  CHECK(ue4m3::encode(.001f) == 0x01);
  CHECK(ue4m3::encode(.0009f) == 0x00);
  for (float x : {0.f, -1.f, quiet_nan}) CHECK(ue4m3::encode(x) == 0x00);
  CHECK(ue4m3::decode(0x81) == 0x1p-9f);
  CHECK(ue4m3::decode(0xFE) == 448.f);
  CHECK(ue4m3::decode(0x7F) == 0.f);
  CHECK(ue4m3::decode(0x80) == 0.f);
  CHECK(ue4m3::decode(0xFF) == 480.f);
}

TEST_CASE("vector_code: the codes of scales that the rules give, of every binade") {
  check::on_every_arch([](auto arch) {
    using A = decltype(arch);
    const auto compare = [](auto rule, std::uint32_t first, std::uint32_t step) {
      using rule_type = decltype(rule);
      alignas(64) std::array<std::uint32_t, static_cast<std::size_t>(simd::lanes<A>)> amax, codes;
      for (std::uint32_t at = first; at < infinity_bits;) {
        for (auto& a : amax) a = std::min(at, infinity_bits - 1), at += step;
        simd::store(codes.data(), simd::vector_code<rule_type, A>::of(simd::load<A>(amax.data())));
        for (std::size_t i = 0; i < codes.size(); ++i)
          if (codes[i] != rule_type::code(float_of(amax[i]))) FAIL(amax[i], ": ", codes[i]);
      }
    };
    const auto both = [&](std::uint32_t first, std::uint32_t step) {
      compare(ggml::mxfp4_rule{}, first, step);
      compare(ggml::nvfp4_rule{}, first, step);
    };
    both(0x00800000u, 4093u);
    both(0x00800000u, 1u << 19);  // ties of quotients, powers of two
    both(0x00ffffffu, 1u << 23);  // and what lies below
    both(0x00ffff00u, 1u << 23);  // near enough to be their logarithm
    compare(ggml::mxfp4_rule{}, 0u, infinity_bits);
    compare(ggml::nvfp4_rule{}, 0u, infinity_bits);
    for (std::uint32_t code = 1; code < 0x7f; ++code)  // six times a limit between two scales, and beside it
      for (const float middle : {0.f, 0.5f}) {
        const float s = ggml::ue4m3::decode(code), next = ggml::ue4m3::decode(code < 0x7e ? code + 1 : code);
        const std::uint32_t limit = bits_of(6.f * (s + middle * (next - s)));
        for (const std::uint32_t at : {limit - 1, limit, limit + 1}) compare(ggml::nvfp4_rule{}, at, infinity_bits);
      }
  });
}

TEST_CASE("formats: what no other FP4 does") {
  CHECK(bits_of(ggml::fp4::decode(8)) == 0);
  CHECK(ggml::doubled_fp4::decode(15) == -12.f);
  CHECK(ggml::half_e8m0::decode(0) == 0x1p-128f);
  CHECK(ggml::half_e8m0::decode(255) == 0x1p127f);
  CHECK(ggml::q5::decode(0) == -16.f);
  CHECK(ggml::q5::decode(31) == 15.f);
}

TEST_CASE("roundings: ties, sums that round, and what is no int") {
  CHECK(encode<int8, ggml::c_round>(-2.5f) == 0xFD);
  CHECK(encode<int8, ggml::c_round>(infinity) == 0);
  CHECK(ggml::q4::decode(encode<ggml::q4, ggml::c_truncate>(2.5f)) == 3.f);
  CHECK(ggml::q4::decode(encode<ggml::q4, ggml::c_truncate>(-2.5f)) == -2.f);
  CHECK(ggml::q4::decode(encode<ggml::q4, ggml::c_truncate>(float_of(0x3EFFFFFF))) == 1.f);  // .49999997 + 8.5 is 9
  CHECK(encode<ggml::q4, ggml::c_truncate>(-infinity) == 0);
  CHECK(encode<ggml::q4, ggml::c_truncate>(quiet_nan) == 0);
}

TEST_CASE("blocks: byte for byte what a C program writes, on awkward numbers") {
  for (int type : {8, 9, 2, 3, 6, 7, 39, 40}) {
    const index_t n = ggml::block_size_of(type).elements;
    auto x = oracle::awkward_data(64 * 600, 7);
    // Maxima next to powers of two, where log2f rounds to an integer.
    for (std::size_t b = 0; b < 64; ++b)
      for (std::size_t i = 0; i < 64; ++i) {
        const int exponent = static_cast<int>(b) * 4 - 126;
        x.push_back(i % 32 == 0 ? float_of(bits_of(exp2i(exponent)) - 1 - static_cast<std::uint32_t>(i + b))
                                : x[i] * exp2i(exponent) / 512.f);
      }
    for (float v : {3.4028235e38f, 0x1p-149f, 0x1p-126f, 0.f, -0.f, 9e6f, -9e6f, 1.f})
      for (int i = 0; i < 64; ++i) x.push_back(i % 3 == 0 ? v : v / 3.f);
    if (type == 8 || type == 9)
      for (float& v : x) v = std::isnan(v) ? 1.f : v;  // ggml's maximum forgets what precedes a NaN; ours does not
    bytes ours(static_cast<std::size_t>(ggml::block_size_of(type).bytes));
    for (std::size_t first = 0; first < x.size(); first += static_cast<std::size_t>(n)) {
      REQUIRE(ggml::quantize_row(type, x.data() + first, ours.data(), n).ok());
      INFO("type ", type, ", block that starts at ", first);
      CHECK(ours == plain::block(type, x.data() + first));
    }
  }
}

TEST_CASE("q8_1: s is the sum of codes times d, anew after static quantization") {
  tensor<ggml::q8_1, extents<dynamic>> t(extents(64));
  reference::quantize([](const auto& i) { return i[0] < 32 ? example(i[0]) : 1.f; }, t.span());
  CHECK(f16::decode(t.view().storage_code_sum({0})) == -4.f);
  CHECK(f16::decode(t.view().storage_code_sum({63})) == 32.f);
  t.span().set_storage_scale_code({40}, 0x4000);  // 2
  reference::quantize_static([](const auto&) { return 6.f; }, t.span());
  CHECK(f16::decode(t.view().storage_code_sum({40})) == 192.f);
  CHECK(t.code(40) == 3);
  const tensor<ggml::q8_1, extents<64>> copy(t);  // element by element
  CHECK(bytes(copy.blocks().begin(), copy.blocks().end()) == bytes(t.blocks().begin(), t.blocks().end()));
}

TEST_CASE("nvfp4: four scales, then four groups of halves; slices start at blocks of 64") {
  bytes memory(2 * 36);
  memory[36 + 2] = 0x40;              // scale of elements 32 to 47 of the second block: 2
  memory[36 + 4 + 2 * 8 + 5] = 0xF3;  // its elements 5 (1.5) and 13 (-6)
  const auto v = view_of<ggml::nvfp4>(memory, matrix_extents(1, 128));
  CHECK(v.scale(0, 64 + 32) == 2.f);
  CHECK(reference::value(v, {0, 64 + 32 + 5}) == 3.f);
  CHECK(reference::value(v, {0, 64 + 32 + 13}) == -12.f);
  CHECK(reference::value(v, {0, 5}) == 0.f);
  CHECK(reference::value(v.middle_cols(64, 40), {0, 37}) == 3.f);
  CHECK(sentence([&] { v.middle_cols(16, 16); }) ==
        "qtensor: a slice that starts at element 16 cuts an interleaved block of 64 elements; start at a multiple of "
        "it.");
  CHECK(sentence([&] { view_of<ggml::nvfp4>(memory, matrix_extents(2, 65)); }) ==
        "qtensor: a view is given 72 bytes but its extents and granularity need 144.");
}

TEST_CASE("tensors: rows of several blocks and a short last one, by the generic reference") {
  const auto x = [](const auto& i) { return static_cast<float>((i[0] * 37 + i[1] * 11) % 29 - 14) / 3.f; };
  tensor<ggml::q5_0> t(matrix_extents(2, 40));
  reference::quantize(x, t.span());
  CHECK(t.blocks().size() == 2 * 2 * 22);
  for (index_t row = 0; row < 2; ++row)
    for (index_t col = 0; col < 40; ++col)
      CHECK(std::fabs(reference::value(t.view(), {row, col}) - x(std::array<index_t, 2>{row, col})) < 14.f / 3 / 15);
}

TEST_CASE("tensors: the rules of blocks in planar tensors, by the operations on tiles") {
  const auto x = oracle::awkward_data(4 * 64, 9);
  const auto all = source(x.data(), extents(4, 64));
  const auto flat = quantize<with<ggml::q4_0, planar<>>>(all);
  const auto blocks = quantize<ggml::q4_0>(all);
  for (index_t row = 0; row < 4; ++row)
    for (index_t col = 0; col < 64; ++col) {
      CHECK(flat.code(row, col) == blocks.code(row, col));
      CHECK(flat.view().scale_code({row, col}) == blocks.view().scale_code({row, col}));
    }
}

TEST_CASE("names: what the bytes mean") {
  CHECK(std::string(std::string_view(name<ggml::q8_0>)) == "int8 x group<32> / f16");
  CHECK(std::string(std::string_view(name<ggml::q4_0>)) == "q4 x group<32> / f16");
  CHECK(std::string(std::string_view(name<ggml::q4_1>)) == "uint4 x group<32> / f16 + offset<f16>");
  CHECK(std::string(std::string_view(name<ggml::mxfp4>)) == "doubled_fp4 x group<32> / half_e8m0");
  CHECK(std::string(std::string_view(name<ggml::nvfp4>)) == "fp4 x group<16> / ue4m3");
}
