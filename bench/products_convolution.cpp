// Integer convolutions, NHWC and NCHW, to codes and to exact sums.
// SPDX-License-Identifier: BSD-3-Clause
#include <memory>
#include <qtensor/ops/convolution_sinks.hpp>
#include <qtensor/scheme/schemes.hpp>

#include "products.hpp"

namespace bench {

namespace {

void add(const convolution_problem& c) {
  using namespace qtensor;
  const convolution_layout taps{"OHWI", {c.outputs, c.taps, c.taps, c.group_inputs()}};
  const convolution_options how{{c.stride, c.stride}, {}, {}, {c.padding, c.padding}, {c.padding, c.padding}, c.groups};
  const convolution_plan plan = plan_convolution({"NHWC", {1, c.side, c.side, c.inputs}}, taps, how);
  const convolution_plan planes = plan_convolution({"NCHW", {1, c.inputs, c.side, c.side}}, taps, how);
  const product p = c.as_product();
  struct state {
    array<std::int8_t> x, w, y;
    array<std::int32_t> sums;
    array<float> scales, bias;
    std::unique_ptr<packed_convolution<>> weights, of_planes;
  };
  auto s = std::make_shared<state>();
  std::mt19937 random(1);
  s->x.resize(static_cast<std::size_t>(c.side * c.side * c.inputs));
  s->w.resize(static_cast<std::size_t>(p.n * p.k));
  s->y.resize(static_cast<std::size_t>(p.m * p.n));
  s->sums.resize(s->y.size());
  for (auto* v : {&s->x, &s->w})
    for (auto& code : *v) code = static_cast<std::int8_t>(random());
  s->scales.assign(static_cast<std::size_t>(c.outputs), 0.001f);
  s->bias.assign(static_cast<std::size_t>(c.outputs), 0.5f);
  const convolution_weights codes{s->w.data(), simd::code_sign::is_signed, {}};
  s->weights = std::make_unique<packed_convolution<>>(plan, codes);
  s->of_planes = std::make_unique<packed_convolution<>>(planes, codes);
  const convolution_input input{s->x.data(), simd::code_sign::is_signed, 3};
  add_candidate(p, "qtensor s32",
                [=](index_t) { convolve_into(*s->weights, input, result_in(s->sums.data(), plan.result("NHWC"))); });
  using result_codes = scheme<int8, per_tensor, zero_point<int8>, static_only>;
  add_candidate(p, "qtensor bias and int8", [=](index_t) {
    convolve_into<result_codes>(*s->weights, input, {0.02f, s->scales, s->bias, {}}, 0.4f, -3,
                                result_in(s->y.data(), plan.result("NHWC")));
  });
  add_candidate(p, "qtensor NCHW, s32", [=](index_t) {
    convolve_into(*s->of_planes, input, result_in(s->sums.data(), planes.result("NCHW")));
  });
  add_candidate(p, "qtensor NCHW, bias and int8", [=](index_t) {
    convolve_into<result_codes>(*s->of_planes, input, {0.02f, s->scales, s->bias, {}}, 0.4f, -3,
                                result_in(s->y.data(), planes.result("NCHW")));
  });
}

}  // namespace

void add_convolutions() {
  for (const convolution_problem& c : convolution_problems()) add(c);
}

}  // namespace bench
