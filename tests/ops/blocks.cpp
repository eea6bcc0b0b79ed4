// Mirrors include/qtensor/ops/blocks.hpp.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/compat/ggml.hpp>

#include "round_trip.hpp"

using namespace qtensor;
namespace ggml = qtensor::compat::ggml;

TEST_CASE("blocks: rows of whole blocks, rows with a short last block, one long row") {
  for (const index_t cols : {32, 64, 77, 4096, 5000}) {
    check::check_matrix<ggml::q8_0>(3, cols);
    check::check_matrix<ggml::q4_1>(3, cols);
  }
  check::check_matrix<ggml::q8_0>(300, 32);
  check::check_matrix<ggml::nvfp4>(5, 200);
}

TEST_CASE_TEMPLATE("blocks: codes under scales that blocks have already", S, ggml::q8_0, ggml::q8_1, ggml::q4_1,
                   ggml::nvfp4) {
  for (const matrix_extents shape : {matrix_extents(3, 5000), matrix_extents(40, 64), matrix_extents(7, 77)}) {
    const auto first = check::numbers(shape.size(), 5), second = check::numbers(shape.size(), 6);
    std::vector<std::uint16_t> narrow;
    std::vector<float> wide;
    for (const float v : second) {
      narrow.push_back(static_cast<std::uint16_t>(encode<bf16>(v)));
      wide.push_back(decode<bf16>(narrow.back()));
    }
    auto want = quantize<S>(source(first.data(), shape)), got = want, of_narrow = want;
    reference::quantize_static([&](const auto& i) { return wide[static_cast<std::size_t>(i[0] * shape[1] + i[1])]; },
                               want.span());
    quantize_static_into(got, source(wide.data(), shape));
    quantize_static_into(of_narrow, source<bf16>(narrow.data(), shape));
    CHECK(check::same_bytes(got, want));
    CHECK(check::same_bytes(of_narrow, want));
  }
}

TEST_CASE("blocks: arrays of offsets, or of scales that come of peaks, are blocks taken apart") {
  using offsets = scheme<uint4, group<32>, scale_as<f16>, offset<f16>, offset_min_max>;
  using peaks = scheme<int8, group<32>, scale_as<f16>, peak_scale>;
  static_assert(ops::quantizes_in_blocks<offsets, row_major, 2>() && ops::quantizes_in_blocks<peaks, row_major, 2>());
  static_assert(!ops::quantizes_in_blocks<offsets, col_major, 2>() && !ops::quantizes_in_blocks<mxfp4, row_major, 2>());
  for (const index_t cols : {32, 64, 77, 4096, 5001}) {
    check::check_matrix<offsets>(3, cols);
    check::check_matrix<peaks>(3, cols);
  }
  check::check_matrix<offsets>(300, 33);
  check::check_matrix<offsets, col_major>(70, 33);  // by the reference
  check::check_matrix<scheme<uint8, group<16, 0>, offset<f32>, offset_min_max>, col_major>(50, 7);
  check::check_matrix<scheme<uint2, group<64>, offset<bf16>, offset_min_max>>(5, 130);
  check::check_matrix<scheme<uint4, group<128>, scale_as<bf16>, offset<bf16>, offset_min_max, planar<high_first>>>(4,
                                                                                                                   301);
  check::check_matrix<scheme<e4m3, group<32>, peak_scale>>(3, 100);
  using S = offsets;
  const auto x = check::numbers(4 * 70, 5);
  std::vector<float> turned(x.size());
  for (index_t r = 0; r < 4; ++r)
    for (index_t c = 0; c < 70; ++c)
      turned[static_cast<std::size_t>(c * 4 + r)] = x[static_cast<std::size_t>(r * 70 + c)];
  CHECK(check::same_bytes(quantize<S>(source(turned.data(), matrix_extents(4, 70), {1, 4})),
                          check::expected<S, row_major>(x, matrix_extents(4, 70))));
}

