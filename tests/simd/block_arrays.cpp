// Mirrors include/qtensor/simd/block_arrays.hpp.
// SPDX-License-Identifier: BSD-3-Clause
#include <cmath>
#include <qtensor/scheme/schemes.hpp>
#include <qtensor/simd/block_arrays.hpp>

#include "check.hpp"

using namespace qtensor;

namespace {

constexpr float powers[] = {0x1p-149f, 0x1p-127f, 0x1p-126f, 0x1p-120f, 0x1p-117f, 0x1p-116f, 0x1p-20f, 1.f,
                            0x1p30f,   0x1p118f,  0x1p119f,  0x1p120f,  0x1p125f,  0x1p126f,  0x1p127f};

/// Whether every finite nonzero value of F times s is a normal finite number.
template <class F>
bool stays_normal(float s) {
  for (const float v : decode_table<F>) {
    const float x = std::fabs(v * s);
    if (v != 0.f && is_finite(v) && !(x >= 0x1p-126f && is_finite(x))) return false;
  }
  return true;
}

template <class S>
void check_scales() {
  using F = typename S::code_format;
  check::on_every_arch([](auto arch) {
    using A = decltype(arch);
    for (const index_t n : {1, 3, 16, 17, 40})
      for (index_t at = 0; at < n; at += 1 + n / 5)
        for (const float p : powers)
          for (const float s : {p, -p, p * 1.5f, 0.f, infinity, quiet_nan}) {
            check::fenced<float> scales(std::vector<float>(static_cast<std::size_t>(n), 1.f));
            scales[at] = s;
            std::vector<std::uint16_t> steps(static_cast<std::size_t>(n + 2 * simd::lanes<A>));
            const bool is_power = s > 0.f && is_finite(s) && std::frexp(s, std::array<int, 1>{}.data()) == 0.5f;
            const bool fits = simd::detail::exponent_steps<S, A>(scales.data(), n, steps.data());
            REQUIRE(fits == (is_power && s >= 0x1p-126f && stays_normal<F>(s)));
            if (fits)
              for (index_t i = 0; i < n; ++i)
                REQUIRE(steps[static_cast<std::size_t>(i)] ==
                        static_cast<std::uint16_t>(128 * std::ilogb(static_cast<float>(scales[i]))));
            // Larger numbers than these may overflow, but are not subnormal.
            const float least = simd::detail::smallest_magnitude<F>;
            const bool is_plain = simd::plain_is_normal<A> ? !(std::fabs(least * s) < 0x1p-126f) : !is_nan(s);
            REQUIRE(simd::detail::products_are_plain<S, A>(scales.data(), n, 1.f) == is_plain);
          }
  });
}

}  // namespace

TEST_CASE("exponent_steps, products_are_plain: what a scale does to the smallest and the largest number decides") {
  check_scales<stored<mxfp8_e4m3>>();
  check_scales<stored<mxfp8_e5m2>>();
  check_scales<stored<mxfp6_e2m3>>();
  check_scales<stored<mxfp4>>();
}

TEST_CASE("products_are_untied: whether a code has a number halfway between two of bf16") {
  check::on_every_arch([](auto arch) {
    using A = decltype(arch);
    const auto compare = []<class S>(std::type_identity<S>, float scale, std::int32_t zero) {
      constexpr std::int32_t first = S::code_format::is_signed ? -128 : 0;
      bool untied = true;
      for (std::int32_t c = first; c < first + 256; ++c)
        untied = untied && (bits_of(static_cast<float>(c - zero) * scale) & 0xffffu) != 0x8000u;
      CAPTURE(scale);
      CAPTURE(zero);
      REQUIRE(simd::detail::products_are_untied<S, A>({&scale, S::has_zero_point ? &zero : nullptr}) == untied);
      return untied;
    };
    index_t found[2] = {};
    for (int i = 0; i < 2000; ++i) {
      float scale = std::fabs(check::hard_float());
      if (!is_finite(scale)) scale = infinity;
      if (i % 3 == 0) scale = float_of(bits_of(scale) & 0xffff8000u);  // one with few bits
      compare(std::type_identity<stored<int8_per_tensor>>{}, scale, 0);
      ++found[compare(std::type_identity<stored<uint8_per_tensor>>{}, scale, i % 256) ? 1 : 0];
    }
    CHECK(found[0] > 100);
    CHECK(found[1] > 100);
  });
}

TEST_CASE("products_are_bf16: every product of a code and a scale of the format that is not subnormal") {
  using S = stored<nvfp4>;
  static_assert(simd::detail::significant_bits<e2m1> == 2 && simd::detail::significant_bits<e4m3> == 4 &&
                simd::detail::significant_bits<int8> == 7 && simd::detail::significant_bits<f32> == 24);
  check::on_every_arch([](auto arch) {
    using A = decltype(arch);
    const auto takes = [](float s) {
      std::vector<float> scales(19, 1.f);
      scales[check::random_below(19)] = s;
      return simd::detail::products_are_bf16<S, A>(scales.data(), 19);
    };
    for (std::uint32_t c = 0; c < 256; ++c) REQUIRE(takes(decode<e4m3>(c)));
    for (const float s : {0.f, -0.f, 1.f, -1.f, 0x1.f8p0f, 0x1p-125f, infinity}) REQUIRE(takes(s));
    for (const float s : {0x1.fcp0f, 0x1.02p0f, 0x1.fffffep0f, 0x1p-126f, 0x1p-149f}) REQUIRE(!takes(s));
    for (int i = 0; i < 2000; ++i)
      if (const float s = check::hard_float(); takes(s))
        for (const float v : decode_table<e2m1>) REQUIRE((is_nan(v * s) || (bits_of(v * s) & 0xffffu) == 0));
  });
}

TEST_CASE("smallest_magnitude: of values, and of differences to zero points") {
  CHECK(simd::detail::smallest_magnitude<e4m3> == 0x1p-9f);
  CHECK(simd::detail::smallest_magnitude<e2m1> == 0.5f);
  CHECK(simd::detail::smallest_magnitude<int8> == 1.f);
  CHECK(simd::detail::smallest_magnitude<mxint8_code> == 0x1p-6f);
}

TEST_CASE("spread_arrays: every element gets the entry of its group, missing arrays are zeros") {
  using S = stored<scheme<uint4, group<32>, zero_point<uint8>>>;
  const std::vector<float> scales = {1.f, 2.f, 3.f, 4.f, 5.f};
  const std::vector<std::int32_t> zeros = {7, 6, 5, 4, 3};
  simd::detail::spread_arrays<S, simd::best_arch, 64> elements;
  for (const index_t group : {1, 3, 7, 64})
    for (const index_t first : {0, 2, 4}) {
      const index_t n = std::min<index_t>(64, 5 * group - first);
      const simd::block_arrays with = elements.fill({scales.data(), zeros.data(), nullptr, 0.5f}, group, first, n);
      bool ok = with.tensor_scale == 0.5f;
      for (index_t i = 0; i < n; ++i) {
        const auto g = static_cast<std::size_t>((first + i) / group);
        ok = ok && with.scales[i] == scales[g] && with.zero_points[i] == zeros[g];
      }
      CHECK(ok);
      CHECK(elements.fill({scales.data()}, group, first, n).zero_points[n - 1] == 0);
    }
}
