// A user's program, the same however qtensor is found: quantizes a matrix, multiplies with it, compares.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/qtensor.hpp>

#include <cstdio>

int main() {
  namespace qt = qtensor;
  const Eigen::MatrixXf a = Eigen::MatrixXf::Identity(48, 48);
  const qt::tensor<qt::int8_per_tensor> w = qt::quantize<qt::int8_per_tensor>(a);
  const Eigen::VectorXf x = Eigen::VectorXf::LinSpaced(48, -1.f, 1.f);
  Eigen::VectorXf y(48);
  y.noalias() = w * x;
  const float worst = (y - x).cwiseAbs().maxCoeff();
  std::printf("worst difference %g\n", static_cast<double>(worst));
  return worst < 1e-5f ? 0 : 1;
}
