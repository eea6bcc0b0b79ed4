// EXPECT-FIRST: qtensor: quantized matrices combine with Eigen expressions of float
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/qtensor.hpp>

namespace qt = qtensor;
using weights = qt::tensor<qt::int8_per_tensor>;
#ifdef QTENSOR_VALID
Eigen::MatrixXf use(const weights& w, const Eigen::MatrixXd& x) { return x.cast<float>() + w; }
#else
Eigen::MatrixXd use(const weights& w, const Eigen::MatrixXd& x) { return x + w; }
#endif
