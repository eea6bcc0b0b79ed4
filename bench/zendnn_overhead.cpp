// What a call of compat::zendnn::reorder costs above the bare kernel, on few elements: at most 50 ns on 64.
// SPDX-License-Identifier: BSD-3-Clause
//
// Both halves of a pair run in one process; compare their times. For bf16 the bare side is the same widening loop and
// the same kernel. Run pinned to a core: taskset -c 1 build-bench/bench/zendnn_overhead
#include <benchmark/benchmark.h>

#include <qtensor/compat/zendnn.hpp>
#include <vector>

namespace {

namespace qt = qtensor;
namespace zen = qtensor::compat::zendnn;

struct data {
  explicit data(const benchmark::State& state)
      : n(state.range(0)), x(static_cast<std::size_t>(n)), half(x.size()), codes(x.size()) {
    for (std::size_t i = 0; i < x.size(); ++i) {
      x[i] = static_cast<float>(i % 101) - 50.f;
      half[i] = static_cast<std::uint16_t>(qt::bits_of(x[i]) >> 16);
    }
    benchmark::DoNotOptimize(this);  // it escapes: ClobberMemory makes the loops read scale and zero point again
  }
  qt::index_t n;
  std::vector<float> x;
  std::vector<std::uint16_t> half;
  std::vector<std::int8_t> codes;
  float scale = 0.5f;
  std::int32_t zero_point = 3;
};

zen::lowoha_reorder_params_t params_of(const data& d, zen::data_type_t from, zen::data_type_t to) {
  zen::lowoha_reorder_params_t p;
  p.dtypes = {from, to};
  p.quant_params.scale = {&d.scale, zen::data_type_t::f32, {}};
  p.quant_params.zero_point = {&d.zero_point, zen::data_type_t::s32, {}};
  return p;
}

void run(benchmark::State& state, const zen::lowoha_reorder_params_t& p, const void* src, void* dst) {
  for (auto _ : state) {
    if (zen::reorder(src, dst, static_cast<std::size_t>(state.range(0)), p) != zen::status_t::success)
      state.SkipWithError("refused");
    benchmark::ClobberMemory();
  }
}

void f32_to_s8_kernel(benchmark::State& state) {
  data d(state);
  for (auto _ : state) {
    qt::simd::encode_uniform<zen::s8>(d.x.data(), d.n, qt::element_scale{d.scale}, d.zero_point, d.codes.data());
    benchmark::ClobberMemory();
  }
}
void f32_to_s8_reorder(benchmark::State& state) {
  data d(state);
  run(state, params_of(d, zen::data_type_t::f32, zen::data_type_t::s8), d.x.data(), d.codes.data());
}

void bf16_to_s8_kernel(benchmark::State& state) {
  data d(state);
  using arch = qt::simd::best_arch;
  for (auto _ : state) {
    for (qt::index_t i = 0; i + qt::simd::lanes<arch> <= d.n; i += qt::simd::lanes<arch>)
      qt::simd::store(d.x.data() + i, qt::simd::from_bf16::load<arch>(d.half.data() + i));
    qt::simd::encode_uniform<zen::s8>(d.x.data(), d.n, qt::element_scale{d.scale}, d.zero_point, d.codes.data());
    benchmark::ClobberMemory();
  }
}
void bf16_to_s8_reorder(benchmark::State& state) {
  data d(state);
  run(state, params_of(d, zen::data_type_t::bf16, zen::data_type_t::s8), d.half.data(), d.codes.data());
}

void s8_to_f32_kernel(benchmark::State& state) {
  data d(state);
  for (auto _ : state) {
    qt::simd::decode_uniform<zen::s8>(d.codes.data(), d.n, qt::element_scale{d.scale}, d.zero_point, d.x.data());
    benchmark::ClobberMemory();
  }
}
void s8_to_f32_reorder(benchmark::State& state) {
  data d(state);
  run(state, params_of(d, zen::data_type_t::s8, zen::data_type_t::f32), d.codes.data(), d.x.data());
}

BENCHMARK(f32_to_s8_kernel)->Arg(64)->Arg(1 << 16);
BENCHMARK(f32_to_s8_reorder)->Arg(64)->Arg(1 << 16);
BENCHMARK(bf16_to_s8_kernel)->Arg(64)->Arg(1 << 16);
BENCHMARK(bf16_to_s8_reorder)->Arg(64)->Arg(1 << 16);
BENCHMARK(s8_to_f32_kernel)->Arg(64)->Arg(1 << 16);
BENCHMARK(s8_to_f32_reorder)->Arg(64)->Arg(1 << 16);

}  // namespace

BENCHMARK_MAIN();
