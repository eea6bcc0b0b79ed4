// EXPECT-FIRST: qtensor: into(...) takes a matrix, tensor or span to write to, not a const one.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/expr/matmul.hpp>

namespace qt = qtensor;
const qt::tensor<qt::int8_per_tensor> W(qt::matrix_extents(4, 64));
const Eigen::MatrixXf X(64, 3);
#ifdef QTENSOR_VALID
Eigen::MatrixXf y(4, 3);
#else
const Eigen::MatrixXf y(4, 3);
#endif
void use() { qt::matmul(W, X, qt::into(y)); }
