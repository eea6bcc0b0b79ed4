// Mirrors include/qtensor/compat/ggml_rows.hpp: planar tensors to and from blocks, rows by run-time type.
// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <cmath>
#include <qtensor/compat/ggml_rows.hpp>
#include <qtensor/ops/quantize.hpp>
#include <qtensor/scheme/schemes.hpp>
#include <qtensor/tensor/view_of.hpp>
#include <string>
#include <vector>

#include "compat/ggml_check.hpp"
#include "core/sentence.hpp"
#include "reference/quantize_check.hpp"

using namespace qtensor;
namespace ggml = qtensor::compat::ggml;

namespace {

using plain::bytes;
using plain::example;

}  // namespace

/// Numbers of both tensors alike, and the bytes of the first made again from the second.
template <class Blocks, class Planar>
void check_there_and_back(index_t rows, index_t length) {
  const auto x = oracle::awkward_data(static_cast<std::size_t>(2 * rows * length), 5);
  tensor<Blocks, decltype(extents(1, 1, 1))> t(extents(2, rows, length));
  const auto offset = [&](const auto& i) { return static_cast<std::size_t>((i[0] * rows + i[1]) * length + i[2]); };
  reference::quantize([&](const auto& i) { return x[offset(i)] / 8e37f; }, t.span());
  const auto flat = ggml::from_blocks<Planar>(t);
  static_assert(std::is_same_v<typename decltype(flat)::scheme_type, Planar>);
  index_t different = 0;
  for (index_t i = 0; i < 2; ++i)
    for (index_t row = 0; row < rows; ++row)
      for (index_t col = 0; col < length; ++col) {
        const float a = reference::value(t.view(), {i, row, col}), b = reference::value(flat.view(), {i, row, col});
        different += a != b && !(std::isnan(a) && std::isnan(b));
      }
  CHECK(different == 0);
  const auto back = ggml::to_blocks<Blocks>(flat);
  if constexpr (Blocks::has_code_sum)
    for (index_t col = 0; col < length; col += 32) {
      std::int64_t sum = 0;
      for (index_t i = col; i < std::min(col + 32, length); ++i)
        sum += static_cast<std::int8_t>(t.view().storage_code({1, 0, i}));
      const float scaled = static_cast<float>(sum) * decode<f16>(t.view().storage_scale_code({1, 0, col}));
      CHECK(back.view().storage_code_sum({1, 0, col}) == encode<f16, nearest_even, to_special>(scaled));
    }
  else
    CHECK(bytes(back.blocks().begin(), back.blocks().end()) == bytes(t.blocks().begin(), t.blocks().end()));
}

TEST_CASE("to_blocks and from_blocks: the same numbers, the same bytes back") {
  const auto there_and_back = [](auto planar_tag, auto block_tag) {
    using planar = decltype(planar_tag);
    using blocks = decltype(block_tag);
    check_there_and_back<blocks, planar>(3, 128);
    check_there_and_back<blocks, planar>(1, 64);
    check_there_and_back<blocks, planar>(2, 1024 + 64);  // more than is moved at once
    check_there_and_back<blocks, planar>(3, 40);         // no whole groups, no whole blocks
    check_there_and_back<blocks, planar>(2, 96);         // whole groups, no whole blocks of nvfp4
  };
  there_and_back(scheme<int8, group<32>, scale_as<f16>>{}, ggml::q8_0{});
  there_and_back(scheme<int8, group<32>, scale_as<f16>>{}, ggml::q8_1{});
  there_and_back(scheme<int8, group<32>>{}, ggml::q8_0{});  // f32 scales hold every f16
  there_and_back(scheme<int4, group<32>, scale_as<f16>>{}, ggml::q4_0{});
  there_and_back(with<ggml::q5_0, planar<>>{}, ggml::q5_0{});
  there_and_back(with<ggml::q4_1, planar<>>{}, ggml::q4_1{});
  there_and_back(with<ggml::q5_1, planar<>>{}, ggml::q5_1{});
  there_and_back(nvfp4{}, ggml::nvfp4{});
}

