// Speed of products, beside the peak of their instructions and the reading of their weights in the same run.
// SPDX-License-Identifier: BSD-3-Clause
//
//   taskset -c 1 bench/products --benchmark_out=products.json && python3 bench/products_report.py products.json
#include "products.hpp"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <qtensor/simd/gemm_int8.hpp>
#include <qtensor/simd/ops_amx.hpp>
#include <qtensor/simd/ops_bf16_dot.hpp>

#include "context.hpp"

namespace bench {

namespace {

namespace simd = qtensor::simd;
using arch = simd::best_arch;

// Chains of one instruction, as many as hide its latency; of several, as many as leave registers for operands.
constexpr index_t chains = simd::lanes<arch> == 16 ? 20 : 12, longer_chains = 8, rounds = 20000;

/// Matrix registers hold no more than two by two squares with their operands: the peak is that of these, read from the
/// first cache. `dot` adds registers X times W to T, Depth numbers of a row and a column.
template <class Unit, index_t Depth, class Dot>
double square_operations(Dot dot) {
  alignas(64) std::uint8_t bytes[4 * 1024];
  for (std::size_t i = 0; i < sizeof bytes; ++i) bytes[i] = static_cast<std::uint8_t>(77 * i);
  const typename Unit::session session;
  Unit::settle();
  for (index_t i = 0; i < rounds; ++i) {
    Unit::template load<4>(bytes, 64);
    Unit::template load<5>(bytes + 1024, 64);
    Unit::template load<6>(bytes + 2048, 64);
    Unit::template load<7>(bytes + 3072, 64);
    dot.template operator()<0, 4, 6>();
    dot.template operator()<1, 4, 7>();
    dot.template operator()<2, 5, 6>();
    dot.template operator()<3, 5, 7>();
  }
  return 2. * 4 * 16 * 16 * Depth * rounds;
}
/// Sums each take `step` again and again, which is so many operations. (By value: g++ would read what it refers to
/// anew.)
template <class Sum, index_t Chains = chains, class Step>
double chain_operations(double operations, Step step) {
  typename Sum::value_type starts[Chains] = {};
  benchmark::DoNotOptimize(starts);  // chains that began alike would be one
  Sum sum[Chains];
  simd::detail::repeat<Chains>([&](auto c) __attribute__((always_inline)) { sum[c] = Sum(starts[c]); });
  for (index_t i = 0; i < rounds; ++i)
    simd::detail::repeat<Chains>([&](auto c) __attribute__((always_inline)) {
      Sum next = step(sum[c]);
#if defined(__x86_64__)
      asm("" : "+v"(next.data));  // g++ 16 otherwise moves sums from register to register
#endif
      sum[c] = next;
    });
  Sum all = sum[0];  // an array that somebody looks at would stay in memory
  simd::detail::repeat<Chains - 1>([&](auto c) __attribute__((always_inline)) { all = all + sum[c + 1]; });
  benchmark::DoNotOptimize(all);
  return operations * Chains * rounds;
}
#if defined(__x86_64__)
/// Dots of several instructions, none of which may leave the chain: what a step multiplies, the compiler does not know.
template <class Dot, class Weights>
double pair_operations(const Weights& w, const typename Dot::unit* row) {
  const auto four = Dot::broadcast(row);
  return chain_operations<simd::ints<arch>, longer_chains>(
      2. * 4 * simd::lanes<arch>, [&](const auto& sum) __attribute__((always_inline)) {
        auto x = four;
        asm("" : "+x"(x.even), "+x"(x.odd));
        return Dot::dot(sum, w, x);
      });
}
#endif
/// VNNI and NEON dot: one instruction. AVX2 without: four for 32 products, two additions of 16 bits, vpmaddwd and an
/// addition of 32 bits, as sum_dot has it; four vector units, as those of Zen 3, take a cycle: 64 operations, 207 Gop/s
/// at 3.24 GHz. SSE4.2, and AVX-512 without VNNI: four as well, twice a multiplication and an addition.
template <class Dot = simd::quad_dot<arch>>
double vector_operations() {
  alignas(64) std::int8_t weights[4 * simd::lanes<arch>] = {1, 2, 3};
  typename Dot::unit row[4] = {1, 2, 3, 4};
  benchmark::DoNotOptimize(row);
  const auto w = Dot::load(weights);
  const auto x = Dot::broadcast(row);
  if constexpr (simd::sum_dot<arch>::exists)
    return pair_operations<simd::sum_dot<arch>>(w, row);
  else if constexpr (requires { w.even; })
    return pair_operations<Dot>(w, row);
  else
    return chain_operations<simd::ints<arch>>(
        2. * 4 * simd::lanes<arch>, [=](const auto& sum)
                                        __attribute__((always_inline)) { return Dot::dot(sum, w, x); });
}
template <class Unit = simd::square_unit<arch>>
double integer_operations() {
  if constexpr (Unit::exists)
    if (simd::uses_squares<arch>())
      return square_operations<Unit, 64>([]<int T, int X, int W>() { Unit::template dot<T, X, W>(); });
  return vector_operations();
}
double float_operations() {
  float one = 1.0f;
  benchmark::DoNotOptimize(one);
  const simd::floats<arch> w(one), x(one);
  return chain_operations<simd::floats<arch>>(
      2. * simd::lanes<arch>, [=](const auto& sum) __attribute__((always_inline)) { return simd::fma(x, w, sum); });
}
#if defined(__AVX512BF16__)
double bf16_vector_operations() {
  __m512i ones = _mm512_set1_epi32(0x3f803f80);
  benchmark::DoNotOptimize(ones);
  return chain_operations<simd::floats<arch>>(
      2. * 32, [=](const auto& sum) __attribute__((always_inline)) {
        return simd::floats<arch>(_mm512_dpbf16_ps(sum.data, (__m512bh)ones, (__m512bh)ones));
      });
}
#else
double bf16_vector_operations() { return 0.; }
#endif
template <class Unit = simd::square_unit<arch>>
double bf16_operations() {
  if constexpr (Unit::exists)
    if (simd::uses_squares<arch>())
      return square_operations<Unit, 32>([]<int T, int X, int W>() { Unit::template dot_bf16<T, X, W>(); });
  return simd::takes_bf16_dots<arch>() ? bf16_vector_operations() : float_operations();
}

double seconds(const std::function<void()>& run) {
  const auto start = std::chrono::steady_clock::now();
  run();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Operations a second at best, measured again beside every product; the best of the whole run so far counts.
double peak(bound by) {
  static double bests[5] = {};
  double& best = bests[static_cast<int>(by)];
  double operations = 0.;
  for (int i = 0; i < 5; ++i) {
    const double s = seconds([&] {
      operations = by == bound::integer_dot       ? integer_operations()
                   : by == bound::integer_vectors ? vector_operations()
                   : by == bound::bf16_dot        ? bf16_operations()
                                                  : float_operations();
    });
    best = std::max(best, operations / s);
  }
  return best;
}

/// Seconds for reading as many bytes as the weights have, from where they are.
double reading(double bytes, index_t copies) {
  static array<std::uint32_t> memory;
  const auto words = static_cast<std::size_t>(bytes / 4);
  if (memory.size() < words * static_cast<std::size_t>(copies))
    memory.assign(words * static_cast<std::size_t>(copies), 1);
  const auto read = [&](index_t copy) {
    simd::words<arch> sum[8];
    for (auto& s : sum) s = simd::words<arch>(0u);
    const std::uint32_t* from = memory.data() + words * static_cast<std::size_t>(copy);
    constexpr index_t step = simd::lanes<arch>;
    for (index_t i = 0; i + 8 * step <= static_cast<index_t>(words); i += 8 * step)
      simd::detail::repeat<8>([&](auto c) __attribute__((always_inline)) {
        sum[c] = sum[c] | simd::load<arch>(from + i + c * step);
      });
    for (auto& s : sum) benchmark::DoNotOptimize(s);
  };
  const index_t times = copies > 1 ? copies : std::max<index_t>(1, static_cast<index_t>(2e7 / bytes));
  static std::map<std::pair<double, index_t>, double> bests;
  double& best = bests.try_emplace({bytes, copies}, 1e9).first->second;
  for (int i = 0; i < 6; ++i)
    best = std::min(best, seconds([&] {
                            for (index_t c = 0; c < times; ++c) read(c % copies);
                          }) / static_cast<double>(times));
  return best;
}

}  // namespace

void add_candidate(const product& p, const std::string& who, run_product run) {
  const double operations = 2. * static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k);
  benchmark::RegisterBenchmark((title(p) + "/" + who).c_str(), [p, operations, run](benchmark::State& state) {
    index_t copy = 0;
    double best = 1e9;
    run(copy);
    const index_t times = p.copies > 1 ? p.copies : std::max<index_t>(1, static_cast<index_t>(3e7 / operations));
    for (auto _ : state) {
      const double s = seconds([&] {
        for (index_t i = 0; i < times; ++i) run(copy = (copy + 1) % p.copies);
      });
      best = std::min(best, s / static_cast<double>(times));
    }
    state.counters["Gop/s"] = operations / best * 1e-9;
    state.counters["us"] = best * 1e6;
    if (p.by == bound::reading)
      state.counters["of_bound"] = reading(p.weight_bytes, p.copies) / best;
    else
      state.counters["of_bound"] = operations / best / peak(p.by);
    state.counters["reads"] = p.by == bound::reading ? 1 : 0;
  })->MinTime(0.3);
}

}  // namespace bench

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  std::string libraries;
  [[maybe_unused]] const auto add_library = [&](const std::string& version) {
    libraries += (libraries.empty() ? "" : ", ") + version;
  };
#if defined(BENCH_ONEDNN)
  add_library(bench::onednn_version());
#endif
#if defined(BENCH_ONNXRUNTIME)
  add_library(bench::onnxruntime_version());
#endif
#if defined(BENCH_GGML)
  add_library(bench::ggml_version());
#endif
  bench::add_context(BENCH_COMPILER, libraries);
  bench::add_integer_products();
  bench::add_weight_products();
  bench::add_convolutions();
#if defined(BENCH_ONEDNN)
  bench::add_onednn_products();
#endif
#if defined(BENCH_ONNXRUNTIME)
  bench::add_onnxruntime_products();
#endif
#if defined(BENCH_GGML)
  bench::add_ggml_products();
#endif
  benchmark::RunSpecifiedBenchmarks();
}
