// Mirrors include/qtensor/ops/calibrate.hpp.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/ops/calibrate.hpp>

#include "check.hpp"

using namespace qtensor;

TEST_CASE("range_calibrator: batches join to what one tensor of them all would compute") {
  const std::vector<float> x = check::numbers(600, 4, false);
  range_calibrator seen;
  for (int batch = 0; batch < 3; ++batch) seen.add(source(x.data() + batch * 200, extents(200)));
  const auto all = source(x.data(), extents(600));
  CHECK(seen.parameters<int8_per_tensor>().scale == quantize<int8_per_tensor>(all).scales()[0]);
  const auto affine = quantize<uint8_per_tensor>(all);
  CHECK(seen.parameters<uint8_per_tensor>().scale == affine.scales()[0]);
  CHECK(seen.parameters<uint8_per_tensor>().zero_point == affine.zero_points()[0]);
  CHECK(check::same_bytes(quantize<int8_per_tensor>(all, seen.parameters<int8_per_tensor>().scale),
                          quantize<int8_per_tensor>(all)));
}

TEST_CASE("range_calibrator: infinities and NaN are left out and counted; no data is a range of zeros") {
  const float x[] = {1.f, -3.f, infinity, quiet_nan, 2.f};
  range_calibrator seen;
  CHECK(seen.parameters<int8_per_tensor>().scale == 1.f);
  seen.add(source(x, extents(5)));
  CHECK(seen.amax() == 3.f);
  CHECK(seen.low() == -3.f);
  CHECK(seen.high() == 2.f);
  CHECK(seen.ignored() == 2);
}

TEST_CASE("range_calibrator: runs of any length are what their elements are, one after the other") {
  using peaks = scheme<int4, per_tensor, peak_scale>;
  using ignoring = scheme<int8, per_tensor, block_ignores>;
  for (std::size_t n = 1; n <= 1100; n += n < 80 ? 1 : 51)
    for (const bool special : {false, true}) {
      std::vector<float> x = check::numbers(static_cast<int>(n), static_cast<unsigned>(n), special);
      if (n % 3 == 0) x.back() = -1000.f;  // the first of the largest magnitudes counts, here with a minus
      if (n % 3 == 1) x[n / 2] = -x[n / 5];
      range_calibrator seen;
      reference::block_statistics all;
      index_t ignored = 0;
      for (int batch = 0; batch < 2; ++batch) {
        seen.add(source(x.data(), extents(static_cast<index_t>(n))));
        for (float v : x) all.add<ignoring>(v), ignored += is_finite(v) ? 0 : 1;
      }
      CHECK(seen.amax() == float_of(all.amax_bits));
      CHECK(bits_of(seen.low()) == bits_of(all.low));
      CHECK(bits_of(seen.high()) == bits_of(all.high));
      CHECK(seen.ignored() == ignored);
      CHECK(seen.parameters<peaks>().scale == decode<f32>(reference::parameters_of<peaks>(all).scale_code));
    }
}

TEST_CASE("magnitude_histogram: percentiles are bucket edges, at most 1/512 above the exact one") {
  std::vector<float> x(1000);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = (i % 2 == 0 ? 1.f : -1.f) * static_cast<float>(i + 1);
  magnitude_histogram seen;
  seen.add(source(x.data(), extents(500)));
  seen.add(source(x.data() + 500, extents(500)));
  CHECK(seen.count() == 1000);
  CHECK(seen.amax() == 1000.f);
  for (double fraction : {0.001, 0.25, 0.5, 0.9, 0.99, 0.999, 1.0}) {
    const double exact = 1000 * fraction, got = seen.percentile(fraction);
    INFO(fraction);
    CHECK(got >= exact);
    CHECK(got <= exact * (1 + 1.0 / 512) + 1e-9);
  }
  CHECK(seen.percentile(1.0) == 1000.f);
  CHECK_THROWS_AS(seen.percentile(0.0), error);
  CHECK_THROWS_AS(seen.percentile(1.5), error);
}

TEST_CASE("magnitude_histogram: the least-square clip of int4 data with one outlier beats keeping the outlier") {
  std::vector<float> x = check::numbers(4096, 8, false);
  for (float& v : x) v = v > 0 ? 0.5f + v / 300.f : -0.5f + v / 300.f;
  x[100] = 8.f;
  magnitude_histogram seen;
  seen.add(source(x.data(), extents(4096)));
  using int4_tensor = scheme<int4, per_tensor>;
  const float clip = seen.least_square_clip<int4_tensor>();
  CHECK(clip < 8.f);
  const auto loss = [&](float c) {
    const float s = magnitude_histogram::scale_for<int4_tensor>(c);
    double sum = 0;
    for (float v : x) {
      const double e = static_cast<double>(v) -
                       static_cast<double>(dequantize_element<int4_tensor>(quantize_element<int4_tensor>(v, {s}), {s}));
      sum += e * e;
    }
    return sum;
  };
  CHECK(loss(clip) < loss(8.f));
  // No candidate is better by more than the histogram's own width.
  for (int k = 1; k <= 128; ++k) CHECK(loss(clip) <= loss(8.f * (static_cast<float>(k) / 128.f)) * 1.02);
}

TEST_CASE("magnitude_histogram: zeros only, nothing at all") {
  const float zeros[8] = {};
  magnitude_histogram seen;
  CHECK(seen.percentile(0.5) == 0.f);
  CHECK(seen.least_square_clip<int8_per_tensor>() == 0.f);
  seen.add(source(zeros, extents(8)));
  CHECK(seen.percentile(1.0) == 0.f);
  CHECK(seen.least_square_clip<int8_per_tensor>() == 0.f);
}
