// EXPECT-FIRST: qtensor: quantize takes expressions of float, Eigen::half or Eigen::bfloat16
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/qtensor.hpp>

namespace qt = qtensor;
#ifdef QTENSOR_VALID
auto use(const Eigen::MatrixXd& a) { return qt::quantize<qt::mxfp4>(a.cast<float>()); }
#else
auto use(const Eigen::MatrixXd& a) { return qt::quantize<qt::mxfp4>(a); }
#endif
