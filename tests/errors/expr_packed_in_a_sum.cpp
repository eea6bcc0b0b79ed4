// EXPECT-FIRST: qtensor: packed weights and weights with options only multiply
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/expr/with_options.hpp>

namespace qt = qtensor;
const qt::tensor<qt::int8_per_tensor> W(qt::matrix_extents(4, 64));
const auto P = qt::pack(W);
const Eigen::MatrixXf y = W.with(qt::bf16_math).matrix + (2.f * P);
