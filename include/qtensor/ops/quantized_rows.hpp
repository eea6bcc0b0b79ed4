// Activations of floats as signed bytes: how products quantize the rows that they are given.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <qtensor/core/support.hpp>
#include <qtensor/scheme/schemes.hpp>
#include <qtensor/simd/quantize.hpp>
#include <qtensor/simd/scales.hpp>
#include <qtensor/simd/statistics.hpp>

namespace qtensor::inline QTENSOR_ABI::ops {

using row_scheme = scheme<int8, qtensor::group<dynamic>>;

/// Codes and the scale of one group from its largest magnitude, as the reference finds the scale: NaN, and codes 0, for
/// one with an infinity or NaN.
template <quantization_scheme S>
void quantize_group(const float* x, index_t n, std::uint32_t amax, float& scale, std::int8_t* codes) {
  reference::block_statistics seen;
  seen.amax_bits = amax;
  const reference::block_parameters p = reference::parameters_of<S>(seen);
  scale = p.code_scale;
  if (p.poisoned)
    std::fill_n(codes, n, std::int8_t{0});
  else
    simd::encode_uniform<S>(x, n, element_scale{p.code_scale, 1.f}, 0, codes);
}

/// Codes and scales of a row of n floats in groups, as int8_group<> has them (amax_scale of NUMERICS 11); the last
/// group may be short. A group with an infinity or NaN has a NaN scale and codes 0. `amax` is memory for a word a
/// group.
template <quantization_scheme S>
void quantize_row_groups(const float* x, index_t n, index_t group, std::uint32_t* amax, float* scales,
                         std::int8_t* codes) {
  const index_t whole = n / group, groups = divide_up(n, group);
  if (group == 32)
    simd::amax_blocks_of<simd::best_arch, 32>(x, whole, amax);
  else
    simd::amax_blocks<simd::best_arch>(x, whole, group, amax);
  if (whole < groups) amax[whole] = simd::amax_bits<simd::best_arch>(x + whole * group, n - whole * group);
  const auto blocks = simd::block_scales<S>(amax, groups, scales, scales);  // stored scales are the scales
  if (blocks == simd::blocks_are::fitting) return simd::encode_fitting<S>(x, n, group, scales, nullptr, codes);
  if (blocks == simd::blocks_are::ordinary) return simd::encode_grouped<S>(x, n, group, scales, nullptr, codes);
  for (index_t g = 0, k = 0; g < groups; ++g, k += group)
    quantize_group<S>(x + k, std::min(group, n - k), amax[g], scales[g], codes + k);
}

/// The codes of a row, made when they are asked for unless they are `ready`: make(codes) writes all n of them.
template <class Make>
struct row_codes {
  const std::int8_t* ready;  ///< null: not made yet
  index_t n;
  const Make& make;

  void write(std::int8_t* codes) const {
    if (ready != nullptr)
      std::copy_n(ready, n, codes);
    else
      make(codes);
  }
  /// Where they can be read: in `room` for n codes, or elsewhere.
  const std::int8_t* read(std::int8_t* room) const {
    if (ready != nullptr) return ready;
    make(room);
    return room;
  }
};

/// The same for rows with one scale each, as int8_per_channel<0> has them; row r begins at x + r * step. Calls take(r,
/// row_codes) for every row; scales[r] is there. Scales of several rows come at once, which hides how long one takes,
/// and so do codes of shorter rows that lie behind each other.
template <class Take>
void quantize_rows(const float* x, index_t step, index_t rows, index_t n, float* scales, const Take& take) {
  constexpr index_t most = 16, first_cache = 8192, short_row = 1024;
  const index_t together = std::clamp(first_cache / std::max(n, index_t{1}), index_t{1}, most);
  for (index_t first = 0; first < rows; first += together) {
    const index_t count = std::min(together, rows - first);
    alignas(64) std::uint32_t amax[most];
    for (index_t r = 0; r < count; ++r) amax[r] = simd::amax_bits<simd::best_arch>(x + (first + r) * step, n);
    const bool fit =
        simd::block_scales<row_scheme>(amax, count, scales + first, scales + first) == simd::blocks_are::fitting;
    alignas(64) std::int8_t all[first_cache];
    const bool at_once = fit && n <= short_row && step == n && count > 1;
    if (at_once) simd::encode_fitting<row_scheme>(x + first * n, count * n, n, scales + first, nullptr, all);
    for (index_t r = first; r < first + count; ++r) {
      const auto make = [&](std::int8_t* codes) {
        if (fit)
          simd::encode_uniform_fitting<row_scheme>(x + r * step, n, element_scale{scales[r], 1.f}, 0, codes);
        else
          quantize_group<row_scheme>(x + r * step, n, amax[r - first], scales[r], codes);
      };
      take(r, row_codes<decltype(make)>{at_once ? all + (r - first) * n : nullptr, n, make});
    }
  }
}

}  // namespace qtensor::inline QTENSOR_ABI::ops
