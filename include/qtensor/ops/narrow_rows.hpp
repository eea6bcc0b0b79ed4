// Narrow rows whose elements have parameters of their own: several that follow each other, as one wide row.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <numeric>
#include <qtensor/simd/memory.hpp>

namespace qtensor::inline QTENSOR_ABI::ops {

/// Elements of the widest row that narrow ones make.
inline constexpr index_t widest_row = 128 * 4 * simd::lanes<simd::best_arch>;

/// How many of `rows` narrow rows of n elements kernels take as one, which fills their vectors: 1 where rows are wide,
/// or few. Rows that fill vectors by themselves should make two such ones.
inline index_t rows_as_one(index_t n, index_t rows) {
  constexpr index_t step = 4 * simd::lanes<simd::best_arch>, wide = 128, enough = 256;
  if (n <= 0 || n >= wide) return 1;
  index_t together = step / std::gcd(n, step);
  while (n * together < enough && 4 * together <= rows) together *= 2;
  return (n < step ? together : 2 * together) <= rows ? together : 1;
}

/// The n parameters of a narrow row, once for each row of a wide one, `step` entries apart.
template <class T>
void repeat_entries(const T* from, index_t n, index_t rows, T* to, index_t step) {
  for (index_t r = 0; r < rows; ++r) std::copy_n(from, n, to + r * step);
}
/// The same side by side.
template <class T>
void repeat_entries(const T* from, index_t n, index_t rows, T* to) {
  repeat_entries(from, n, rows, to, n);
}

}  // namespace qtensor::inline QTENSOR_ABI::ops
