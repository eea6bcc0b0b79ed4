// Mirrors include/qtensor/compat/torch_linear.hpp.
// SPDX-License-Identifier: BSD-3-Clause
#include <cmath>
#include <limits>
#include <qtensor/compat/torch_linear.hpp>
#include <vector>

#include "../simd/check.hpp"

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
TEST_CASE("quantized_linear: every element by the definition, with scales and biases of any kind") {
  using qtensor::index_t;
  const index_t sizes[][3] = {{1, 1, 1},     {3, 17, 4},     {6, 64, 9}, {7, 33, 64},
                              {33, 100, 65}, {70, 130, 200}, {2, 9, 0},  {4, 0, 3}};
  for (const auto& [m, n, k] : sizes)
    for (int choice = 0; choice < 16; ++choice) {
      const bool each = (choice & 1) != 0, has_bias = (choice & 2) != 0, special = (choice & 4) != 0;
      std::vector<std::uint8_t> x(static_cast<std::size_t>(m * k));
      std::vector<std::int8_t> w(static_cast<std::size_t>(n * k));
      for (auto& c : x) c = static_cast<std::uint8_t>(check::random_bits()());
      for (auto& c : w) c = static_cast<std::int8_t>(check::random_bits()());
      std::vector<double> scales(static_cast<std::size_t>(each ? n : 1));
      for (auto& s : scales)
        s = (special && check::random_below(2) == 0 ? 1e-36 : 1e-3) * (1 + check::random_below(99));
      std::vector<float> bias(static_cast<std::size_t>(has_bias ? n : 0));
      for (auto& b : bias) b = special ? check::hard_float() : static_cast<float>(check::random_below(2000)) - 1e3f;
      const torch::linear_parameters p{special ? 1e-9 : 0.02, static_cast<std::int32_t>(check::random_below(256)),
                                       scales, (choice & 8) != 0 ? 0.9 : 1e-3,
                                       static_cast<std::int32_t>(check::random_below(256))};
      check::fenced<std::uint8_t> y(m * n);
      torch::quantized_linear(x, w, m, n, k, bias, p, {y.data(), y.data() + y.size()});
      for (index_t r = 0; r < m; ++r)
        for (index_t c = 0; c < n; ++c) {
          const auto at = static_cast<std::size_t>(c);
          std::int32_t sum = 0;
          for (index_t i = 0; i < k; ++i)
            sum += (x[static_cast<std::size_t>(r * k + i)] - p.x_zero_point) * w[static_cast<std::size_t>(c * k + i)];
          const float s = qtensor::rounded(static_cast<float>(p.x_scale) * static_cast<float>(scales[each ? at : 0]));
          const float moved =
              qtensor::rounded(static_cast<float>(sum) + (has_bias ? qtensor::rounded(bias[at] / s) : 0.f));
          const float factor = qtensor::rounded(s / static_cast<float>(p.y_scale));
          const float q = std::nearbyint(qtensor::rounded(moved * factor)) + static_cast<float>(p.y_zero_point);
          CAPTURE(moved);
          CAPTURE(factor);
          REQUIRE(y[r * n + c] == static_cast<std::uint8_t>(q > 255.f ? 255.f : q > 0.f ? q : 0.f));
        }
    }
}
TEST_CASE("quantized_linear: a result without elements, of any number of outputs, takes no time or memory") {
  const double one[] = {1.}, zero[] = {0.};
  const qtensor::index_t huge = qtensor::index_t{1} << 40;
  torch::quantized_linear({}, {}, 0, huge, 0, {}, {1., 0, one, 1., 0}, {});
  CHECK_THROWS_WITH(torch::quantized_linear({}, {}, 0, huge, 0, {}, {1., 0, zero, 1., 0}, {}),
                    "qtensor: w_scales is 0; a scale must be finite and positive as a float.");
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
