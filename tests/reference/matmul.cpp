// Mirrors include/qtensor/reference/matmul.hpp: the order and the roundings of the product are the promise.
// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <cmath>
#include <map>
#include <qtensor/reference/matmul.hpp>
#include <utility>
#include <vector>

#include "oracle/inputs.hpp"

namespace {

using namespace oracle;
using qtensor::index_t;

/// One row times one column given as lists.
float dot_of(const std::vector<float>& w, const std::vector<float>& x) {
  return qtensor::reference::dot([&](index_t, index_t k) { return w[static_cast<std::size_t>(k)]; },
                                 [&](index_t k, index_t) { return x[static_cast<std::size_t>(k)]; }, 0, 0,
                                 static_cast<index_t>(w.size()));
}

}  // namespace

TEST_CASE("matmul: a step is one fused multiply-add, not a rounded product and a rounded sum") {
  // (1 + 2^-12)^2 = 1 + 2^-11 + 2^-24: the last term is lost when the product is rounded first.
  const float a = 1 + 0x1p-12f;
  CHECK(dot_of({-1, a}, {1 + 0x1p-11f, a}) == 0x1p-24f);
}

TEST_CASE("matmul: k ascends from 0, in one chain that starts at +0") {
  CHECK(dot_of({0x1p30f, 1, -0x1p30f}, {1, 1, 1}) == 0);
  CHECK(dot_of({0x1p30f, -0x1p30f, 1}, {1, 1, 1}) == 1);
  CHECK(dot_of({1, 0x1p30f, -0x1p30f}, {1, 1, 1}) == 0);
  CHECK(bits_of(dot_of({}, {})) == 0);
  CHECK(bits_of(dot_of({-0.f}, {1})) == 0);
}

TEST_CASE("matmul: every output is the chain of its row and column") {
  random_bits random(21);
  constexpr index_t rows = 3, columns = 4, depth = 17;
  std::vector<float> w, x;
  for (index_t i = 0; i < rows * depth; ++i) w.push_back(random.log_uniform(-6, 6));
  for (index_t i = 0; i < depth * columns; ++i) x.push_back(random.log_uniform(-6, 6));
  const auto w_at = [&](index_t row, index_t k) { return w[static_cast<std::size_t>(row * depth + k)]; };
  const auto x_at = [&](index_t k, index_t column) { return x[static_cast<std::size_t>(k * columns + column)]; };
  std::map<std::pair<index_t, index_t>, float> seen;
  qtensor::reference::matmul(w_at, x_at, rows, columns, depth, [&](index_t row, index_t column, float value) {
    CHECK_MESSAGE(seen.emplace(std::pair(row, column), value).second,
                  "row " << row << " column " << column << " twice");
  });
  CHECK(seen.size() == rows * columns);
  for (const auto& entry : seen) {
    const auto [row, column] = entry.first;
    float expected = 0;
    for (index_t k = 0; k < depth; ++k) expected = std::fma(w_at(row, k), x_at(k, column), expected);
    CHECK_MESSAGE(bits_of(entry.second) == bits_of(expected),
                  "row " << entry.first.first << " column " << entry.first.second);
  }
}
