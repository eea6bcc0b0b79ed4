// A format of one's own: NF4, sixteen numbers spaced as those of a normal distribution, in groups of 64.
// SPDX-License-Identifier: BSD-3-Clause
#include <iostream>
#include <qtensor/qtensor.hpp>
#include <random>

namespace qt = qtensor;

// The facts of a format; codecs, kernels, packing of two codes a byte, and products follow from them.
struct nf4 {
  static constexpr int bits = 4;
  static constexpr bool is_integer = false, is_signed = true;
  static constexpr float min = -1.f, max = 1.f;
  static constexpr qt::fixed_string name = "nf4";
  static constexpr float decode(std::uint32_t code) {
    constexpr float level[16] = {-1.f,         -0.69619280f, -0.52507305f, -0.39491749f, -0.28444138f, -0.18477343f,
                                 -0.09105004f, 0.f,          0.07958030f,  0.16093020f,  0.24611230f,  0.33791524f,
                                 0.44070983f,  0.56261700f,  0.72295684f,  1.f};
    return level[code & 15];
  }
};
static_assert(qt::encode<nf4>(0.2f) == 9 && qt::decode<nf4>(9) == 0.16093020f);

template <class S>
float error_of(const Eigen::MatrixXf& A, const Eigen::VectorXf& x) {
  const qt::tensor<S> W = qt::quantize<S>(A);
  const Eigen::VectorXf y = W * x;
  const float lost = (qt::dequantize(W) - A).norm() / A.norm();
  std::cout << W << ": relative error " << lost << ", of the product " << (y - A * x).norm() / (A * x).norm() << '\n';
  return lost;
}

int main() {
  std::mt19937 bits(1);
  std::normal_distribution<float> normal;
  const Eigen::MatrixXf A = Eigen::MatrixXf::NullaryExpr(256, 512, [&] { return normal(bits); });
  const Eigen::VectorXf x = Eigen::VectorXf::NullaryExpr(512, [&] { return normal(bits); });
  const float own = error_of<qt::scheme<nf4, qt::group<64>>>(A, x), even = error_of<qt::int4_group<64>>(A, x);
  return own < even ? 0 : 1;  // normal weights are what its numbers are for
}
