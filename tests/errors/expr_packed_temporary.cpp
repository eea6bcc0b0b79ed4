// EXPECT: deleted
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/expr/with_options.hpp>

namespace qt = qtensor;
const qt::tensor<qt::int8_per_tensor> W(qt::matrix_extents(4, 64));
const auto P = qt::pack(W);
const Eigen::VectorXf x(64);
#ifdef QTENSOR_VALID
const auto y = P * x;
#else
const auto y = qt::pack(W) * x;
#endif
