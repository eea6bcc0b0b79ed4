// Rows and columns of a product over groups with everything that they may have, and the sums by definition.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cmath>
#include <qtensor/simd/gemm_groups.hpp>
#include <vector>

#include "check.hpp"

namespace check {

namespace simd = qtensor::simd;
using qtensor::index_t;

inline std::vector<float> numbers(index_t n) {
  std::vector<float> v(static_cast<std::size_t>(n));
  for (float& x : v) x = static_cast<float>(static_cast<int>(random_bits()())) * 0x1p-31f;
  return v;
}
inline std::vector<std::int32_t> integers(index_t n, std::int32_t low, std::int32_t high) {
  std::vector<std::int32_t> v(static_cast<std::size_t>(n));
  for (auto& x : v) x = low + static_cast<std::int32_t>(random_below(static_cast<std::uint32_t>(high - low + 1)));
  return v;
}
template <class T>
T at(const std::vector<T>& v, index_t i) {
  return v[static_cast<std::size_t>(i)];
}

/// What a product over groups is asked for: every flag is something that it may have or not.
struct group_shape {
  index_t rows, groups, quads;
  bool row_zeros, zeros, offsets, scales, first, row_scales, last, wide = false;
};

/// The operands of a product in one shape; A says how factors come.
template <class A>
struct group_case {
  group_shape s;
  index_t cols, deep = 4 * s.groups * s.quads, stride = deep + 3, entries = s.rows + 2;
  index_t n = s.groups * entries, m = s.groups * cols, sums_stride = cols + 16;
  index_t counted = cols;  // columns of which sums have a meaning
  std::vector<std::int8_t> signed_codes = random_codes<std::int8_t>(s.rows * stride);
  std::vector<std::int32_t> starts = integers(n, -1000, 1000), second = integers(n, -1000, 1000);
  std::vector<std::int32_t> sums = integers(n, -4000, 4000), row_zeros = integers(n, -255, 255);
  std::vector<std::int32_t> zeros = integers(m, -255, 255), column_sums = integers(m, -9000, 9000);
  std::vector<float> scales = numbers(n), terms = numbers(n), column_scales = numbers(m), offsets = numbers(m);
  std::vector<float> row_scales = numbers(s.rows), last = numbers(1);
  std::vector<float> y = numbers(s.rows * sums_stride), before = y;
  std::vector<std::int32_t> sum_factors = large(sums), row_zero_factors = small(row_zeros), zero_factors = small(zeros),
                            column_sum_factors = large(column_sums);

  static std::vector<std::int32_t> large(std::vector<std::int32_t> v) {
    for (auto& f : v) f = simd::large_factor<A>(f);
    return v;
  }
  static std::vector<std::int32_t> small(std::vector<std::int32_t> v) {
    for (auto& f : v) f = simd::small_factor<A>(f);
    return v;
  }

  template <class Unit>
  simd::group_rows<Unit> rows(const Unit* units, index_t units_stride) const {
    return {units,
            units_stride,
            entries,
            {starts.data(), second.data()},
            sum_factors.data(),
            s.row_zeros ? row_zero_factors.data() : nullptr,
            s.scales ? scales.data() : nullptr,
            terms.data()};
  }
  simd::group_columns columns(const std::uint8_t* codes, index_t quad_bytes, const std::uint8_t* table) const {
    return {codes,
            quad_bytes,
            cols,
            table,
            column_scales.data(),
            s.offsets ? offsets.data() : nullptr,
            s.zeros ? zero_factors.data() : nullptr,
            column_sum_factors.data(),
            s.first ? 0 : 4096};
  }
  simd::group_sums place() {
    simd::group_sums p{s.first ? nullptr : before.data(), sums_stride, y.data(), sums_stride};
    if (s.row_scales) p.row_scales = row_scales.data();
    if (s.last) p.last = at(last, 0);
    return p;
  }
  /// Requires that y has the sums, and nothing else has changed: weight(g, k, c) is what tiles read, start(entry, c)
  /// what a dot begins with.
  template <class Weight, class Start>
  void require_sums(const Weight& weight, const Start& start) const {
    for (index_t r = 0; r < s.rows; ++r)
      for (index_t c = 0; c < sums_stride; ++c) {
        float want = at(before, r * sums_stride + c);
        if (c >= counted && c < cols) continue;
        if (c < cols && s.first) want = 0.f;
        for (index_t g = 0; g < s.groups && c < cols; ++g) {
          const index_t i = g * entries + r, j = g * cols + c;
          std::int64_t dot = start(i, c);
          for (index_t k = 0; k < 4 * s.quads; ++k)
            dot += std::int64_t{weight(g, k, c)} * at(signed_codes, r * stride + g * 4 * s.quads + k);
          if (s.zeros) dot += std::int64_t{at(sums, i)} * at(zeros, j);
          if (s.row_zeros) dot += std::int64_t{at(row_zeros, i)} * at(column_sums, j);
          const float p = s.scales ? qtensor::rounded(at(column_scales, j) * at(scales, i)) : at(column_scales, j);
          want = std::fma(static_cast<float>(dot), p, want);
          if (s.offsets) want = std::fma(at(terms, i), at(offsets, j), want);
        }
        if (c < cols && s.row_scales) want = qtensor::rounded(want * at(row_scales, r));
        if (c < cols && s.last) want = qtensor::rounded(want * at(last, 0));
        REQUIRE(at(y, r * sums_stride + c) == want);
      }
  }
};

/// Shape number `round` of those with so many rows, groups and quads: 128 of them differ.
inline group_shape numbered_shape(index_t rows, index_t groups, index_t quads, int round) {
  const auto flag = [&](int bit) { return (round >> bit) % 2 != 0; };
  return {rows, groups, quads, flag(0), flag(1), flag(2), flag(3), flag(4), flag(5), flag(6)};
}

}  // namespace check
