// torch: quantized::linear, as its FBGEMM kernels requantize (NUMERICS 10).
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <qtensor/ops/code_matrix.hpp>
#include <qtensor/ops/product_int8.hpp>
#include <qtensor/ops/requantize.hpp>
#include <vector>

namespace qtensor::compat::torch {

/// Scales and zero points of a quantized linear layer. Weights are symmetric: one scale, or one an output. Scales are
/// torch's doubles; each is rounded to f32 before it is used.
struct linear_parameters {
  double x_scale = 1.;
  std::int32_t x_zero_point = 0;
  std::span<const double> w_scales = {};
  double y_scale = 1.;
  std::int32_t y_zero_point = 0;
};

inline namespace QTENSOR_ABI {

/// y[m][n] = clamp(rne((float(sum) + bias[n] / s) * RN(s / y_scale)) + y_zero_point, 0, 255) with s = RN(x_scale *
/// w_scale) and sum = the exact sum over k of (x - x_zero_point) w, every step in f32. x is M x K (quint8), w N x K
/// (qint8), y M x N (quint8), dense and row-major; bias is empty or has N floats. Throws before y is written where
/// sizes do not fit or a scale is not positive and finite.
template <executor By = serial>
void quantized_linear(std::span<const std::uint8_t> x, std::span<const std::int8_t> w, index_t m, index_t n, index_t k,
                      std::span<const float> bias, const linear_parameters& p, std::span<std::uint8_t> y,
                      const By& by = {}) {
  const auto check = [](const char* what, std::size_t given, index_t rows, index_t cols) {
    require(rows >= 0 && cols >= 0 && static_cast<index_t>(given) == qtensor::detail::checked_product(rows, cols), what,
            " has ", given, " elements; it is ", rows, " by ", cols, ".");
  };
  check("x", x.size(), m, k);
  check("w", w.size(), n, k);
  check("y", y.size(), m, n);
  require(bias.empty() || static_cast<index_t>(bias.size()) == n, "bias has ", bias.size(), " elements for ", n,
          " outputs; it has none or ", n, ".");
  require(p.w_scales.size() == 1 || static_cast<index_t>(p.w_scales.size()) == n, "w_scales has ", p.w_scales.size(),
          " elements for ", n, " outputs; it has 1 or ", n, ".");
  const auto positive = [](const char* what, double scale) {
    const auto s = static_cast<float>(scale);
    require(is_finite(s) && s > 0.f, what, " is ", scale, "; a scale must be finite and positive as a float.");
    return s;
  };
  const float x_scale = positive("x_scale", p.x_scale), y_scale = positive("y_scale", p.y_scale);
  require(p.y_zero_point >= 0 && p.y_zero_point <= 255, "y_zero_point is ", p.y_zero_point, "; quint8 has 0 to 255.");
  std::vector<float> w_scales, shifts;
  for (const double s : p.w_scales) w_scales.push_back(positive("w_scales", s));
  if (y.empty()) return;  // there may be any number of inputs or outputs
  for (std::size_t c = 0; c < bias.size(); ++c)
    shifts.push_back(rounded(bias[c] / rounded(x_scale * w_scales[w_scales.size() == 1 ? 0 : c])));
  const ops::requantization<std::uint8_t> how({&x_scale, 1}, w_scales, y_scale, shifts,
                                              static_cast<std::uint8_t>(p.y_zero_point), n);
  const ops::store_requantized<std::uint8_t> store{how, {y.data(), m, n, n, 1}};
  const std::int32_t zero[] = {p.x_zero_point};
  ops::multiply_integers<simd::best_arch>(code_matrix<int8>{w.data(), n, k, k, 1},
                                          code_matrix<uint8>{x.data(), m, k, k, 1, zero},
                                          ops::unscaled<ops::store_requantized<std::uint8_t>>{store}, by);
}

}  // namespace QTENSOR_ABI

}  // namespace qtensor::compat::torch
