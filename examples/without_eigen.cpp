// Tensors of any rank from memory and back, and a product of batches, with no header of Eigen's.
// SPDX-License-Identifier: BSD-3-Clause
#include <cmath>
#include <iostream>
#include <qtensor/kernels.hpp>
#include <qtensor/ops/batched.hpp>
#include <vector>

namespace {

/// Waves of other lengths along every row.
std::vector<float> waves(std::size_t n) {
  std::vector<float> x(n);
  for (std::size_t i = 0; i < n; ++i)
    x[i] = std::sin(0.37f * static_cast<float>(i)) * (1.f + 0.01f * static_cast<float>(i % 96));
  return x;
}

}  // namespace

int main() {
  namespace qt = qtensor;
  const std::vector<float> numbers = waves(2 * 3 * 64 * 96), others = waves(2 * 3 * 96 * 10);
  std::vector<float> back(numbers.size()), y(2 * 3 * 64 * 10);

  const auto shape = qt::extents(2, 3, 64, 96);
  auto T = qt::quantize<qt::mxfp8_e4m3>(qt::source(numbers.data(), shape));  // memory of any rank, any strides
  qt::quantize_into(T, qt::source(numbers.data(), shape));                   // again, into the memory that T has
  qt::dequantize_into(T.view(), back.data());                                // dense, the last axis first to vary

  qt::matmul_batches_into(T, qt::source(others.data(), qt::extents(2, 3, 96, 10)), y);  // [2, 3, 64, 10]

  float lost = 0.f, all = 0.f;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    lost += (back[i] - numbers[i]) * (back[i] - numbers[i]);
    all += numbers[i] * numbers[i];
  }
  float exact = 0.f, size = 0.f;  // of the first row and column, with the numbers as they were
  for (std::size_t k = 0; k < 96; ++k) {
    exact += numbers[k] * others[k * 10];
    size += std::fabs(numbers[k] * others[k * 10]);
  }
  std::cout << "relative error " << std::sqrt(lost / all) << "; a product of " << exact << " is " << y[0] << '\n';
  return lost < 0.01f * all && std::fabs(y[0] - exact) < 0.1f * size ? 0 : 1;
}
