// Products with quantized operands: weights packed once, arithmetic by option, an epilogue fused into the tiles.
// SPDX-License-Identifier: BSD-3-Clause
#include <cstdlib>
#include <iostream>
#include <qtensor/expr/matmul.hpp>
#include <qtensor/qtensor.hpp>

namespace {

/// Prints how far a result is from the floats it stands for, and ends the program where that is too far.
void compare(const char* what, const Eigen::MatrixXf& got, const Eigen::MatrixXf& want, float at_most) {
  const float lost = (got - want).norm() / want.norm();
  std::cout << what << ": relative error " << lost << '\n';
  if (!(lost <= at_most)) std::exit(1);
}

}  // namespace

int main() {
  namespace qt = qtensor;
  // A layer of 96 outputs over 256 inputs, and 40 tokens.
  const Eigen::MatrixXf A = Eigen::MatrixXf::Random(96, 256), X = Eigen::MatrixXf::Random(256, 40);
  const Eigen::VectorXf b = Eigen::VectorXf::Random(96);
  const Eigen::MatrixXf want = A * X, activated = (want.colwise() + b).cwiseMax(0.f);

  const auto W = qt::quantize<qt::int4_group<32>>(A);
  const auto P = qt::pack(W);  // once: the order in which kernels read
  Eigen::MatrixXf Y = P * X;   // floats in fixed order: the bits of W * X
  compare("int4 weights", Y, want, 0.1f);
  if ((Y.array() != Eigen::MatrixXf(W * X).array()).any()) return 1;
  Y.noalias() = P.with(qt::int8_activations) * X;  // X to int8, exact integer sums in each group
  compare("int4 weights, int8 activations", Y, want, 0.1f);

  const auto W8 = qt::quantize<qt::int8_per_channel<0>>(A);
  Y.noalias() = W8 * qt::quantize<qt::int8_per_channel<1>>(X);  // integers times integers: one exact sum
  compare("int8 x int8", Y, want, 0.02f);

  // Bias, ReLU and the next layer's int8, all while a tile of the product is in the first cache.
  const auto Q = qt::matmul<qt::int8_per_tensor>(
      qt::pack(W8), X, qt::int8_activations, qt::with_scales(0.2f),
      [&](const auto& sums, qt::tile t) { return (sums.colwise() + b.segment(t.row, t.rows)).cwiseMax(0.f); });
  compare("int8 x int8 -> bias, ReLU -> int8", qt::dequantize(Q), activated, 0.03f);
  return 0;
}
