// Mirrors include/qtensor/compat/torch_linear.hpp.
// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <qtensor/compat/torch_linear.hpp>
#include <vector>

namespace torch = qtensor::compat::torch;

TEST_CASE("quantized_linear: by hand, with a bias, a zero point on both sides, and saturation") {
  const std::vector<std::uint8_t> x = {11, 9, 10, 200};
  const std::vector<std::int8_t> w = {1, 2, -3, 4, -128, 127};
  const double scales[] = {0.5, 0.25, 1.};
  const std::vector<float> bias = {1.f, 0.f, -0.5f};
  std::vector<std::uint8_t> y(6, 77);
  // x - 10: {1, -1}, {0, 190}
  torch::quantized_linear(x, w, 2, 3, 2, bias, {0.5, 10, scales, 0.25, 3}, y);
  // (-1 + 1 / .25) * 1 + 3; (-7) * .5 = -3.5 -> -4 + 3 -> 0; (-255 - 1) * 2 -> 0
  CHECK(y[0] == 6);
  CHECK(y[1] == 0);
  CHECK(y[2] == 0);
  // (380 + 4) + 3 -> 255; 760 * .5 + 3 -> 255; 255
  CHECK(y[3] == 255);
  CHECK(y[4] == 255);
  CHECK(y[5] == 255);
  const double one[] = {0.03125};
  torch::quantized_linear(x, w, 2, 3, 2, {}, {0.5, 10, one, 0.25, 128}, y);
  CHECK(y[4] == 128 + 48);  // 760 / 16 = 47.5, ties to even
}
TEST_CASE("quantized_linear: what does not fit is refused before anything is written") {
  const std::vector<std::uint8_t> x(4);
  const std::vector<std::int8_t> w(6);
  std::vector<std::uint8_t> y(6, 77);
  const double one[] = {1.}, two[] = {1., 1.}, zero[] = {0.};
  CHECK_THROWS_WITH(torch::quantized_linear(x, w, 2, 3, 3, {}, {1., 0, one, 1., 0}, y),
                    "qtensor: x has 4 elements; it is 2 by 3.");
  CHECK_THROWS_WITH(torch::quantized_linear(x, w, 2, 3, 2, {}, {1., 0, two, 1., 0}, y),
                    "qtensor: w_scales has 2 elements for 3 outputs; it has 1 or 3.");
  CHECK_THROWS_WITH(torch::quantized_linear(x, w, 2, 3, 2, {}, {1., 0, zero, 1., 0}, y),
                    "qtensor: w_scales is 0; a scale must be finite and positive as a float.");
  CHECK_THROWS_WITH(torch::quantized_linear(x, w, 2, 3, 2, {}, {1., 0, one, 1., 256}, y),
                    "qtensor: y_zero_point is 256; quint8 has 0 to 255.");
  for (const std::uint8_t c : y) CHECK(c == 77);
}
