// Mirrors include/qtensor/ops/statistics.hpp.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/ops/statistics.hpp>

#include "check.hpp"

using namespace qtensor;

TEST_CASE("compare: max, mean square and SQNR of a small example, by hand") {
  const float x[] = {1.f, -2.f, 3.f, 4.f}, y[] = {1.f, -2.5f, 3.f, 2.f};
  const matrix_ref<const float> a{x, 2, 2, 2, 1}, b{y, 2, 2, 2, 1};
  const error_statistics e = compare(a, b);
  CHECK(e.max_abs == 2.0);
  CHECK(e.mean_square == (0.25 + 4.0) / 4);
  CHECK(e.signal == (1.0 + 4.0 + 9.0 + 16.0) / 4);
  CHECK(e.sqnr_db() == doctest::Approx(10 * std::log10(30.0 / 4.25)));
  CHECK(std::isinf(compare(a, a).sqnr_db()));
}

TEST_CASE("compare: squares that a double does not hold are rounded before they are added") {
  for (int k = 0; k < 100; ++k) {
    float x[3], y[3];
    double noise = 0;
    for (int i = 0; i < 3; ++i) {
      x[i] = 0x1.8p16f + static_cast<float>(3 * k + i) * 0x1.1p-6f;
      y[i] = 0x1.5554p-3f * static_cast<float>((3 * k + i) % 7);
      volatile double difference = static_cast<double>(x[i]) - static_cast<double>(y[i]);
      volatile double square = difference * difference;
      noise += square;
    }
    const matrix_ref<const float> a{x, 1, 3, 3, 1}, b{y, 1, 3, 3, 1};
    REQUIRE(compare(a, b).mean_square == noise / 3);
  }
}

TEST_CASE("compare: NaN in either operand is seen, wherever it stands") {
  for (int at = 0; at < 4; ++at) {
    float x[] = {1.f, 2.f, 3.f, 4.f};
    const float y[] = {1.f, 2.f, 3.f, 4.f};
    x[at] = quiet_nan;
    const matrix_ref<const float> a{x, 1, 4, 4, 1}, b{y, 1, 4, 4, 1};
    CHECK(std::isnan(compare(a, b).max_abs));
    CHECK(std::isnan(compare(b, a).mean_square));
  }
}

TEST_CASE("compare: more bits lose less; sizes must agree; nothing to compare is no error") {
  const std::vector<float> x = check::numbers(40 * 96, 1, false);
  const auto memory = source(x.data(), matrix_extents(40, 96));
  const double sixteen = compare(memory, quantize<scheme<int16, per_tensor>>(memory)).sqnr_db();
  const double eight = compare(memory, quantize<int8_per_channel<0>>(memory)).sqnr_db();
  const double four = compare(memory, quantize<int4_group<32>>(memory)).sqnr_db();
  CHECK(sixteen > eight);
  CHECK(eight > four);
  CHECK(four > 10);
  CHECK(compare(memory, quantize<int8_per_channel<0>, col_major>(memory)).sqnr_db() == doctest::Approx(eight));
  const matrix_ref<const float> a{x.data(), 2, 3, 3, 1}, b{x.data(), 3, 2, 2, 1};
  CHECK_THROWS_WITH_AS(compare(a, b),
                       "qtensor: compare is given 2 x 3 and 3 x 2 elements; both sides need the same size.", error);
  CHECK(compare(matrix_ref<const float>{x.data(), 0, 3, 3, 1}, matrix_ref<const float>{x.data(), 0, 3, 3, 1})
            .mean_square == 0);
}
