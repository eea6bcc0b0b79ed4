// EXPECT: qtensor: quantize takes one tensor_level.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/expr/quantize.hpp>
#include <qtensor/scheme/schemes.hpp>

using namespace qtensor;
using two_levels = with<nvfp4, tensor_scale<f32>>;

void run(const Eigen::MatrixXf& x) {
  const auto level = tensor_level::of<two_levels>(3.f);
#ifdef QTENSOR_VALID
  quantize<two_levels>(x, level);
#else
  quantize<two_levels>(x, level, level);
#endif
}
