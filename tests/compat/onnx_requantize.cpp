// Mirrors include/qtensor/compat/onnx_requantize.hpp.
// SPDX-License-Identifier: BSD-3-Clause
#include <cmath>
#include <limits>
#include <qtensor/compat/onnx_requantize.hpp>
#include <vector>

#include "../simd/check.hpp"

namespace onnx = qtensor::compat::onnx;
using namespace qtensor;

namespace {

template <class Y, bool Wraps>
void check_codes(const std::vector<float>& rows, const std::vector<float>& columns, float divisor, Y zero) {
  using A = simd::best_arch;
  constexpr index_t lanes = simd::lanes<A>;
  constexpr double low = std::numeric_limits<Y>::min(), high = std::numeric_limits<Y>::max();
  const index_t outputs = 3 * lanes;
  const onnx::pieces::reference_requantization<Y, Wraps> how(rows, columns, divisor, {}, zero, outputs);
  std::int32_t sums[lanes], codes[lanes];
  for (int turn = 0; turn < 400; ++turn) {
    for (std::int32_t& sum : sums)
      sum = turn < 200 ? static_cast<std::int32_t>(check::random_below(801)) - 400
                       : static_cast<std::int32_t>(check::random_bits()()) >> check::random_below(32);
    const index_t row = static_cast<index_t>(check::random_below(rows.size())),
                  column = static_cast<index_t>(check::random_below(3)) * lanes;
    simd::store(codes, rows.size() > 1 ? how.template codes<true>(sums, row, column)
                                       : how.template codes<false>(sums, row, column));
    for (index_t i = 0; i < lanes; ++i) {
      const float by = columns[columns.size() == 1 ? 0 : static_cast<std::size_t>(column + i)];
      const float f = rounded(rounded(rows[static_cast<std::size_t>(row)] * by) / divisor);
      const double q = rounded(static_cast<double>(sums[i]) * static_cast<double>(f)) + static_cast<double>(zero);
      const auto got = static_cast<Y>(Wraps ? codes[i] : std::clamp<std::int32_t>(codes[i], low, high));
      CAPTURE(sums[i]);
      CAPTURE(f);
      if (!(std::fabs(q) < 0x1p63))
        REQUIRE(got == (q == q && !Wraps ? (q < 0 ? std::numeric_limits<Y>::min() : std::numeric_limits<Y>::max()) : 0));
      else if (Wraps)
        REQUIRE(got == static_cast<Y>(static_cast<std::int64_t>(std::nearbyint(q))));
      else
        REQUIRE(got == static_cast<Y>(std::nearbyint(std::clamp(q, low, high))));
    }
  }
}

}  // namespace

TEST_CASE_TEMPLATE("reference_requantization: codes of double, ties and sums that f32 does not hold among them", Y,
                   std::int8_t, std::uint8_t) {
  constexpr auto columns = static_cast<std::size_t>(3 * simd::lanes<simd::best_arch>);
  std::vector<float> some(columns);
  for (float& s : some) s = static_cast<float>(1 + check::random_below(4096)) * 0x1p-12f;
  for (const float divisor : {1.f, .5f, 3.f, 1e-4f, 1e4f})
    for (const Y zero : {Y{0}, Y{5}, std::numeric_limits<Y>::max()}) {
      check_codes<Y, true>({.5f}, {1.f}, divisor, zero);
      check_codes<Y, false>({.5f}, {1.f}, divisor, zero);
      check_codes<Y, true>({.37f}, some, divisor, zero);
      check_codes<Y, false>({.1f, .7f, 1.25f}, some, divisor, zero);
      check_codes<Y, true>({.1f, .7f, 1.25f}, some, divisor, zero);
      check_codes<Y, false>({1e-3f}, {.3f}, divisor, zero);
      check_codes<Y, true>({1e30f}, {1e30f}, divisor, zero);  // factors are infinite
      check_codes<Y, false>({1e30f}, {1e30f}, divisor, zero);
    }
}
