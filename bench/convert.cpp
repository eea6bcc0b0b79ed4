// Speed of conversions between floats and codes through the pointer API, beside a memcpy of the same floats.
// SPDX-License-Identifier: BSD-3-Clause
//
// The argument is the size of the float side in KiB: inside the first-level cache, inside the second, in memory. Compare
// items_per_second (elements). Run pinned to a core: taskset -c 1 build-bench/bench/convert
#include <qtensor/kernels.hpp>

#include <benchmark/benchmark.h>

#include <cstring>
#include <vector>

namespace {

namespace qt = qtensor;

constexpr qt::index_t cols = 1024;

/// Numbers of both signs over a few binades, the same in every run.
std::vector<float> numbers(qt::index_t n) {
  std::vector<float> x(static_cast<std::size_t>(n));
  std::uint32_t state = 1;
  for (float& v : x) {
    state = state * 1664525u + 1013904223u;
    v = static_cast<float>(static_cast<std::int32_t>(state)) * 0x1p-30f;
  }
  return x;
}

/// Rows of `cols` floats that fill the benchmark's argument in KiB.
qt::index_t rows_of(const benchmark::State& state) { return state.range(0) * 1024 / static_cast<qt::index_t>(sizeof(float)) / cols; }

void count_elements(benchmark::State& state) { state.SetItemsProcessed(state.iterations() * rows_of(state) * cols); }

void copy(benchmark::State& state) {
  const std::vector<float> from = numbers(rows_of(state) * cols);
  std::vector<float> to(from.size());
  for (auto _ : state) {
    std::memcpy(to.data(), from.data(), from.size() * sizeof(float));
    benchmark::ClobberMemory();
  }
  count_elements(state);
}

/// One given scale for all: statistics are not part of the work.
template <class Scheme>
void quantize_static(benchmark::State& state) {
  const std::vector<float> x = numbers(rows_of(state) * cols);
  qt::tensor<Scheme> w(qt::extents(rows_of(state), cols));
  for (auto _ : state) {
    qt::kernels::quantize<Scheme>(x.data(), w.size(), 0.0157f, w.codes().data());
    benchmark::ClobberMemory();
  }
  count_elements(state);
}

template <class Scheme>
void dequantize_static(benchmark::State& state) {
  std::vector<float> x = numbers(rows_of(state) * cols);
  qt::tensor<Scheme> w(qt::extents(rows_of(state), cols));
  qt::kernels::quantize<Scheme>(x.data(), w.size(), 0.0157f, w.codes().data());
  for (auto _ : state) {
    qt::kernels::dequantize<Scheme>(w.codes().data(), w.size(), 0.0157f, x.data());
    benchmark::ClobberMemory();
  }
  count_elements(state);
}

/// Scales by the scheme's own rule.
template <class Scheme>
void quantize_dynamic(benchmark::State& state) {
  const std::vector<float> x = numbers(rows_of(state) * cols);
  qt::tensor<Scheme> w(qt::extents(rows_of(state), cols));
  for (auto _ : state) {
    qt::kernels::quantize<Scheme>(x.data(), w.rows(), w.cols(), w.codes().data(), w.scales().data());
    benchmark::ClobberMemory();
  }
  count_elements(state);
}

template <class Scheme>
void dequantize(benchmark::State& state) {
  std::vector<float> x = numbers(rows_of(state) * cols);
  qt::tensor<Scheme> w(qt::extents(rows_of(state), cols));
  qt::kernels::quantize<Scheme>(x.data(), w.rows(), w.cols(), w.codes().data(), w.scales().data());
  for (auto _ : state) {
    qt::kernels::dequantize<Scheme>(w.codes().data(), w.scales().data(), w.rows(), w.cols(), x.data());
    benchmark::ClobberMemory();
  }
  count_elements(state);
}

void sizes(benchmark::internal::Benchmark* b) { b->Arg(16)->Arg(512)->Arg(256 * 1024); }

BENCHMARK(copy)->Apply(sizes);
BENCHMARK_TEMPLATE(quantize_static, qt::int8_per_tensor)->Apply(sizes);
BENCHMARK_TEMPLATE(dequantize_static, qt::int8_per_tensor)->Apply(sizes);
BENCHMARK_TEMPLATE(quantize_dynamic, qt::int8_per_channel<0>)->Apply(sizes);
BENCHMARK_TEMPLATE(dequantize, qt::int8_per_channel<0>)->Apply(sizes);
BENCHMARK_TEMPLATE(quantize_dynamic, qt::mxfp8_e4m3)->Apply(sizes);
BENCHMARK_TEMPLATE(dequantize, qt::mxfp8_e4m3)->Apply(sizes);
BENCHMARK_TEMPLATE(quantize_dynamic, qt::mxfp4)->Apply(sizes);
BENCHMARK_TEMPLATE(dequantize, qt::mxfp4)->Apply(sizes);

}  // namespace

BENCHMARK_MAIN();
