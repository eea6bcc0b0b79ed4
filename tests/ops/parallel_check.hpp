// What the tests of executors share: numbers, threads that are counted, and comparison with one thread.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <doctest/doctest.h>

#include <cstring>
#include <limits>
#include <qtensor/compat/ggml.hpp>
#include <qtensor/ops/parallel.hpp>
#include <qtensor/scheme/schemes.hpp>
#include <random>
#include <vector>

#include "../main/in_full.hpp"
#include "threads.hpp"

namespace parallel_check {

namespace qt = qtensor;
using qt::index_t;

/// A thread for every part; counts the parts.
struct threads_of {
  int* parts;
  template <class Part>
  void operator()(index_t count, const Part& part) const {
    *parts += static_cast<int>(count);
    pool::thread_each{}(count, part);
  }
};

/// Uneven sizes, large enough for five parts.
constexpr index_t rows = 67, cols = 1301;

/// Numbers over some binades with a zero row, a NaN, infinities, and a large one in a late row.
inline std::vector<float> numbers(index_t n) {
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  std::vector<float> x(static_cast<std::size_t>(n));
  for (float& v : x) v = normal(random);
  for (index_t i = 3 * cols; i < 4 * cols && i < n; ++i) x[static_cast<std::size_t>(i)] = 0.f;
  x[static_cast<std::size_t>(n - n / 9)] = 40.f;
  x[static_cast<std::size_t>(n / 2)] = -50.f;
  return x;
}
inline std::vector<float> with_specials(std::vector<float> x) {
  x[x.size() / 3] = std::numeric_limits<float>::quiet_NaN();
  x[x.size() / 4] = std::numeric_limits<float>::infinity();
  x[x.size() - 5] = -std::numeric_limits<float>::infinity();
  return x;
}

template <class Tensor>
bool same(const Tensor& a, const Tensor& b) {
  const auto equal = [](const auto& left, const auto& right) {
    return left.size() == right.size() && std::memcmp(left.data(), right.data(), left.size_bytes()) == 0;
  };
  using S = typename Tensor::scheme_type;
  if constexpr (S::is_interleaved) {
    return equal(a.blocks(), b.blocks());
  } else {
    bool all = equal(a.codes(), b.codes()) && equal(a.scales(), b.scales());
    if constexpr (S::has_zero_point) all = all && equal(a.zero_points(), b.zero_points());
    if constexpr (S::has_tensor_scale) all = all && a.tensor_scale() == b.tensor_scale();
    return all;
  }
}

/// Quantizing and dequantizing by 1, 2, 3 and 5 threads is what one thread gives; says whether more than one ran.
template <class S, qt::storage_order Order = qt::row_major, class Extents>
void check_tensor(const Extents& extents, const std::vector<float>& x, bool splits = true) {
  const auto source = qt::source(x.data(), extents);
  const auto expected = qt::quantize<S, Order>(source);
  const auto numbers_of = [&](auto... on) {
    std::vector<float> out(x.size(), -1.f);
    qt::dequantize_into(expected.view(), out.data(), source.strides, on...);
    return out;
  };
  const std::vector<float> back = numbers_of();
  for (index_t threads : {1, 2, 3, 5}) {
    INFO(std::string_view(qt::name<S>), " threads=", threads);
    int parts = 0;
    const auto pool = qt::on(qt::parallel_for(threads, threads_of{&parts}));
    const auto found = qt::quantize<S, Order>(source, pool);
    CHECK(same(found, expected));
    CHECK((parts > 1) == (splits && threads > 1));
    parts = 0;
    const std::vector<float> again = numbers_of(pool);
    CHECK(std::memcmp(again.data(), back.data(), back.size() * sizeof(float)) == 0);
    CHECK((parts > 1) == (threads > 1));
  }
}
template <class S, qt::storage_order Order = qt::row_major>
void check_matrix(bool splits = true) {
  const auto x = numbers(rows * cols);
  check_tensor<S, Order>(qt::extents(rows, cols), x, splits);
  check_tensor<S, Order>(qt::extents(rows, cols), with_specials(x), splits);
}

}  // namespace parallel_check
