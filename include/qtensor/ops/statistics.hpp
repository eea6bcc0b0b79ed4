// Error statistics: how far a quantized tensor is from the numbers it was made of.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cmath>
#include <qtensor/ops/dequantize.hpp>

namespace qtensor::inline QTENSOR_ABI {

/// Differences between two matrices of the same size, in real numbers. Sums are kept in double, row by row in ascending
/// order, so they do not depend on the CPU. A NaN or infinity on either side makes all three NaN or infinite.
struct error_statistics {
  double max_abs = 0;      // largest |x - y|
  double mean_square = 0;  // mean of (x - y)^2; 0 without elements
  double signal = 0;       // mean of x^2
  /// Signal to quantization noise, 10 log10(signal / mean_square), in dB; infinite where nothing was lost.
  double sqnr_db() const { return mean_square == 0 ? INFINITY : 10 * std::log10(signal / mean_square); }
};

/// Statistics of y as an approximation of x; throws where their sizes differ.
template <tile_source X, tile_source Y>
error_statistics compare(const X& x, const Y& y) {
  require(x.rows() == y.rows() && x.cols() == y.cols(), "compare is given ", x.rows(), " x ", x.cols(), " and ",
          y.rows(), " x ", y.cols(), " elements; both sides need the same size.");
  error_statistics out;
  double noise = 0, power = 0;
  alignas(64) float other[ops::tile_floats];
  ops::for_each_piece(as_floats(x), 0, x.rows(), 1, [&](index_t row, index_t col, index_t n, const float* left) {
    y.read(row, 1, col, n, other, n);
    for (index_t i = 0; i < n; ++i) {
      const double value = static_cast<double>(left[i]), difference = value - static_cast<double>(other[i]);
      const double size = std::fabs(difference);
      if (!(size <= out.max_abs)) out.max_abs = std::isnan(out.max_abs) ? out.max_abs : size;
      noise += rounded(difference * difference);
      power += value * value;
    }
  });
  const double count = static_cast<double>(x.rows()) * static_cast<double>(x.cols());
  if (count > 0) {
    out.mean_square = noise / count;
    out.signal = power / count;
  }
  return out;
}

/// Statistics of a quantized tensor against the memory it was made of: `compare(source(ptr, extents), W)`.
template <format F, tensor_extents Extents, quantized W>
error_statistics compare(const memory_source<F, Extents>& x, const W& w) {
  const auto view = as_view(w);
  using order = typename decltype(view)::order_type;
  return compare(typename memory_source<F, Extents>::template in_order<order>(x), view_source{view});
}

}  // namespace qtensor::inline QTENSOR_ABI
