// Mirrors include/qtensor/simd/blocks_scales.hpp.
// SPDX-License-Identifier: BSD-3-Clause
#include "blocks_check.hpp"

using namespace qtensor;
namespace ggml = qtensor::compat::ggml;

namespace {

/// Statistics of 64 groups beside the reference's; groups that are not finite only have to say so.
template <class S, class A>
bool same_statistics(const std::vector<float>& x) {
  constexpr index_t size = 32, groups = 64;
  std::vector<std::uint32_t> a(64), b(64);
  simd::detail::group_statistics<typename S::rule::statistics, size, A>::find(x.data(), groups, a.data(), b.data());
  bool same = true;
  for (std::size_t g = 0; g < 64; ++g) {
    reference::block_statistics seen;
    for (std::size_t i = 0; i < 32; ++i) seen.add<S>(x[g * 32 + i]);
    const std::uint32_t most = std::max(a[g] & magnitude_bits, S::has_offset ? b[g] & magnitude_bits : 0u);
    same = same && most == seen.amax_bits;
    if (most >= infinity_bits) continue;
    if (std::is_same_v<typename S::rule::statistics, peak>) same = same && a[g] == bits_of(seen.peak);
    if (S::has_offset) same = same && a[g] == bits_of(seen.own_low) && float_of(b[g]) == seen.own_high;
  }
  return same;
}

/// Peaks of either sign: the reference's, negative where the largest magnitude has both.
template <class A>
bool same_either(const std::vector<float>& x) {
  std::vector<std::uint32_t> a(64);
  simd::detail::group_statistics<peak, 32, A>::find_either(x.data(), 64, a.data());
  for (std::size_t g = 0; g < 64; ++g) {
    std::uint32_t most = 0;
    bool negative = false;
    for (std::size_t i = 0; i < 32; ++i) most = std::max(most, bits_of(x[g * 32 + i]) & magnitude_bits);
    for (std::size_t i = 0; i < 32; ++i) negative = negative || bits_of(x[g * 32 + i]) == (most | sign_bit);
    if (a[g] != (most != 0 && negative ? most | sign_bit : most)) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("group_statistics: absolute maxima, peaks and extremes are the reference's") {
  for (int round = 0; round < 100; ++round) {
    const std::vector<float> x = blocks::awkward(64, 32);
    check::on_every_arch([&](auto arch) {
      CHECK(same_statistics<ggml::q8_0, decltype(arch)>(x));
      CHECK(same_statistics<ggml::q4_0, decltype(arch)>(x));
      CHECK(same_statistics<ggml::q4_1, decltype(arch)>(x));
      CHECK(same_either<decltype(arch)>(x));
    });
  }
}

TEST_CASE("searched blocks: the rule's own code is the one that encode gives") {
  for (int i = 0; i < 20000; ++i) {
    const float x = check::hard_finite();
    using mx = ggml::mxfp4_rule;
    using nv = ggml::nvfp4_rule;
    const bool same = encode<ggml::half_e8m0>(mx::scale<ggml::doubled_fp4, ggml::half_e8m0>(x, {})) == mx::code(x) &&
                      encode<ggml::ue4m3>(nv::scale<ggml::fp4, ggml::ue4m3>(x, {})) == nv::code(x);
    if (!same) CAPTURE(x);
    CHECK(same);
  }
}
