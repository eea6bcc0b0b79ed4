// EXPECT-FIRST: qtensor: static quantization takes scales and zero points where the scheme has a zero point
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/qtensor.hpp>

namespace qt = qtensor;

const Eigen::MatrixXf A(4, 32);
#ifdef QTENSOR_VALID
const auto q = qt::quantize<qt::int8_per_tensor>(A, 0.1f);
#else
const auto q = qt::quantize<qt::int8_per_tensor>(A, 0.1f, 3);
#endif
