// Conversions from and to memory of matrices of any width: rows of whole cache lines, and rows that begin inside them.
// SPDX-License-Identifier: BSD-3-Clause
//
// The argument is the number of columns; every matrix has about 2^26 elements. Best times of several runs compare:
//   taskset -c 1 build-bench/bench/widths --benchmark_repetitions=5
#include <benchmark/benchmark.h>

#include <qtensor/kernels.hpp>
#include <string>
#include <type_traits>

#include "memory.hpp"

namespace {

namespace qt = qtensor;
using qt::bf16, qt::f32, qt::index_t;

constexpr index_t elements = index_t{1} << 26, slack = 1 << 16;

/// Numbers of a normal distribution, where they are encoded to, and where they are decoded to: one set for all.
struct arena {
  bench::pages floats{4 * elements}, halves{2 * elements}, codes{elements + slack}, scales{4 * elements / 16 + slack},
      numbers{4 * elements};
  arena() {
    std::mt19937 random(1);
    std::normal_distribution<float> normal;
    constexpr index_t period = 1 << 20;
    for (index_t i = 0; i < elements; ++i)
      floats.as<float>()[i] = i < period ? normal(random) : floats.as<float>()[i - period];
    for (index_t i = 0; i < elements; ++i)
      halves.as<std::uint16_t>()[i] = qt::encode<bf16, qt::nearest_even>(floats.as<float>()[i]);
  }
  static const arena& instance() {
    static const arena all;
    return all;
  }
};

template <class S>
qt::tensor_span<S> codes_of(index_t rows, index_t cols) {
  using span = qt::tensor_span<S>;
  typename span::arrays memory;
  memory.codes = arena::instance().codes.as<typename span::code_unit>();
  memory.scales = arena::instance().scales.as<qt::detail::unit_t<typename S::scale_format>>();
  return span{typename span::shape_type{qt::extents(rows, cols), {}, {}}, memory};
}
template <class F>
auto numbers_of(index_t rows, index_t cols) {
  const qt::matrix_extents extents(rows, cols);
  if constexpr (std::is_same_v<F, f32>)
    return qt::source(static_cast<const float*>(arena::instance().floats.as<float>()), extents);
  else
    return qt::source<F>(static_cast<const std::uint16_t*>(arena::instance().halves.as<std::uint16_t>()), extents);
}

enum class way { quantize, with_given_scales, dequantize };

template <class S, class F, way Way>
void convert(benchmark::State& state) {
  const index_t cols = state.range(0), rows = elements / cols;
  const auto codes = codes_of<S>(rows, cols);
  const auto numbers = numbers_of<F>(rows, cols);
  qt::quantize_into(codes, numbers);
  auto* out = arena::instance().numbers.as<qt::storage_t<F>>();
  for (auto _ : state) {
    if constexpr (Way == way::quantize)
      qt::quantize_into(codes, numbers);
    else if constexpr (Way == way::with_given_scales)
      qt::quantize_static_into(codes, numbers);
    else
      qt::dequantize_into<F>(qt::tensor_view<S>(codes), out, {cols, 1});
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * rows * cols);
}

template <class S, class F, way Way>
void add(const std::string& name) {
  const std::string number = std::is_same_v<F, f32> ? "f32" : "bf16";
  const std::string title = Way == way::dequantize ? name + " -> " + number : number + " -> " + name;
  auto* b = benchmark::RegisterBenchmark((title + (Way == way::with_given_scales ? ", given scales" : "")).c_str(),
                                         convert<S, F, Way>);
  b->Unit(benchmark::kMillisecond)->UseRealTime();
  for (const index_t cols : {8192, 8190, 4104, 2001}) b->Arg(cols);
}

template <class S>
void add_scheme(const std::string& name) {
  add<S, f32, way::quantize>(name), add<S, bf16, way::quantize>(name);
  add<S, f32, way::with_given_scales>(name), add<S, bf16, way::with_given_scales>(name);
  add<S, f32, way::dequantize>(name), add<S, bf16, way::dequantize>(name);
}

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  add_scheme<qt::int8_per_channel<0>>("int8 row");
  add_scheme<qt::int8_per_channel<1>>("int8 column");
  add_scheme<qt::scheme<qt::int4, qt::per_channel<1>>>("int4 column");
  add_scheme<qt::scheme<qt::e4m3, qt::per_channel<1>>>("e4m3 column");
  add_scheme<qt::mxfp8_e4m3>("mxfp8_e4m3");
  add_scheme<qt::fp8_block<128, 128>>("e4m3 blocks of 128 x 128");
  benchmark::RunSpecifiedBenchmarks();
}
