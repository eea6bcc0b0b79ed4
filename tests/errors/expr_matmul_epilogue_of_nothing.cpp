// EXPECT-FIRST: qtensor: the epilogue of matmul returns an Eigen expression of floats
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/expr/matmul.hpp>

namespace qt = qtensor;
const qt::tensor<qt::int8_per_tensor> W(qt::matrix_extents(4, 64));
const Eigen::MatrixXf X(64, 3);
const auto y = qt::matmul(W, X, [](auto acc, qt::tile) { acc.sum(); });
