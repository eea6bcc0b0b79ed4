// EXPECT-FIRST: qtensor: quantize takes expressions of float
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/qtensor.hpp>

namespace qt = qtensor;

const Eigen::MatrixXi A(4, 32);
#ifdef QTENSOR_VALID
const auto q = qt::quantize<qt::int8_per_tensor>(A.cast<float>());
#else
const auto q = qt::quantize<qt::int8_per_tensor>(A);
#endif
