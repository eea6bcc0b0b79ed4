// The README's first snippet as a program: quantize, inspect, multiply, change one policy.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/qtensor.hpp>

#include <iostream>

int main() {
  namespace qt = qtensor;
  const Eigen::MatrixXf A = Eigen::MatrixXf::Random(48, 160);
  const Eigen::VectorXf x = Eigen::VectorXf::Random(160), b = Eigen::VectorXf::Random(48);

  qt::tensor<qt::mxfp4> W = qt::quantize<qt::mxfp4>(A * 2.f);         // any Eigen expression, no temporary of its size
  Eigen::VectorXf y = W * x + b;                                      // the quantized product, inside Eigen
  std::cout << W << '\n';                                             // 48x160 [e2m1 x group<32> / e8m0]

  const float lost = (qt::dequantize(W) - A * 2.f).norm() / (2.f * A.norm());  // lazy: an Eigen expression too
  std::cout << "relative error " << lost << '\n';

  using strict = qt::with<qt::mxfp4, qt::mx_rceil, qt::nan_to_zero>;  // the same scheme, two policies changed
  auto V = qt::quantize<strict>(A * 2.f);
  y.noalias() += V.view().middle_rows(0, 48) * x;                     // slices are views: nothing is copied

  static_assert(qt::encode<qt::e4m3>(0.3f) == 0x2A);                  // the reference is constexpr
  return lost < 0.5f && y.allFinite() ? 0 : 1;
}
