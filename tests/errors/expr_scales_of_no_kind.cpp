// EXPECT-FIRST: qtensor: quantize<S>(x, how...) takes scales, zero points
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/qtensor.hpp>

namespace qt = qtensor;
struct opaque {};
#ifdef QTENSOR_VALID
auto use(const Eigen::MatrixXf& a) { return qt::quantize<qt::int8_per_tensor>(a, 0.5f); }
#else
auto use(const Eigen::MatrixXf& a) { return qt::quantize<qt::int8_per_tensor>(a, opaque{}); }
#endif
