// Mirrors include/qtensor/simd/arch.hpp.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/simd/arch.hpp>

#include "check.hpp"

#include <string>

namespace simd = qtensor::simd;

TEST_CASE("arch: this machine runs what this test was compiled for") { CHECK(simd::machine_runs_this()); }

TEST_CASE("arch: archs are listed best first and end with plain C++") {
  std::string seen;
  simd::archs::for_each([&](auto arch) { seen += std::string(simd::arch_name<decltype(arch)>) + ' '; });
  const std::string all = simd::features::neon ? "neon portable " : "avx512 avx2 sse4.2 portable ";
  REQUIRE(seen.size() <= all.size());
  CHECK(all.substr(all.size() - seen.size()) == seen);
  CHECK(seen.substr(0, seen.find(' ')) == simd::arch_name<simd::best_arch>);
  static_assert(simd::archs::contains<simd::scalar_arch>);
  static_assert(simd::usable_arch<simd::best_arch> && !simd::usable_arch<int>);
}

TEST_CASE("arch: lanes is the number of floats in a batch; narrow types have 2 and 4 times as many") {
  check::on_every_arch([](auto arch) {
    using arch_type = decltype(arch);
    constexpr auto lanes = static_cast<std::size_t>(simd::lanes<arch_type>);
    CHECK(simd::floats<arch_type>::size == lanes);
    CHECK(simd::ints<arch_type>::size == lanes);
    CHECK(simd::words<arch_type>::size == lanes);
    CHECK(simd::halves<arch_type>::size == 2 * lanes);
    CHECK(simd::bytes<arch_type>::size == 4 * lanes);
  });
}

TEST_CASE("arch: a level brings the lower ones") {
  using f = simd::features;
  CHECK((!f::avx512 || f::avx2));
  CHECK((!f::avx2 || (f::sse42 && f::fma)));
  CHECK((!f::vbmi || f::avx512));
  CHECK((!f::i8mm || f::dotprod));
}