TEST_CASE("blocks: the other storage order, where groups run along the first axis") {
  check::check_matrix<with<ggml::q4_0, group<32, 0>>, col_major>(64, 9);
  check::check_matrix<with<ggml::q4_0, group<32, 0>>, col_major>(70, 9);
  check::check_matrix<with<ggml::q5_1, group<32, 0>>, col_major>(70, 9);
}

TEST_CASE("blocks: narrow numbers in, narrow numbers out") {
  const auto shape = extents(3, 160);
  std::vector<std::uint16_t> x;
  for (const float v : check::numbers(shape.size(), 5)) x.push_back(static_cast<std::uint16_t>(encode<bf16>(v)));
  const auto got = quantize<ggml::q8_0>(source<bf16>(x.data(), shape));
  std::vector<float> wide;
  for (const std::uint16_t v : x) wide.push_back(decode<bf16>(v));
  CHECK(check::same_bytes(got, quantize<ggml::q8_0>(source(wide.data(), shape))));
  std::vector<std::uint16_t> back(x.size());
  std::vector<float> values(x.size());
  dequantize_into<f16>(got.view(), back.data(), {160, 1});
  dequantize_into(got.view(), values.data(), {160, 1});
  bool same = true;
  for (std::size_t i = 0; i < back.size(); ++i) same = same && back[i] == encode<f16, to_special>(values[i]);
  CHECK(same);
}

TEST_CASE("blocks: parts of a matrix, into and out of its middle") {
  const auto x = check::numbers(4 * 96, 7);
  tensor<ggml::q5_0> t(matrix_extents(6, 160));
  const auto before = t;
  const auto part = t.span().block(1, 32, 4, 96);
  quantize_into(matrix_ref<const float>{x.data(), 4, 96, 96, 1}, part);
  const auto alone = quantize<ggml::q5_0>(source(x.data(), extents(4, 96)));
  std::vector<float> values(x.size()), odd(static_cast<std::size_t>(4 * 31));
  dequantize_into(tensor_view<ggml::q5_0>(part), values.data(), {96, 1});
  dequantize_rows(alone.view(), 0, 4, 33, 31, odd.data(), 31);
  bool same = true;
  for (index_t row = 0; row < 6; ++row)
    for (index_t col = 0; col < 160; ++col) {
      const bool inside = row >= 1 && row < 5 && col >= 32 && col < 128;
      if (!inside) same = same && t.view().code(row, col) == before.view().code(row, col);
      if (inside) same = same && t.view().code(row, col) == alone.view().code(row - 1, col - 32);
      if (inside)
        same = same && bits_of(values[static_cast<std::size_t>((row - 1) * 96 + col - 32)]) ==
                           bits_of(reference::value(t.view(), {row, col}));
    }
  for (index_t row = 0; row < 4; ++row)
    for (index_t i = 0; i < 31; ++i)
      same = same && bits_of(odd[static_cast<std::size_t>(row * 31 + i)]) ==
                         bits_of(reference::value(alone.view(), {row, 33 + i}));
  CHECK(same);
}

TEST_CASE("blocks: large tensors go past the caches with the same bytes") {
  const index_t n = ops::streaming_floats + 64;
  std::vector<float> x(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < x.size(); ++i)
    x[i] = static_cast<float>(static_cast<int>(i * 2654435761u >> 8) % 4096 - 2048);
  const auto got = quantize<ggml::q8_0>(source(x.data(), extents(n)));
  std::vector<std::uint8_t> expected(got.blocks().size());
  simd::encode_interleaved<ggml::q8_0>(x.data(), n, expected.data());
  CHECK(std::equal(expected.begin(), expected.end(), got.blocks().begin()));
  std::vector<float> values(x.size()), wanted(x.size());
  dequantize_into(got.view(), values.data(), {1});
  simd::decode_interleaved<ggml::q8_0>(expected.data(), n, wanted.data());
  CHECK(values == wanted);
}
