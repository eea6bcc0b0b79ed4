// EXPECT-FIRST: qtensor: this scheme stores more than scales and zero points; store them in a tensor
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/qtensor.hpp>

namespace qt = qtensor;
using two_levels = qt::with<qt::nvfp4, qt::tensor_scale<qt::f32>>;
#ifdef QTENSOR_VALID
auto use(const Eigen::MatrixXf& a) { return qt::quantize<two_levels>(a); }
#else
auto use(const Eigen::MatrixXf& a) { return qt::quantize<two_levels>(a, 0.5f); }
#endif
