// EXPECT-FIRST: qtensor: quantize takes scales, or scales and zero points
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/qtensor.hpp>

namespace qt = qtensor;
#ifdef QTENSOR_VALID
auto use(const Eigen::MatrixXf& a) { return qt::quantize<qt::uint8_per_tensor>(a, 0.5f, 3); }
#else
auto use(const Eigen::MatrixXf& a) { return qt::quantize<qt::uint8_per_tensor>(a, 0.5f, 3, 4); }
#endif
