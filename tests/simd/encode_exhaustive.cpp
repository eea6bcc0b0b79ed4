// Mirrors include/qtensor/simd/encode.hpp: sweeps over all floats, and over all mantissas of a scale. The quick tests
// take samples of the same sweeps. SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/simd/encode.hpp>

#include "runs.hpp"

using namespace runs;

namespace {

/// The best architecture against the reference on floats first, first + step, ... below 2^32.
template <class F, class... P>
void sweep(std::uint64_t step) {
  using S = scheme<F, per_tensor, static_only, P...>;
  using reference = simd::kernel<simd::op::encode, S, simd::scalar_arch>;
  constexpr index_t chunk = 1 << 16;
  std::vector<float> x;
  std::vector<simd::code_unit_t<S>> want(chunk), got(chunk);
  for (std::uint64_t first = 0; first <= 0xffffffffu;) {
    x.clear();
    for (; first <= 0xffffffffu && static_cast<index_t>(x.size()) < chunk; first += step)
      x.push_back(float_of(static_cast<std::uint32_t>(first)));
    const index_t n = static_cast<index_t>(x.size());
    reference::uniform(x.data(), n, {1.f}, 0, want.data());
    simd::encode_uniform<S>(x.data(), n, {1.f}, 0, got.data());
    compare_codes<S, simd::best_arch>(got.data(), want.data(), x.data(), n, "sweep");
  }
  CHECK(step > 0);
}

void all_formats(std::uint64_t step) {
  sweep<e4m3>(step);
  sweep<e4m3, to_special>(step);
  sweep<e5m2>(step);
  sweep<e5m2, to_special>(step);
  sweep<e4m3fnuz>(step);
  sweep<e5m2fnuz, to_special>(step);
  sweep<e3m2>(step);
  sweep<e2m3>(step);
  sweep<e2m1>(step);
  sweep<e1m2>(step);
  sweep<e2m1, nearest_away>(step);
  sweep<e4m3, nearest_away>(step);
  sweep<e4m3, nearest_away, to_special>(step);
  sweep<int8, nearest_away>(step);
  sweep<e2m1, toward_negative>(step);
  sweep<e4m3, toward_zero>(step);
  sweep<e5m2, toward_positive>(step);
  sweep<e3m2, toward_negative, nan_to_zero>(step);
  sweep<int8, toward_negative>(step);
  sweep<uint4, toward_positive>(step);
  sweep<int8>(step);
  sweep<uint8>(step);
  sweep<int4>(step);
  sweep<mxint8_code>(step);
  sweep<hif8>(step);
  sweep<hif8, nearest_even>(step);
}

/// Quotients by two products that lie elsewhere than IEEE's, seen from a half-integer below 256: every step-th mantissa
/// of s, every half-integer and its four neighbours.
template <class A>
std::uint64_t wrong_quotients(std::uint32_t step) {
  using S = scheme<int8, per_tensor>;
  const simd::floats<A> half(0.5f);
  std::uint64_t wrong = 0;
  for (std::uint32_t mantissa = 0; mantissa < 1u << 23; mantissa += step * static_cast<std::uint32_t>(simd::lanes<A>)) {
    float lane[16];
    for (std::uint32_t i = 0; i < simd::lanes<A>; ++i)
      lane[i] = float_of(127u << 23 | ((mantissa + i * step) & low_bits(23)));
    const simd::floats<A> s = simd::load<A>(lane);
    const auto d = simd::divisor_of<S, simd::quotient_by::two_products>(s, 1.f);
    for (int k = 1; k < 512; k += 2) {
      const simd::floats<A> border = simd::mul(simd::floats<A>(static_cast<float>(k)), half);
      const simd::words<A> middle = simd::bits_as<std::uint32_t>(simd::mul(border, s));
      for (int near = -2; near <= 2; ++near) {
        const simd::floats<A> x = simd::bits_as<float>(middle + simd::words<A>(static_cast<std::uint32_t>(near)));
        const auto side = [&](const simd::floats<A>& q) {
          const simd::words<A> at(1u), below(0u), above(2u);
          return simd::select(simd::mask_as<std::uint32_t>(q < border), below,
                              simd::select(simd::mask_as<std::uint32_t>(q > border), above, at));
        };
        if (simd::any(side(simd::div(x, s)) != side(simd::quotients<S>(x, d)))) [[unlikely]]
          ++wrong;
      }
    }
  }
  return wrong;
}

/// Corrected quotients that are not IEEE's: every step-th mantissa of x by scales with few, many and random bits, at
/// the ends of what they may be.
template <class A>
std::uint64_t wrong_corrections(std::uint32_t step, int scales) {
  using S = scheme<int8, per_tensor>;
  std::uint64_t wrong = 0;
  for (int i = 0; i < scales; ++i) {
    const std::uint32_t random = check::random_bits()(), few = 1u << (i / 4 % 23);
    const std::uint32_t bits[] = {random, few, 0u - few, few - 1};
    const std::uint32_t mantissa = bits[i % 4] & low_bits(23);
    for (const std::uint32_t scale_exponent : {127u - 50u, 126u, 127u, 127u + 99u}) {
      const simd::floats<A> s(float_of(scale_exponent << 23 | mantissa));
      const auto d = simd::divisor_of<S, simd::quotient_by::corrected>(s, 1.f);
      for (const std::uint32_t exponent : {127u - 101u, 126u, 127u, 200u}) {
        if (exponent + 127u < scale_exponent + 80u || exponent + 127u > scale_exponent + 253u) continue;
        const simd::words<A> sign((random & 1) << 31);
        for (std::uint32_t first = 0; first < 1u << 23; first += step * static_cast<std::uint32_t>(simd::lanes<A>)) {
          alignas(64) std::uint32_t lane[16];
          for (std::uint32_t k = 0; k < simd::lanes<A>; ++k)
            lane[k] = exponent << 23 | ((first + k * step) & low_bits(23));
          const simd::floats<A> x = simd::bits_as<float>(simd::load<A>(lane) | sign);
          const auto want = simd::bits_as<std::uint32_t>(simd::div(x, s));
          if (simd::any(want != simd::bits_as<std::uint32_t>(simd::quotients<S>(x, d)))) [[unlikely]]
            ++wrong;
        }
      }
    }
  }
  return wrong;
}

}  // namespace

TEST_CASE("every 65,537th float, every format") { all_formats(65537); }

TEST_CASE("two products divide as IEEE does wherever a code is decided: every 997th mantissa") {
  check::on_every_arch([](auto arch) { CHECK(wrong_quotients<decltype(arch)>(997) == 0); });
}

TEST_CASE("corrected quotients are IEEE's: every 4,999th mantissa of x, several hundred scales") {
  check::on_every_arch([](auto arch) {
    if constexpr (simd::detail::has_fma_unit<decltype(arch)>) CHECK(wrong_corrections<decltype(arch)>(4999, 400) == 0);
  });
}

TEST_SUITE("exhaustive") {
  TEST_CASE("corrected quotients are IEEE's: every mantissa of x, several hundred scales") {
    CHECK(wrong_corrections<simd::best_arch>(1, simd::detail::has_fma_unit<simd::best_arch> ? 400 : 0) == 0);
  }
  TEST_CASE("all floats, every format") { all_formats(1); }
  TEST_CASE("two products divide as IEEE does wherever a code is decided: every mantissa") {
    CHECK(wrong_quotients<simd::best_arch>(1) == 0);
  }
}
