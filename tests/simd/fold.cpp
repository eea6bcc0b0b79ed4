// Mirrors include/qtensor/simd/fold.hpp. Built once per architecture level.
// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <cmath>
#include <qtensor/reference/number.hpp>
#include <qtensor/scheme/schemes.hpp>
#include <qtensor/simd/fold.hpp>
#include <vector>

using namespace qtensor;

namespace {

template <class S>
simd::fold_rule rule_of(const number_type<S>& t) {
  const float zero = static_cast<float>(t.zero_point);
  return {t.scale,
          zero,
          std::is_same_v<typename S::zero_point_order, zp_before_round>,
          S::codes.low - zero,
          S::codes.high - zero,
          S::code_format::bits > 24 && zero != 0.f ? 0x1p23f : infinity};
}

/// Every lane folds bytes of its own; the definition is a loop over quantized numbers.
template <class Op, class A, index_t Vectors, class S, class Body>
void check(const number_type<S>& type, const Body& body, const float* leaves, bool may_fail) {
  constexpr index_t width = Vectors * simd::lanes<A>, steps = 23, stride = width + 3;
  std::vector<std::uint8_t> x(static_cast<std::size_t>(steps * stride));
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<std::uint8_t>(i * 7919 >> 3);
  const auto seed = type(1.5f);
  std::vector<float> k(static_cast<std::size_t>(width), static_cast<float>(seed.integer() - type.zero_point));
  const bool exact = simd::fold_lanes<Op, A, Vectors>(x.data(), steps, stride, 0x80, leaves, rule_of(type), k.data());
  INFO(simd::arch_name<A>, " ", name<S>.c_str(), " scale ", type.scale, " zero point ", type.zero_point);
  REQUIRE((exact || may_fail));
  if (!exact) return;
  for (index_t c = 0; c < width; ++c) {
    auto acc = seed;
    for (index_t s = 0; s < steps; ++s)
      acc = type(body(acc.real(), leaves[x[static_cast<std::size_t>(s * stride + c)] ^ 0x80]));
    const float want = static_cast<float>(acc.integer() - type.zero_point);  // 2^31 where 2^31 - 1 is the code
    REQUIRE(bits_of(k[static_cast<std::size_t>(c)]) == bits_of(want));
  }
}

template <class S>
void check_scheme(float scale, int zero, bool may_fail = false) {
  std::vector<float> small(256), large(256), around_one(256);
  for (std::size_t i = 0; i < 256; ++i) {
    small[i] = (static_cast<float>(i) - 127.f) * scale;
    large[i] = (static_cast<float>(i) - 90.f) * scale * 3e6f;
    around_one[i] = (static_cast<float>(i) - 100.f) / 80.f;
  }
  const auto type = requantize_to<S>(scale, zero);
  const auto sum = [](float a, float b) { return rounded(a) + rounded(b); };
  const auto product = [](float a, float b) { return rounded(a * b); };
  const bool leaves_floats = S::code_format::bits > 24 && zero != 0;
  simd::archs::for_each([&]<class A>(A) {
    check<simd::add_reals, A, simd::fold_vectors>(type, sum, small.data(), may_fail);
    check<simd::add_reals, A, 1>(type, sum, small.data(), may_fail);
    check<simd::add_reals, A, 1>(type, sum, large.data(), leaves_floats);
    check<simd::multiply_reals, A, simd::fold_vectors>(type, product, around_one.data(), may_fail);
    check<simd::multiply_reals, A, 1>(type, product, around_one.data(), may_fail);
  });
}

using u8 = scheme<uint8, per_tensor, zero_point<uint8>, static_only, zp_before_round>;
using i32 = scheme<int32, per_tensor, zero_point<int32>, static_only, zp_before_round>;

}  // namespace

TEST_CASE("fold_lanes: every lane is the fold of quantized numbers, bit for bit") {
  check_scheme<u8>(.1f, 40);
  check_scheme<with<u8, zp_after_round>>(.1f, 41);
  check_scheme<with<u8, stored_range<3, 200>>>(.03f, 100);
  check_scheme<int8_per_tensor>(.7f, 0);
  check_scheme<i32>(.1f, -7);
  check_scheme<i32>(.1f, 0);
  check_scheme<with<i32, zp_after_round>>(.3f, 0);
  check_scheme<with<i32, zp_after_round>>(.003f, 5);
  check_scheme<scheme<int16, per_tensor, zero_point<int16>, static_only, zp_before_round>>(.001f, 300);
}

TEST_CASE("fold_lanes: says where codes of 32 bits leave what floats hold, and where there is a NaN") {
  const auto type = requantize_to<i32>(1e-5f, 1);
  std::vector<float> leaves(256, 1000.f);
  simd::archs::for_each([&]<class A>(A) {
    std::vector<std::uint8_t> x(static_cast<std::size_t>(simd::lanes<A>) * 4, 1);
    std::vector<float> k(static_cast<std::size_t>(simd::lanes<A>), 0.f);
    const index_t stride = simd::lanes<A>;
    CHECK(!simd::fold_lanes<simd::add_reals, A, 1>(x.data(), 1, stride, 0, leaves.data(), rule_of(type), k.data()));
    std::fill(k.begin(), k.end(), 0.f);
    leaves[1] = quiet_nan;
    CHECK(!simd::fold_lanes<simd::add_reals, A, 1>(x.data(), 1, stride, 0, leaves.data(),
                                                   rule_of(requantize_to<u8>(1.f)), k.data()));
    leaves[1] = 1000.f;
  });
}

TEST_CASE("fold_lines: sums, products, maxima and minima of lines of every length are those of the bodies") {
  const float special[] = {0.f, -0.f, 1.5f, -3.25f, infinity, -infinity, 1e38f, -1e-40f, quiet_nan, 7.f, -2.f};
  simd::archs::for_each([&]<class A>(A) {
    for (index_t n = 0; n <= 4 * simd::lanes<A> + 3; ++n) {
      const auto check_op = [&]<class Op>(Op, auto body) {
        std::vector<std::vector<float>> lines(5, std::vector<float>(static_cast<std::size_t>(n)));
        std::vector<const float*> x;
        for (std::size_t k = 0; k < lines.size(); ++k) {
          for (std::size_t i = 0; i < lines[k].size(); ++i) lines[k][i] = special[(i * 7 + k * (i / 11 + 3)) % 11];
          x.push_back(lines[k].data());
        }
        std::vector<float> y(static_cast<std::size_t>(n) + 1, -0.f), want = y;
        for (const auto& line : lines)
          for (std::size_t i = 0; i < line.size(); ++i) want[i] = body(want[i], line[i]);
        simd::fold_lines<Op, A>(x.data(), static_cast<index_t>(x.size()), n, y.data());
        for (std::size_t i = 0; i < y.size(); ++i)
          REQUIRE((bits_of(y[i]) == bits_of(want[i]) || (is_nan(y[i]) && is_nan(want[i]))));
      };
      check_op(simd::add_reals{}, add);
      check_op(simd::multiply_reals{}, multiply);
      check_op(simd::max_reals{}, max);
      check_op(simd::min_reals{}, min);
    }
  });
}
