// torch's quantized::linear of any sizes, scales, zero points and biases, as a loop over NUMERICS 10.
// SPDX-License-Identifier: BSD-3-Clause
#include <cmath>
#include <qtensor/compat/torch_linear.hpp>
#include <qtensor/ops/parallel.hpp>

#include "../ops/threads.hpp"
#include "array.hpp"

using namespace qtensor;
namespace torch = qtensor::compat::torch;

namespace {

/// Codes: any, few, or only the ends of the range.
fuzz::array codes(fuzz::dice& dice, index_t n) {
  fuzz::array out(dice, n, 1);
  const index_t kind = dice.within(0, 3);
  for (index_t i = 0; i < n; ++i)
    out.set(i, 8, kind == 0 ? dice.one_of(0x80u, 0x7Fu, 0xFFu, 0u) : kind == 1 ? dice.bits() % 3u : dice.bits());
  return out;
}

/// A scale near 2^e, seldom one at the ends of floats.
double draw_scale(fuzz::dice& dice, int e) {
  const double s = std::ldexp(1.0 + static_cast<double>(dice.bits() % 4096) / 4096.0 + 1e-12, e);
  return dice.chance(40) ? dice.one_of(1e-45, 1e-38, 1e-20, 1e20, 3e38) : s;
}

void linear(fuzz::dice& dice) {
  const bool large = dice.chance(10);
  const index_t m = dice.extent(large ? 150 : 20), n = dice.extent(large ? 150 : 40),
                k = dice.extent(large ? 900 : 200);
  const fuzz::array x = codes(dice, m * k), w = codes(dice, n * k), x_before = x, w_before = w;
  fuzz::array y(dice, m * n, 1), want = y;
  std::vector<double> w_scales;
  for (index_t c = dice.chance(2) ? 1 : n; c > 0; --c) w_scales.push_back(draw_scale(dice, -8));
  std::vector<float> bias = dice.chance(3) ? std::vector<float>{} : dice.numbers(n);
  const torch::linear_parameters p{
      draw_scale(dice, -4), static_cast<std::int32_t>(dice.chance(6) ? dice.within(-400, 700) : dice.within(0, 255)),
      w_scales, draw_scale(dice, static_cast<int>(dice.within(-7, 3))),
      static_cast<std::int32_t>(dice.chance(3) ? dice.one_of(0, 255) : dice.within(0, 255))};
  const index_t threads = dice.chance(2) ? 1 : dice.within(2, 5);
  INFO(m, " x ", n, " x ", k, ", ", w_scales.size(), " scales, ", bias.size(), " biases, zero points ", p.x_zero_point,
       " and ", p.y_zero_point, ", threads ", threads);
  const std::span<const std::uint8_t> x_span(x.data(), static_cast<std::size_t>(m * k));
  const std::span<const std::int8_t> w_span(reinterpret_cast<const std::int8_t*>(w.data()),
                                            static_cast<std::size_t>(n * k));
  const std::span<std::uint8_t> y_span(y.data(), static_cast<std::size_t>(m * n));
  if (threads > 1)
    torch::quantized_linear(x_span, w_span, m, n, k, bias, p, y_span, pool::threads(threads));
  else
    torch::quantized_linear(x_span, w_span, m, n, k, bias, p, y_span);
  for (index_t r = 0; r < m; ++r)
    for (index_t c = 0; c < n; ++c) {
      std::int32_t sum = 0;
      for (index_t i = 0; i < k; ++i)
        sum += (static_cast<std::int32_t>(x_span[static_cast<std::size_t>(r * k + i)]) - p.x_zero_point) *
               w_span[static_cast<std::size_t>(c * k + i)];
      volatile float s = static_cast<float>(w_scales[w_scales.size() == 1 ? 0 : static_cast<std::size_t>(c)]);
      s = static_cast<float>(p.x_scale) * s;
      volatile float v = static_cast<float>(sum);
      volatile float shift = bias.empty() ? 0.f : bias[static_cast<std::size_t>(c)] / s;
      v = v + shift;
      s = s / static_cast<float>(p.y_scale);
      v = v * s;
      const double q = is_nan(v) ? 0.0 : std::nearbyint(static_cast<double>(v)) + p.y_zero_point;
      const auto code = static_cast<std::uint32_t>(std::clamp(q, 0.0, 255.0));
      INFO("output ", r, ", ", c, " of sum ", sum, " is ", y.get(r * n + c, 8), ", not ", code);
      REQUIRE(y.get(r * n + c, 8) == code);
      want.set(r * n + c, 8, code);
    }
  REQUIRE(y == want);
  REQUIRE(x == x_before);
  REQUIRE(w == w_before);
}

}  // namespace

TEST_CASE("torch: quantized::linear") { fuzz::each_case(400, linear); }
