// Mirrors include/qtensor/simd/blocks_encode.hpp.
// SPDX-License-Identifier: BSD-3-Clause
#include "blocks_check.hpp"

using namespace qtensor;
namespace ggml = qtensor::compat::ggml;

namespace {

template <class S>
inline constexpr bool encodable = simd::block_encodable<S>;

/// A rule that says codes and has no form for vectors.
struct plain_rule : ggml::mxfp4_rule {
  static constexpr fixed_string name = "plain_rule";
};

/// Blocks of ones, of which one has two other numbers; its others are `rest`.
std::vector<float> ones_but(float first, index_t i, float second, index_t j, float rest = 1.f) {
  std::vector<float> x(16 * 32, 1.f);
  std::fill_n(x.begin() + 5 * 32, 32, rest);
  x[static_cast<std::size_t>(5 * 32 + i)] = first;
  x[static_cast<std::size_t>(5 * 32 + j)] = second;
  return x;
}

}  // namespace

TEST_CASE("encode_interleaved: q8_0 and q8_1") {
  blocks::check_encode_everything<ggml::q8_0>();
  blocks::check_encode_everything<ggml::q8_1>();
}

TEST_CASE("encode_interleaved: q4_0 and q5_0, the first of two peaks gives the sign") {
  blocks::check_encode_everything<ggml::q4_0>();
  blocks::check_encode_everything<ggml::q5_0>();
  for (const index_t i : {0, 3, 15, 16, 31})
    for (const index_t j : {0, 1, 14, 17, 30})
      for (const float m : {2.f, 0x1p-140f, 0x1p-147f, 0x1p-149f, 3e38f, infinity}) {
        if (i == j) continue;
        for (const float rest : {std::min(m, 1.f), 0.f}) {
          blocks::check_encode<ggml::q4_0>(ones_but(m, i, -m, j, rest));
          blocks::check_encode<ggml::q5_0>(ones_but(-m, i, m, j, rest));
        }
      }
}

TEST_CASE("encode_interleaved: q4_1 and q5_1, the first of two zeros gives the sign") {
  blocks::check_encode_everything<ggml::q4_1>();
  blocks::check_encode_everything<ggml::q5_1>();
  for (const index_t i : {0, 3, 15, 16, 31})
    for (const index_t j : {1, 14, 17, 30}) {
      blocks::check_encode<ggml::q4_1>(ones_but(-0.f, i, 0.f, j));
      blocks::check_encode<ggml::q5_1>(ones_but(0.f, i, -0.f, j));
    }
}

TEST_CASE("encode_interleaved: mxfp4 and nvfp4, the nearest code by search") {
  blocks::check_encode_everything<ggml::mxfp4>();
  blocks::check_encode_everything<ggml::nvfp4>();
}

TEST_CASE("encode_interleaved: codes of scales by a rule that vectors do not know") {
  using scheme = with<ggml::mxfp4, plain_rule>;
  CHECK(!simd::vector_code<plain_rule, simd::best_arch>::enabled);
  CHECK(encodable<scheme>);
  blocks::check_encode_everything<scheme>();
}

TEST_CASE("encode_interleaved: a special number at every place") {
  for (const float special : {infinity, -infinity, quiet_nan, -quiet_nan, 0x1.fffffep127f, -0x1p-149f})
    for (index_t i = 0; i < 64; ++i) {
      std::vector<float> x(64 * 32, 0.25f);
      x[static_cast<std::size_t>(i * 32 + i % 32)] = special;
      blocks::check_encode<ggml::q8_0>(x);
      blocks::check_encode<ggml::q4_0>(x);
      blocks::check_encode<ggml::q4_1>(x);
    }
}

TEST_CASE("encode_interleaved: products near every half") {
  // The peak is 127 (or -8) times a power of two: other numbers meet the halves between codes exactly, or nearly.
  for (const int e : {0, -20, 30})
    for (const std::int32_t ulps : {-1, 0, 1}) {
      std::vector<float> x;
      for (int half = -254; half < 258; ++half) {
        const float v = static_cast<float>(half) * 0.5f * exp2i(e);
        x.push_back(x.size() % 32 == 0 ? 127.f * exp2i(e)
                                       : float_of(bits_of(v) + (v != 0.f ? static_cast<std::uint32_t>(ulps) : 0u)));
      }
      blocks::check_encode<ggml::q8_0>(x);
      for (float& v : x) v *= 0.0625f;
      blocks::check_encode<ggml::q4_0>(x);
      blocks::check_encode<ggml::q5_0>(x);
    }
}

TEST_CASE("encode_interleaved: numbers of 16 bits") {
  const auto check = []<class S>(std::type_identity<S>) {
    constexpr index_t elements = interleaved_block<S>::elements({});
    for (const index_t n : {elements - 1, elements, 17 * elements + 5, 700 * elements})
      blocks::check_encode_halves<S>([&] {
        std::vector<float> x = blocks::awkward(701, elements);
        x.resize(static_cast<std::size_t>(n));
        return x;
      }());
  };
  check(std::type_identity<ggml::q8_0>{});
  check(std::type_identity<ggml::q4_0>{});
  check(std::type_identity<ggml::q4_1>{});
  check(std::type_identity<ggml::mxfp4>{});
  check(std::type_identity<ggml::nvfp4>{});
}

TEST_CASE("encode_interleaved: other policies, formats, orders and sizes") {
  blocks::check_encode_everything<scheme<int8, group<64>, scale_as<f16>, interleaved<>>>();
  blocks::check_encode_everything<scheme<int8, group<32>, scale_as<e8m0>, interleaved<>, mx_floor>>();
  blocks::check_encode_everything<scheme<int8, group<32>, scale_as<f16>, interleaved<>, bounded_amax<1, 100>>>();
  blocks::check_encode_everything<scheme<int4, group<16>, scale_as<f32>, interleaved_groups<2, low_first>>>();
  blocks::check_encode_everything<scheme<blocks::int3, group<32>, scale_as<f16>, interleaved<>>>();
  blocks::check_encode_everything<
      scheme<uint4, group<32>, scale_as<bf16>, offset<f16>, interleaved<high_first>, offset_min_max, reciprocal>>();
}

TEST_CASE("block_encodable: what vectors follow") {
  CHECK(encodable<ggml::q8_0>);
  CHECK(encodable<ggml::q5_1>);
  CHECK_FALSE(encodable<with<ggml::q8_0, static_only>>);
  CHECK_FALSE(encodable<with<ggml::q8_0, stochastic<>>>);
  CHECK_FALSE(encodable<int8_group<32>>);
}
