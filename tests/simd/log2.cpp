// Mirrors include/qtensor/simd/log2.hpp: every binade, every mantissa near its ends and a sample between.
// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <qtensor/policy/scale_rule.hpp>
#include <qtensor/simd/log2.hpp>
#include <vector>

using namespace qtensor;
using A = simd::best_arch;

namespace {

/// Numbers of which fun(x) by vectors is not `wanted`(x).
template <class Fun, class Wanted>
int wrong(Fun fun, Wanted wanted) {
  constexpr std::size_t lanes = static_cast<std::size_t>(simd::lanes<A>);
  std::vector<std::uint32_t> mantissas;
  for (std::uint32_t m = 0; m < 256; ++m) mantissas.push_back(m), mantissas.push_back(low_bits(23) - m);
  for (std::uint32_t m = 256; m < low_bits(23) - 256; m += 40503) mantissas.push_back(m);
  while (mantissas.size() % lanes != 0) mantissas.push_back(0);
  int count = 0;
  for (std::uint32_t field = 1; field < 255; ++field)
    for (std::size_t i = 0; i < mantissas.size(); i += lanes) {
      const auto x = simd::load<A>(mantissas.data() + i) | simd::words<A>(field << 23);
      std::int32_t got[lanes];
      simd::store(got, fun(x));
      for (std::size_t k = 0; k < lanes; ++k)
        count += got[k] != wanted(float_of(mantissas[i + k] | field << 23));
    }
  return count;
}

}  // namespace

TEST_CASE("floor_of_log2f, ceil_of_log2f: as the scalar ones") {
  CHECK(wrong([](const auto& x) { return simd::floor_of_log2f<A>(x); }, detail::floor_of_log2f) == 0);
  CHECK(wrong([](const auto& x) { return simd::ceil_of_log2f<A>(x); }, detail::ceil_of_log2f) == 0);
  CHECK(detail::floor_of_log2f(float_of(0x7f7fffff)) == 128);  // what rounds up is among them
}
