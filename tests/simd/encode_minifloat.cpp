// Mirrors include/qtensor/simd/encode_minifloat.hpp: HiFloat8 at every upper half of a float; minifloats around every
// code.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/simd/encode.hpp>

#include "runs.hpp"

using namespace runs;

namespace {

template <class F, class... P>
using plain = scheme<F, per_tensor, static_only, P...>;

/// Every upper half, with nothing, everything, and something below it.
std::vector<float> upper_halves(std::uint32_t step) {
  std::vector<float> x;
  for (std::uint32_t h = 0; h < 65536; h += step)
    for (const std::uint32_t low : {0u, 0xffffu, 0x8000u}) x.push_back(float_of(h << 16 | low));
  return x;
}

}  // namespace

TEST_CASE("hif8: every upper half of a float") {
  check_uniform<plain<hif8>>(upper_halves(1), {1.f});
  check_uniform<plain<hif8, nan_to_zero>>(upper_halves(3), {1.f});
  for (const float s : {0.25f, 0.37f, 3e5f}) check_uniform<plain<hif8>>(upper_halves(7), {s});
}

TEST_CASE("hif8, ties to even: every upper half of a float and its neighbours") {
  std::vector<float> x = upper_halves(1);
  for (std::uint32_t h = 0; h < 65536; ++h)
    for (const std::uint32_t near : {1u, 0xffffffffu}) x.push_back(float_of((h << 16) + near));
  check_uniform<plain<hif8, nearest_even>>(x, {1.f});
  check_uniform<plain<hif8, nearest_even, nan_to_zero>>(x, {1.f});
  for (const float s : {0.25f, 0.37f, 3e5f}) check_uniform<plain<hif8, nearest_even>>(upper_halves(7), {s});
}

TEST_CASE("minifloats, saturating: every upper half of a float, signs and NaN policies") {
  check_uniform<plain<e4m3>>(upper_halves(1), {1.f});
  check_uniform<plain<e5m2>>(upper_halves(1), {1.f});
  check_uniform<plain<e2m1, nan_to_max>>(upper_halves(1), {1.f});
  check_uniform<plain<e3m2>>(upper_halves(1), {1.f});
  check_uniform<plain<e4m3fnuz>>(upper_halves(1), {1.f});
}
