// A user's translation unit, built for several architecture levels; QTENSOR_UNIT names its function.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/qtensor.hpp>

#include <sstream>

namespace qt = qtensor;

namespace {

/// Folds the bits of n floats into a number, so that different bits give different sums.
std::uint64_t digest(const float* x, Eigen::Index n, std::uint64_t sum) {
  for (Eigen::Index i = 0; i < n; ++i) sum = sum * 0x100000001b3u + std::bit_cast<std::uint32_t>(x[i]);
  return sum;
}

template <class Scheme>
std::uint64_t use(const Eigen::MatrixXf& a, const Eigen::VectorXf& x, std::uint64_t sum) {
  const qt::tensor<Scheme> w = qt::quantize<Scheme>(a * 2.f + a);
  const Eigen::MatrixXf back = qt::dequantize(w), sums = (w + a).cwiseMax(0.f);
  Eigen::VectorXf y(a.rows());
  y.noalias() = w * x;
  std::ostringstream text;
  text << w;
  sum = digest(back.data(), back.size(), sum + text.str().size());
  return digest(y.data(), y.size(), digest(sums.data(), sums.size(), sum));
}

}  // namespace

/// A number that depends on every bit of what the library computes here, and on nothing else.
std::uint64_t QTENSOR_UNIT() {
  Eigen::MatrixXf a(48, 160);
  Eigen::VectorXf x(160);
  for (Eigen::Index i = 0; i < a.size(); ++i) a(i) = static_cast<float>((i * 7919) % 2003 - 1001) / 256.f;
  for (Eigen::Index i = 0; i < x.size(); ++i) x(i) = static_cast<float>(i % 17 - 8);
  std::uint64_t sum = 0;
  sum = use<qt::uint8_per_channel<0>>(a, x, sum);
  sum = use<qt::mxfp4>(a, x, sum);

  // Scales that are known, and options of products.
  using two_levels = qt::with<qt::nvfp4, qt::tensor_scale<qt::f32>>;
  const qt::tensor<two_levels> w = qt::quantize<two_levels>(a, qt::tensor_level::of<two_levels>(8.f));
  const qt::tensor<qt::int8_per_channel<0>> v = qt::quantize<qt::int8_per_channel<0>>(a, .0625f);
  Eigen::VectorXf y(a.rows());
  qt::matmul(w, x, qt::into(y));
  return digest(y.data(), y.size(), sum + v.codes()[7]);
}
