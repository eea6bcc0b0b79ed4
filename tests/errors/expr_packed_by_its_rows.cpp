// EXPECT-FIRST: qtensor: packed weights sum over the columns of what was packed
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/expr/with_options.hpp>

namespace qt = qtensor;
const qt::tensor<qt::int8_per_tensor> W(qt::matrix_extents(4, 64));
const auto P = qt::pack(W);
const Eigen::MatrixXf X(3, 4);
#ifdef QTENSOR_VALID
const Eigen::MatrixXf Z(3, 64), y = Z * transpose(P);
#else
const Eigen::MatrixXf y = X * P;
#endif
