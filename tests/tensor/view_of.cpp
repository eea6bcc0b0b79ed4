// Mirrors include/qtensor/tensor/view_of.hpp: memory that somebody else laid out, and sizes that do not fit it.
// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <qtensor/compat/ggml.hpp>
#include <qtensor/reference/quantize.hpp>
#include <qtensor/scheme/schemes.hpp>
#include <qtensor/tensor/view_of.hpp>
#include <string>
#include <vector>

#include "core/sentence.hpp"

using namespace qtensor;

TEST_CASE("view_of: codes and scales in place, nothing copied") {
  const std::vector<std::uint8_t> codes(3 * 20, 0x21), scales = {1, 2, 3, 4, 5, 6};
  const auto v = view_of<mxfp4>(codes, scales, matrix_extents(3, 40));
  CHECK(v.memory().codes == codes.data());
  CHECK(v.memory().scales == scales.data());
  CHECK(v.code(2, 39) == 2);
  CHECK(v.code(2, 38) == 1);
  CHECK(v.scale_code({1, 31}) == 3);
  CHECK(v.scale_code({1, 32}) == 4);
  const std::array<std::int8_t, 4> bytes = {1, -2, 3, -4};
  const float scale[] = {0.5f};
  const auto columns = view_of<int8_per_tensor, col_major>(bytes, scale, extents<2, 2>());
  CHECK(int8::decode(columns.code(1, 0)) == -2.f);
  CHECK(int8::decode(columns.code(0, 1)) == 3.f);
  CHECK(columns.scale(1, 1) == 0.5f);
}

TEST_CASE("view_of: 16-bit scales as raw bits, run-time groups, static extents in constant expressions") {
  const std::vector<std::uint8_t> codes(8, 0x70);
  const std::vector<std::uint16_t> scales = {0x3F80, 0x4000, 0x4040, 0x4080};
  using sized = scheme<int4, group<dynamic>, scale_as<bf16>>;
  const auto v = view_of<sized>(codes, scales, matrix_extents(2, 8), group<dynamic>(4));
  CHECK(v.scale(1, 3) == 3.f);
  CHECK(v.scale(1, 4) == 4.f);
  static constexpr std::array<std::uint8_t, 4> fp8 = {0x38, 0x40, 0xB8, 0x7E};
  static constexpr std::array<float, 2> two = {1.f, 2.f};
  constexpr auto fixed = view_of<fp8_block<1, 2>>(fp8, two, extents<2, 2>());
  static_assert(fixed.code(1, 1) == 0x7E && fixed.scale(1, 0) == 2.f);
  CHECK(fixed.code(0, 1) == 0x40);
}

TEST_CASE("view_of: zero points, of the scales' granularity or of their own") {
  const std::vector<std::uint8_t> codes = {10, 20, 30, 40, 50, 60};
  const std::vector<float> scales = {1.f, 2.f};
  const std::vector<std::uint8_t> zeros = {3, 4};
  const auto v = view_of<uint8_per_channel<0>>(codes, scales, zeros, matrix_extents(2, 3));
  CHECK(v.zero_point(0, 2) == 3);
  CHECK(v.zero_point(1, 0) == 4);
  using own = scheme<uint8, per_channel<0>, zero_point<uint8, per_channel<1>>>;
  const auto w = view_of<own>(codes, scales, std::vector<std::uint8_t>{7, 8, 9}, matrix_extents(2, 3));
  CHECK(w.scale(1, 1) == 2.f);
  CHECK(sentence([&] { view_of<own>(codes, scales, zeros, matrix_extents(2, 3)); }) ==
        "qtensor: a view is given 2 zero points but its extents and granularity need 3.");
}

TEST_CASE("view_of: two levels, with the scale of the tensor beside those of its blocks") {
  using two_levels = with<nvfp4, tensor_scale<f32>>;
  const std::vector<std::uint8_t> codes(16, 0x22), scales = {0x38, 0x40};  // 1 and 2
  float whole = 3.f;
  const auto w = view_of<two_levels>(codes, scales, whole, matrix_extents(1, 32));
  CHECK(w.tensor_scale() == 3.f);
  CHECK(reference::value(w, {0, 0}) == 3.f);
  CHECK(reference::value(w, {0, 31}) == 6.f);
  whole = 0.5f;  // it is seen, not copied
  CHECK(reference::value(w, {0, 31}) == 1.f);
  CHECK(sentence([&] { view_of<two_levels>(codes, scales, whole, matrix_extents(1, 48)); }) ==
        "qtensor: a view is given 16 code units but its extents and granularity need 24.");
}

TEST_CASE("view_of: wrong sizes are refused, whatever is wrong") {
  const std::vector<std::uint8_t> codes(60), scales(6), more(61);
  const matrix_extents shape(3, 40);
  CHECK(sentence([&] { view_of<mxfp4>(more, scales, shape); }) ==
        "qtensor: a view is given 61 code units but its extents and granularity need 60.");
  CHECK(sentence([&] { view_of<mxfp4>(codes, codes, shape); }) ==
        "qtensor: a view is given 60 scales but its extents and granularity need 6.");
  CHECK(sentence([&] { view_of<mxfp4>(codes, scales, matrix_extents(3, 41)); }) ==
        "qtensor: a view is given 60 code units but its extents and granularity need 63.");
  const std::vector<std::uint8_t> bytes(33);
  CHECK(sentence([&] { view_of<compat::ggml::q8_0>(bytes, extents(32)); }) ==
        "qtensor: a view is given 33 bytes but its extents and granularity need 34.");
}

TEST_CASE("view_of: interleaved blocks from any range of bytes, at any alignment") {
  std::vector<std::byte> memory(1 + 2 * 34);
  memory[1 + 34] = std::byte{0x00};
  memory[1 + 35] = std::byte{0x40};  // f16 2.0 in the second block
  memory[1 + 36 + 5] = std::byte{0xFD};
  const std::span<const std::byte> odd(memory.data() + 1, 68);
  const auto v = view_of<compat::ggml::q8_0>(odd, extents<dynamic, 32>(2));
  static_assert(std::is_same_v<decltype(v)::extents_type, extents<dynamic, 32>>);
  CHECK(v.scale(1, 31) == 2.f);
  CHECK(v.scale(0, 0) == 0.f);
  CHECK(int8::decode(v.code(1, 5)) == -3.f);
  const std::string text(34, 'a');
  CHECK(view_of<compat::ggml::q8_0>(text, extents(32)).code(0) == 'a');
}

TEST_CASE("view_of: empty tensors need empty memory") {
  const std::vector<std::uint8_t> none;
  CHECK(view_of<mxfp4>(none, none, matrix_extents(0, 40)).size() == 0);
  CHECK(view_of<compat::ggml::q8_0>(none, matrix_extents(0, 40)).size() == 0);
}