TEST_CASE("to_blocks and from_blocks: MX tensors, scales that have no code, views of bytes") {
  tensor<mxfp4> t(matrix_extents(1, 64));
  reference::quantize([](const auto& i) { return i[1] < 32 ? example(i[1]) : -0.f; }, t.span());
  const auto blocks = ggml::to_blocks<ggml::mxfp4>(t);
  CHECK(blocks.blocks()[0] == t.scales()[0]);
  CHECK(blocks.blocks()[17] == 0x00);
  CHECK(blocks.blocks()[18] == 0x88);  // the code of -0, which ggml reads as 0
  CHECK(bits_of(reference::value(blocks.view(), {0, 40})) == 0);
  const auto back = ggml::from_blocks<mxfp4>(view_of<ggml::mxfp4>(blocks.blocks(), matrix_extents(1, 64)));
  CHECK(std::equal(back.codes().begin(), back.codes().end(), t.codes().begin()));

  tensor<mxfp4> wide(matrix_extents(2, 1024 + 64));  // more than is moved at once
  reference::quantize([](const auto& i) { return example(i[0] + 3 * i[1]) * std::exp2(float(i[1] % 7)); }, wide.span());
  const auto wide_blocks = ggml::to_blocks<ggml::mxfp4>(wide);
  const auto same = ggml::from_blocks<mxfp4>(wide_blocks);
  CHECK(std::equal(same.codes().begin(), same.codes().end(), wide.codes().begin()));
  CHECK(std::equal(same.scales().begin(), same.scales().end(), wide.scales().begin()));
  CHECK(reference::value(wide_blocks.view(), {1, 1087}) == reference::value(wide.view(), {1, 1087}));

  t.scales()[1] = 0xFF;
  CHECK(sentence([&] { ggml::to_blocks<ggml::mxfp4>(t); }) == "qtensor: the scale nan has no exact code in half_e8m0.");
  bytes huge(17);
  huge[0] = 0xFF;  // 2^128
  CHECK(sentence([&] { ggml::from_blocks<mxfp4>(view_of<ggml::mxfp4>(huge, extents(32))); }) ==
        "qtensor: the scale inf has no exact code in e8m0.");
  tensor<scheme<int8, group<32>>> fine(matrix_extents(1, 32));
  fine.scales()[0] = 0.1f;
  CHECK(sentence([&] { ggml::to_blocks<ggml::q8_0>(fine); }) ==
        "qtensor: the scale 0.100000001 has no exact code in f16.");
}

TEST_CASE("rows: sizes of every type") {
  const int expected[][3] = {{0, 1, 4},   {1, 1, 2},   {30, 1, 2},  {2, 32, 18},  {3, 32, 20}, {6, 32, 22},
                             {7, 32, 24}, {8, 32, 34}, {9, 32, 36}, {39, 32, 17}, {40, 64, 36}};
  for (const auto& [type, elements, size] : expected) {
    CHECK(ggml::block_size_of(type).elements == elements);
    CHECK(ggml::block_size_of(type).bytes == size);
    CHECK(ggml::row_bytes(type, 3 * elements) == 3 * size);
  }
  CHECK(ggml::row_bytes(8, 33) == 0);
  CHECK(ggml::row_bytes(41, 128) == 0);
  CHECK(ggml::row_bytes(0, std::numeric_limits<index_t>::max() / 2) == 0);  // as many floats do not fit 63 bits
}

TEST_CASE("rows: f32, f16 and bf16, at any alignment") {
  const float x[] = {1.f, -2.5f, 65520.f, 1e-8f};
  std::uint8_t memory[17] = {};
  float back[4] = {};
  for (int type : {0, 1, 30}) {
    REQUIRE(ggml::quantize_row(type, x, memory + 1, 4).ok());
    REQUIRE(ggml::dequantize_row(type, memory + 1, back, 4).ok());
    CHECK(back[1] == -2.5f);
    CHECK(back[2] == (type == 1 ? infinity : type == 0 ? 65520.f : 65536.f));
  }
}

TEST_CASE("rows: every wrong argument is refused with a reason, and nothing is written") {
  std::vector<float> x(64, 1.f);
  bytes y(72, 0xAA);
  const auto reason = [&](int type, const float* from, void* to, index_t n) {
    const ggml::status s = ggml::quantize_row(type, from, to, n);
    CHECK_FALSE(s.ok());
    CHECK(y == bytes(72, 0xAA));
    CHECK(ggml::dequantize_row(type, to, const_cast<float*>(from), n).reason == s.reason);
    CHECK(x == std::vector<float>(64, 1.f));
    return s.reason;
  };
  const std::string unknown =
      " is not one of ggml's types that are understood here: 0, 1, 2, 3, 6, 7, 8, 9, 30, 39, 40.";
  CHECK(reason(41, x.data(), y.data(), 32) == "qtensor: type 41" + unknown);
  CHECK(reason(-1, x.data(), y.data(), 32) == "qtensor: type -1" + unknown);
  CHECK(reason(8, x.data(), y.data(), 33) ==
        "qtensor: type 8 has blocks of 32 elements; a row of 33 is not a number of them.");
  CHECK(reason(40, x.data(), y.data(), 32) ==
        "qtensor: type 40 has blocks of 64 elements; a row of 32 is not a number of them.");
  CHECK(reason(8, x.data(), y.data(), -32) ==
        "qtensor: type 8 has blocks of 32 elements; a row of -32 is not a number of them.");
  CHECK(reason(0, x.data(), y.data(), std::numeric_limits<index_t>::max()) ==
        "qtensor: the bytes of a row of 9223372036854775807 elements do not fit 63 bits.");
  CHECK(reason(8, nullptr, y.data(), 32) == "qtensor: a row of floats or of blocks is a null pointer.");
  CHECK(reason(8, x.data(), nullptr, 32) == "qtensor: a row of floats or of blocks is a null pointer.");
  CHECK(reason(8, x.data(), x.data() + 31, 32) == "qtensor: the row of floats and the row of blocks overlap.");
  CHECK(ggml::quantize_row(8, nullptr, nullptr, 0).ok());
}
