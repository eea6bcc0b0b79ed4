// Policies of one's own: which elements share a scale, what that scale is, and which neighbour a number goes to.
// SPDX-License-Identifier: BSD-3-Clause
#include <iostream>
#include <qtensor/qtensor.hpp>
#include <random>

namespace qt = qtensor;

// A granularity says how many neighbours on an axis share a scale: here two rows, as far as they go.
struct two_rows {
  static constexpr qt::fixed_string name = "two_rows";
  static constexpr qt::index_t block_extent(int rank, int axis, qt::index_t extent) {
    return axis == rank - 2 ? 2 : qt::per_tensor::block_extent(rank, axis, extent);
  }
};

// A rule names its statistics and makes a scale of them: here the largest numbers of a block saturate.
struct three_quarters {
  using slot = qt::slot::rule;
  using statistics = qt::absolute_maximum;
  static constexpr qt::fixed_string name = "three_quarters";
  template <qt::format Code, qt::format Scale>
  static constexpr float scale(float amax, qt::code_range codes) {
    return qt::amax_scale::scale<Code, Scale>(0.75f * amax, codes);
  }
};

// A rounding decides whether the magnitude steps up: here whatever is between two codes goes to the odd one.
struct to_odd {
  using slot = qt::slot::rounding;
  static constexpr qt::fixed_string name = "to_odd";
  static constexpr bool up(bool, bool odd, qt::remainder r) { return !odd && r != qt::remainder::zero; }
};
static_assert(qt::encode<qt::int8, to_odd>(2.25f) == 3 && qt::encode<qt::int8, to_odd>(3.75f) == 3);

template <class S>
float error_of(const Eigen::MatrixXf& A) {
  const qt::tensor<S> W = qt::quantize<S>(A);
  const float lost = (qt::dequantize(W) - A).norm() / A.norm();
  std::cout << "relative error " << lost << ", " << W.scales().size() << " scales: " << W << ' '
            << std::string_view(qt::choices<S>) << '\n';
  return lost;
}

int main() {
  std::mt19937 bits(1);
  std::normal_distribution<float> normal;
  const Eigen::MatrixXf A = Eigen::MatrixXf::NullaryExpr(64, 512, [&] { return normal(bits); });
  const float shared = error_of<qt::scheme<qt::int4, two_rows>>(A);
  const float clipped = error_of<qt::scheme<qt::int4, two_rows, three_quarters>>(A);
  const float odd = error_of<qt::scheme<qt::int4, two_rows, three_quarters, to_odd>>(A);
  return clipped < shared && clipped < odd ? 0 : 1;  // few normal weights are large; the nearest code is nearer
}
