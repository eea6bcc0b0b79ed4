// Reductions of int8 matrices beside plain loops and the read roof: sums and maxima, pooling, bodies of one's own.
// SPDX-License-Identifier: BSD-3-Clause
//
// Rates are of the bytes read. Times of one size belong together: run all of it in one process, pinned to a core:
//   taskset -c 1 build-bench/bench/reduce --benchmark_repetitions=5 --benchmark_report_aggregates_only
#include <benchmark/benchmark.h>

#include <cmath>
#include <qtensor/ops/quantize.hpp>
#include <qtensor/ops/reduce_window.hpp>
#include <vector>

namespace {

namespace qt = qtensor;
using qt::index_t;
using i8 = qt::scheme<qt::int8, qt::per_tensor, qt::zero_point<qt::int8>, qt::static_only, qt::zp_before_round>;
using i32 = qt::scheme<qt::int32, qt::per_tensor, qt::zero_point<qt::int32>, qt::static_only, qt::zp_before_round>;

constexpr float scale = .05f;

/// A square matrix of codes without a pattern.
struct data {
  explicit data(const benchmark::State& state) : side(state.range(0)), x(qt::extents(side, side)) {
    qt::store_scales(x.span(), scale);
    std::uint32_t word = 1;
    for (auto& code : x.codes()) {
      word = word * 1664525u + 1013904223u;
      code = static_cast<std::int8_t>(word >> 24);
    }
  }
  const std::int8_t* codes() const { return x.codes().data(); }
  index_t side;
  qt::tensor<i8> x;
};

void done(benchmark::State& state, const data& d) { state.SetBytesProcessed(state.iterations() * d.side * d.side); }

void read_roof(benchmark::State& state) {
  using arch = qt::simd::best_arch;
  using batch = qt::simd::bytes<arch>;
  constexpr index_t step = 4 * qt::simd::lanes<arch>;
  data d(state);
  const auto* x = reinterpret_cast<const std::uint8_t*>(d.codes());
  const index_t n = d.side * d.side;
  for (auto _ : state) {
    batch all[4] = {batch(std::uint8_t{0}), batch(std::uint8_t{0}), batch(std::uint8_t{0}), batch(std::uint8_t{0})};
    for (index_t i = 0; i + 4 * step <= n; i += 4 * step) {
#pragma GCC unroll 4
      for (index_t c = 0; c < 4; ++c) all[c] = all[c] ^ qt::simd::load<arch>(x + i + c * step);
    }
    std::uint8_t out[4 * step];
    for (index_t c = 0; c < 4; ++c) qt::simd::store(out + c * step, all[c]);
    benchmark::DoNotOptimize(out);
  }
  done(state, d);
}

template <class Body>
void ours(benchmark::State& state, int axis, const Body& body) {
  data d(state);
  const auto zero = qt::number_like(d.x, 0.f);
  const auto to = qt::requantize_to<i32>(scale);
  for (auto _ : state) benchmark::DoNotOptimize(qt::reduce(d.x, zero, qt::dimensions(axis), to, body));
  done(state, d);
}
template <class Step>
void plain(benchmark::State& state, int axis, Step step) {
  data d(state);
  std::vector<std::int32_t> out(static_cast<std::size_t>(d.side));
  for (auto _ : state) {
    std::fill(out.begin(), out.end(), 0);
    for (index_t r = 0; r < d.side; ++r)
      for (index_t c = 0; c < d.side; ++c) {
        std::int32_t& to = out[static_cast<std::size_t>(axis == 0 ? c : r)];
        to = step(to, std::int32_t{d.codes()[r * d.side + c]});
      }
    benchmark::DoNotOptimize(out.data());
    benchmark::ClobberMemory();
  }
  done(state, d);
}
const auto add_ints = [](std::int32_t a, std::int32_t b) { return a + b; };
const auto max_ints = [](std::int32_t a, std::int32_t b) { return a > b ? a : b; };

void sum_rows(benchmark::State& state) { ours(state, 1, qt::add); }
void sum_rows_plain(benchmark::State& state) { plain(state, 1, add_ints); }
void sum_columns(benchmark::State& state) { ours(state, 0, qt::add); }
void sum_columns_plain(benchmark::State& state) { plain(state, 0, add_ints); }
void max_rows(benchmark::State& state) { ours(state, 1, qt::max); }
void max_rows_plain(benchmark::State& state) { plain(state, 1, max_ints); }
void max_columns(benchmark::State& state) { ours(state, 0, qt::max); }
void max_columns_plain(benchmark::State& state) { plain(state, 0, max_ints); }

// Products run on lanes. Beside them the same steps by hand: dequantize, multiply, requantize.
void product_rows(benchmark::State& state) { ours(state, 1, qt::multiply); }
void product_columns(benchmark::State& state) { ours(state, 0, qt::multiply); }
void product_rows_plain(benchmark::State& state) {
  volatile float given = scale;
  const float s = given;
  plain(state, 1, [s](std::int32_t a, std::int32_t b) {
    const float q = static_cast<float>(a) * s * (static_cast<float>(b) * s) / s;
    return static_cast<std::int32_t>(std::nearbyint(q < -1e9f ? -1e9f : q > 1e9f ? 1e9f : q));
  });
}

// A body of one's own: a leaky sum, on dequantized numbers and requantized after every step. Beside it the same
// arithmetic written out by hand.
void own_body(benchmark::State& state) {
  data d(state);
  const auto to = qt::requantize_to<i32>(scale);
  const auto leaky = [](const auto& a, const auto& b) { return a.type()(.5f * a.real() + b.real()); };
  for (auto _ : state)
    benchmark::DoNotOptimize(qt::reduce(d.x, qt::number_like(d.x, 0.f), qt::dimensions(1), to, leaky));
  done(state, d);
}
void own_body_by_hand(benchmark::State& state) {
  data d(state);
  std::vector<std::int32_t> out(static_cast<std::size_t>(d.side));
  const auto quantized = [](float x, float s) {
    const float q = x / s + 0.f;
    return static_cast<std::int32_t>(std::nearbyint(q < -2147483648.f  ? -2147483648.f
                                                    : q > 2147483520.f ? 2147483520.f
                                                                       : q));
  };
  volatile float given = scale;
  for (auto _ : state) {
    const float s = given;
    for (index_t r = 0; r < d.side; ++r) {
      std::int32_t acc = 0;
      for (index_t c = 0; c < d.side; ++c) {
        const std::int32_t leaf = quantized(static_cast<float>(d.codes()[r * d.side + c]) * s, s);
        acc = quantized(qt::rounded(.5f * (static_cast<float>(acc) * s)) + static_cast<float>(leaf) * s, s);
      }
      out[static_cast<std::size_t>(r)] = acc;
    }
    benchmark::DoNotOptimize(out.data());
    benchmark::ClobberMemory();
  }
  done(state, d);
}

// Pooling 3 x 3.
const qt::window<2> three{.sizes = {3, 3}};
void max_pool(benchmark::State& state) {
  data d(state);
  for (auto _ : state) benchmark::DoNotOptimize(qt::max_pool(d.x, three));
  done(state, d);
}
void max_pool_plain(benchmark::State& state) {
  data d(state);
  const index_t n = d.side - 2;
  std::vector<std::int8_t> out(static_cast<std::size_t>(n * n));
  for (auto _ : state) {
    for (index_t r = 0; r < n; ++r)
      for (index_t c = 0; c < n; ++c) {
        std::int8_t best = -128;
        for (index_t i = 0; i < 3; ++i)
          for (index_t k = 0; k < 3; ++k) best = std::max(best, d.codes()[(r + i) * d.side + c + k]);
        out[static_cast<std::size_t>(r * n + c)] = best;
      }
    benchmark::DoNotOptimize(out.data());
    benchmark::ClobberMemory();
  }
  done(state, d);
}
void average_pool(benchmark::State& state) {
  data d(state);
  const auto to = qt::requantize_to<i32>(scale);
  const auto back = qt::requantize_to<i8>(scale);
  for (auto _ : state) benchmark::DoNotOptimize(qt::average_pool(d.x, three, to, back));
  done(state, d);
}
void average_pool_plain(benchmark::State& state) {
  data d(state);
  const index_t n = d.side - 2;
  std::vector<std::int8_t> out(static_cast<std::size_t>(n * n));
  volatile float given = scale;
  for (auto _ : state) {
    const float s = given;
    for (index_t r = 0; r < n; ++r)
      for (index_t c = 0; c < n; ++c) {
        std::int32_t sum = 0;
        for (index_t i = 0; i < 3; ++i)
          for (index_t k = 0; k < 3; ++k) sum += d.codes()[(r + i) * d.side + c + k];
        const float q = static_cast<float>(sum) * s / 9.f / s;
        out[static_cast<std::size_t>(r * n + c)] = static_cast<std::int8_t>(std::nearbyint(q < -128.f  ? -128.f
                                                                                           : q > 127.f ? 127.f
                                                                                                       : q));
      }
    benchmark::DoNotOptimize(out.data());
    benchmark::ClobberMemory();
  }
  done(state, d);
}

// Bodies that are one or two instructions, over floats and integers, beside loops with sizes known at run time only.
// The argument is the number of rows; a row has 512 elements.
constexpr auto leaky_sum = [](float a, float b) { return a * .5f + b; };
constexpr auto exclusive_or = [](std::int64_t a, std::int64_t b) { return a ^ b; };
template <class T>
struct plain_data {
  explicit plain_data(const benchmark::State& state)
      : rows(state.range(0)), x(static_cast<std::size_t>(rows * cols)), out(static_cast<std::size_t>(rows + cols)) {
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<T>(i % 97);
  }
  qt::index_t rows, cols = 512;
  std::vector<T> x, out;
};
template <class T, class Body>
void small_body(benchmark::State& state, int axis, const Body& body) {
  const plain_data<T> d(state);
  for (auto _ : state) {
    const auto out = qt::reduce(qt::values(d.x.data(), qt::extents(d.rows, d.cols)), T(0), qt::dimensions(axis), body);
    benchmark::DoNotOptimize(out.data());
    benchmark::ClobberMemory();
  }
}
template <class T, class Body>
void small_body_by_hand(benchmark::State& state, int axis, const Body& body) {
  plain_data<T> d(state);
  for (auto _ : state) {
    if (axis == 1) {
      for (qt::index_t i = 0; i < d.rows; ++i) {
        T sum = 0;
        for (qt::index_t j = 0; j < d.cols; ++j) sum = body(sum, d.x[static_cast<std::size_t>(i * d.cols + j)]);
        d.out[static_cast<std::size_t>(i)] = sum;
      }
    } else {
      std::fill(d.out.begin(), d.out.end(), T(0));
      for (qt::index_t i = 0; i < d.rows; ++i)
        for (qt::index_t j = 0; j < d.cols; ++j) {
          T& sum = d.out[static_cast<std::size_t>(j)];
          sum = body(sum, d.x[static_cast<std::size_t>(i * d.cols + j)]);
        }
    }
    benchmark::DoNotOptimize(d.out.data());
    benchmark::ClobberMemory();
  }
}
void leaky_rows(benchmark::State& s) { small_body<float>(s, 1, leaky_sum); }
void leaky_rows_by_hand(benchmark::State& s) { small_body_by_hand<float>(s, 1, leaky_sum); }
void leaky_columns(benchmark::State& s) { small_body<float>(s, 0, leaky_sum); }
void leaky_columns_by_hand(benchmark::State& s) { small_body_by_hand<float>(s, 0, leaky_sum); }
void xor_rows(benchmark::State& s) { small_body<std::int64_t>(s, 1, exclusive_or); }
void xor_rows_by_hand(benchmark::State& s) { small_body_by_hand<std::int64_t>(s, 1, exclusive_or); }
void xor_columns(benchmark::State& s) { small_body<std::int64_t>(s, 0, exclusive_or); }
void xor_columns_by_hand(benchmark::State& s) { small_body_by_hand<std::int64_t>(s, 0, exclusive_or); }
void leaky_windows(benchmark::State& state) {
  const plain_data<float> d(state);
  for (auto _ : state) {
    const auto out = qt::reduce_window(qt::values(d.x.data(), qt::extents(d.rows, d.cols)), 0.f,
                                       qt::window<2>{.sizes = {3, 3}}, leaky_sum);
    benchmark::DoNotOptimize(out.data());
    benchmark::ClobberMemory();
  }
}
void leaky_windows_by_hand(benchmark::State& state) {
  const plain_data<float> d(state);
  const qt::index_t side = state.range(1);
  std::vector<float> out(d.x.size());
  for (auto _ : state) {
    for (qt::index_t i = 0; i + side <= d.rows; ++i)
      for (qt::index_t j = 0; j + side <= d.cols; ++j) {
        float sum = 0.f;
        for (qt::index_t k = 0; k < side; ++k)
          for (qt::index_t l = 0; l < side; ++l)
            sum = leaky_sum(sum, d.x[static_cast<std::size_t>((i + k) * d.cols + j + l)]);
        out[static_cast<std::size_t>(i * d.cols + j)] = sum;
      }
    benchmark::DoNotOptimize(out.data());
    benchmark::ClobberMemory();
  }
}

#define QTENSOR_SIZES Arg(160)->Arg(512)->Arg(16384)  // 25 KB, 256 KB, 256 MB
BENCHMARK(read_roof)->QTENSOR_SIZES;
BENCHMARK(sum_rows)->QTENSOR_SIZES;
BENCHMARK(sum_rows_plain)->QTENSOR_SIZES;
BENCHMARK(sum_columns)->QTENSOR_SIZES;
BENCHMARK(sum_columns_plain)->QTENSOR_SIZES;
BENCHMARK(max_rows)->QTENSOR_SIZES;
BENCHMARK(max_rows_plain)->QTENSOR_SIZES;
BENCHMARK(max_columns)->QTENSOR_SIZES;
BENCHMARK(max_columns_plain)->QTENSOR_SIZES;
BENCHMARK(product_rows)->Arg(512);
BENCHMARK(product_rows_plain)->Arg(512);
BENCHMARK(product_columns)->Arg(512);
BENCHMARK(own_body)->Arg(512);
BENCHMARK(own_body_by_hand)->Arg(512);
BENCHMARK(leaky_rows)->Arg(512)->Arg(4096);
BENCHMARK(leaky_rows_by_hand)->Arg(512)->Arg(4096);
BENCHMARK(leaky_columns)->Arg(512)->Arg(4096);
BENCHMARK(leaky_columns_by_hand)->Arg(512)->Arg(4096);
BENCHMARK(xor_rows)->Arg(512)->Arg(4096);
BENCHMARK(xor_rows_by_hand)->Arg(512)->Arg(4096);
BENCHMARK(xor_columns)->Arg(512)->Arg(4096);
BENCHMARK(xor_columns_by_hand)->Arg(512)->Arg(4096);
BENCHMARK(leaky_windows)->Arg(512);
BENCHMARK(leaky_windows_by_hand)->Args({512, 3});
BENCHMARK(max_pool)->Arg(160)->Arg(512);
BENCHMARK(max_pool_plain)->Arg(160)->Arg(512);
BENCHMARK(average_pool)->Arg(160)->Arg(512);
BENCHMARK(average_pool_plain)->Arg(160)->Arg(512);

}  // namespace

BENCHMARK_MAIN();
