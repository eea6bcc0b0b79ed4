// EXPECT-FIRST: qtensor: matmul<Out> gives f32, bf16 or f16, or a tensor of a scheme
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/expr/matmul.hpp>

namespace qt = qtensor;
const qt::tensor<qt::int8_per_tensor> W(qt::matrix_extents(4, 64));
const Eigen::MatrixXf X(64, 3);
const auto y = qt::matmul<qt::int8>(W, X);
