// EXPECT-FIRST: qtensor: quantize<S>(x) takes a scheme, not a number format
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/qtensor.hpp>

namespace qt = qtensor;

const Eigen::MatrixXf A(4, 32);
#ifdef QTENSOR_VALID
const auto q = qt::quantize<qt::int8_per_tensor>(2.f * A);
#else
const auto q = qt::quantize<qt::int8>(2.f * A);
#endif
