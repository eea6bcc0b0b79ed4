// EXPECT-FIRST: qtensor: matmul takes one into(...)
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/expr/matmul.hpp>

namespace qt = qtensor;
const qt::tensor<qt::int8_per_tensor> W(qt::matrix_extents(4, 64));
const Eigen::MatrixXf X(64, 3);
Eigen::MatrixXf y, z;
void use() { qt::matmul(W, X, qt::into(y), qt::into(z)); }
