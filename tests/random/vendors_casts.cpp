// ONNX's Cast and DynamicQuantizeLinear, element by element as NUMERICS 8 says.
// SPDX-License-Identifier: BSD-3-Clause
#include <cmath>
#include <qtensor/compat/onnx.hpp>

#include "onnx_array.hpp"

using namespace qtensor;
using namespace fuzz::onnx_arrays;
namespace onnx = qtensor::compat::onnx;

namespace {

template <format From, format To, policy... P>
void one_cast(fuzz::dice& dice) {
  const index_t n = dice.extent(3000);
  flat<From> x = draw_codes<From>(dice, n);
  if (From::bits > 8 && dice.chance(2)) {
    const std::vector<float> numbers = dice.numbers(n);
    for (index_t i = 0; i < n; ++i) x.set(i, encode<From, to_special>(numbers[static_cast<std::size_t>(i)]));
  }
  flat<To> y(n), want(n);
  std::fill(y.units.begin(), y.units.end(), onnx::unit<To>(7));
  INFO(std::string(From::name), " to ", std::string(To::name), ", ", n);
  onnx::cast<From, To, P...>(x.span(), n, std::span(y.units));
  for (index_t i = 0; i < n; ++i) {
    want.set(i, onnx::cast_code<From, To, P...>(x[i]));
    if (y[i] != want[i]) {
      INFO("element ", i, " of code ", x[i], " is ", y[i], ", not ", want[i]);
      REQUIRE(false);
    }
  }
  REQUIRE(y.units == want.units);
}

void dynamic_codes(fuzz::dice& dice) {
  const matrix_extents shape(dice.extent(60), dice.extent(1500));
  const std::vector<float> x = dice.numbers(shape.size());
  const auto t = onnx::dynamic_quantize_linear(source(x.data(), shape));
  INFO(shape[0], " x ", shape[1]);
  float low = 0.f, high = 0.f;
  bool finite = true;
  for (const float v : x) finite = finite && is_finite(v), low = std::min(low, v), high = std::max(high, v);
  if (shape.size() == 0) return;
  if (!finite) {
    REQUIRE(is_nan(t.scales()[0]));
    REQUIRE(std::all_of(t.codes().begin(), t.codes().end(), [](auto c) { return c == 0; }));
    return;
  }
  volatile float s = high - low;
  s = s / 255.f;
  if (low == high) s = 1.f;
  if (!(s >= std::numeric_limits<float>::min() && is_finite(s))) return;  // the library's own rule at the ends
  volatile float q = low / s;
  q = 0.f - q;
  const double zero = std::clamp(std::nearbyint(static_cast<double>(q)), 0.0, 255.0);
  REQUIRE(bits_of(t.scales()[0]) == bits_of(s));
  REQUIRE(static_cast<double>(t.zero_points()[0]) == zero);
  for (std::size_t i = 0; i < x.size(); ++i) {
    volatile float v = x[i] / s;
    REQUIRE(static_cast<double>(t.codes()[i]) == std::clamp(std::nearbyint(static_cast<double>(v)) + zero, 0.0, 255.0));
  }
}

}  // namespace

TEST_CASE("ONNX: Cast") {
  fuzz::each_case(300, [](fuzz::dice& dice) {
    fuzz::one_case_of(dice, &one_cast<f32, int4>, &one_cast<int4, e4m3>, &one_cast<f16, e5m2fnuz, to_special>,
                      &one_cast<bf16, e2m1>, &one_cast<uint2, f16>, &one_cast<f32, e8m0, onnx::round_nearest>,
                      &one_cast<e2m1, uint4>, &one_cast<f32, uint2, toward_zero, onnx::wraps>, &one_cast<e5m2, bf16>);
  });
}
TEST_CASE("ONNX: DynamicQuantizeLinear") { fuzz::each_case(100, dynamic_codes); }
