// EXPECT-FIRST: qtensor: quantized matrices combine with Eigen expressions of float
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/qtensor.hpp>

namespace qt = qtensor;
using weights = qt::tensor<qt::int8_per_tensor>;
#ifdef QTENSOR_VALID
Eigen::VectorXf use(const weights& w, const Eigen::VectorXd& x) { return w * x.cast<float>(); }
#else
Eigen::VectorXd use(const weights& w, const Eigen::VectorXd& x) { return w * x; }
#endif
