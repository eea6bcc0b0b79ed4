// Integer convolution, NHWC, to codes and to exact sums.
// SPDX-License-Identifier: BSD-3-Clause
#include <memory>
#include <qtensor/ops/convolution_sinks.hpp>
#include <qtensor/scheme/schemes.hpp>

#include "products.hpp"

namespace bench {

void add_convolutions() {
  using namespace qtensor;
  constexpr index_t side = 56, channels = 64, taps = 3;
  const convolution_plan plan =
      plan_convolution({"NHWC", {1, side, side, channels}}, {"OHWI", {channels, taps, taps, channels}},
                       {{1, 1}, {1, 1}, {}, {1, 1}, {1, 1}, 1});
  struct state {
    array<std::int8_t> x, w, y;
    array<std::int32_t> sums;
    array<float> scales, bias;
    std::unique_ptr<packed_convolution<>> weights;
  };
  auto s = std::make_shared<state>();
  std::mt19937 random(1);
  s->x.resize(side * side * channels);
  s->w.resize(channels * taps * taps * channels);
  s->y.resize(s->x.size());
  s->sums.resize(s->x.size());
  for (auto* v : {&s->x, &s->w})
    for (auto& c : *v) c = static_cast<std::int8_t>(random());
  s->scales.assign(channels, 0.001f);
  s->bias.assign(channels, 0.5f);
  s->weights =
      std::make_unique<packed_convolution<>>(plan, convolution_weights{s->w.data(), simd::code_sign::is_signed, {}});
  const convolution_input input{s->x.data(), simd::code_sign::is_signed, 3};
  const product p{"conv 56x56x64 k3", side * side, channels, taps * taps * channels, bound::integer_dot};
  add_candidate(p, "qtensor s32",
                [=](index_t) { convolve_into(*s->weights, input, result_in(s->sums.data(), plan.result("NHWC"))); });
  add_candidate(p, "qtensor bias and int8", [=](index_t) {
    const convolution_scales how{0.02f, s->scales, s->bias, {}};
    convolve_into<scheme<int8, per_tensor, zero_point<int8>, static_only>>(*s->weights, input, how, 0.4f, -3,
                                                                           result_in(s->y.data(), plan.result("NHWC")));
  });
}

}  // namespace bench
