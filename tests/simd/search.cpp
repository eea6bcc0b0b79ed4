// Mirrors include/qtensor/simd/search.hpp.
// SPDX-License-Identifier: BSD-3-Clause
#include "blocks_check.hpp"

using namespace qtensor;
namespace ggml = qtensor::compat::ggml;

namespace {

/// A format of four bits, whose second value is given.
template <int Numerator>
struct uneven_fp4 {
  static constexpr int bits = 4;
  static constexpr bool is_integer = false, is_signed = true;
  static constexpr float max = 8.f, min = -8.f;
  static constexpr auto name = fixed_string("uneven_fp4");
  static constexpr float decode(std::uint32_t code) {
    constexpr float values[8] = {0, 1, static_cast<float>(Numerator) / 1024.f, 2, 3, 4, 6, 8};
    return values[code & 7u] * ((code & 8u) != 0 ? -1.f : 1.f) + 0.f;
  }
};
using even_steps = uneven_fp4<1536>;  // 1.5: middles are 1.25, 1.75
using fine_steps = uneven_fp4<1025>;  // middles of eleven bits

/// ggml's rule for one of them.
template <class F>
struct scheme_of {
  using type = scheme<F, group<32>, scale_as<ggml::half_e8m0>, interleaved<split_halves>, ggml::mxfp4_rule,
                      ggml::searched<F>, block_literal>;
};

/// Numbers on every limit between the codes of F times a scale, and beside them, with a peak that gives the scale.
template <class S>
void check_limits(float scale, float peak) {
  std::vector<float> x;
  for (const float middle : simd::detail::middles<typename S::code_format>)
    for (const int ulps : {-1, 0, 1}) {
      if (x.size() % 16 == 0) x.push_back(peak);
      const std::uint32_t at = bits_of(middle * scale);
      x.push_back(
          float_of((at + (at != 0 ? static_cast<std::uint32_t>(ulps) : 0u)) ^ (x.size() % 2 != 0 ? sign_bit : 0u)));
    }
  blocks::check_encode<S>(x);
}

}  // namespace

TEST_CASE("searched codes: mxfp4 and nvfp4, every scale at every limit") {
  for (std::uint32_t code = 0; code < 0x7f; ++code) {
    const float scale = ggml::ue4m3::decode(code);
    check_limits<ggml::nvfp4>(scale, 6.f * scale);
  }
  for (int e = -150; e < 124; ++e) check_limits<ggml::mxfp4>(exp2i(e), 12.f * exp2i(e));  // of doubled codes
}

TEST_CASE("searched codes: every number of few bits, and its neighbours, beside peaks that give every scale") {
  for (int scale = -140; scale < 128; scale += 3) {
    std::vector<float> x;
    const float peak = static_cast<float>(8 + check::random_below(8)) * exp2i(scale > 123 ? 123 : scale);
    for (int eighths = 0; eighths <= 128; ++eighths)
      for (const int ulps : {-1, 0, 1}) {
        if (x.size() % 16 == 0) x.push_back(peak);
        const float v = peak * static_cast<float>(eighths) / 128.f;
        x.push_back(float_of((bits_of(v) + (v != 0.f ? static_cast<std::uint32_t>(ulps) : 0u)) ^
                             (x.size() % 2 != 0 ? sign_bit : 0u)));
      }
    blocks::check_encode<ggml::mxfp4>(x);
    blocks::check_encode<ggml::nvfp4>(x);
  }
}

TEST_CASE("searched codes: formats of users, whose middles are short or not") {
  using even = scheme_of<even_steps>::type;
  using fine = scheme_of<fine_steps>::type;
  blocks::check_encode_everything<even>();
  blocks::check_encode_everything<fine>();
  for (int e = -130; e < 124; ++e) {
    check_limits<even>(exp2i(e), 4.f * exp2i(e));
    check_limits<fine>(exp2i(e), 4.f * exp2i(e));
  }
  using A = simd::best_arch;
  CHECK(simd::detail::searches_intervals<even_steps, ggml::half_e8m0, A>() == simd::has_interval_codes<A>);
  CHECK(simd::detail::searches_intervals<ggml::fp4, ggml::ue4m3, A>() == simd::has_interval_codes<A>);
  CHECK_FALSE(simd::detail::searches_intervals<fine_steps, ggml::half_e8m0, A>());
}
