// EXPECT-FIRST: qtensor: matmul takes one with_scales(...)
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/expr/matmul.hpp>

namespace qt = qtensor;
const qt::tensor<qt::int8_per_tensor> W(qt::matrix_extents(4, 64));
const Eigen::MatrixXf X(64, 3);
const auto y = qt::matmul<qt::int8_per_tensor>(W, X, qt::with_scales(1.f), qt::with_scales(2.f));
