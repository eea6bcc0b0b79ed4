// Mirrors include/qtensor/simd/blocks.hpp.
// SPDX-License-Identifier: BSD-3-Clause
#include "blocks_check.hpp"

using namespace qtensor;
namespace ggml = qtensor::compat::ggml;

namespace {

template <class S>
inline constexpr bool decodable = simd::block_decodable<S>;

}  // namespace

TEST_CASE("decode_interleaved: ggml's blocks of one scale") {
  blocks::check_decode_everything<ggml::q8_0>();
  blocks::check_decode_everything<ggml::q8_1>();
  blocks::check_decode_everything<ggml::q4_0>();
  blocks::check_decode_everything<ggml::q5_0>();
  blocks::check_decode_everything<ggml::mxfp4>();
}

TEST_CASE("decode_interleaved: offsets, and several scales in a block") {
  blocks::check_decode_everything<ggml::q4_1>();
  blocks::check_decode_everything<ggml::q5_1>();
  blocks::check_decode_everything<ggml::nvfp4>();
}

TEST_CASE("decode_interleaved: other formats, orders and sizes") {
  blocks::check_decode_everything<scheme<e4m3, group<64>, scale_as<e8m0>, interleaved<>, mx_floor>>();
  blocks::check_decode_everything<scheme<int4, group<16>, scale_as<f32>, interleaved_groups<2, low_first>>>();
  blocks::check_decode_everything<scheme<e3m2, group<128>, scale_as<bf16>, interleaved<>>>();
  blocks::check_decode_everything<scheme<blocks::int3, group<32>, scale_as<f16>, interleaved<>>>();
  blocks::check_decode_everything<
      scheme<uint4, group<32>, scale_as<bf16>, offset<f32>, interleaved<high_first>, offset_min_max>>();
}

TEST_CASE("block_decodable: groups that fill batches, codes of at most 8 bits") {
  CHECK(decodable<ggml::q8_0>);
  CHECK(decodable<stored<ggml::q5_1>>);
  CHECK_FALSE(decodable<int8_group<32>>);
  CHECK_FALSE(decodable<scheme<int8, group<24>, scale_as<f16>, interleaved<>>>);
  CHECK_FALSE(decodable<scheme<int8, group<dynamic>, scale_as<f16>, interleaved<>>>);
  CHECK_FALSE(decodable<scheme<int16, group<32>, scale_as<f16>, interleaved<>>>);
}
