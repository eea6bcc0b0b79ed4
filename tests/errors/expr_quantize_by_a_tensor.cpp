// EXPECT-FIRST: qtensor: quantize<S>(x) takes a scheme, not a tensor
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/qtensor.hpp>

namespace qt = qtensor;

const Eigen::MatrixXf A(4, 32);
#ifdef QTENSOR_VALID
const auto q = qt::quantize<qt::mxfp4>(2.f * A);
#else
const auto q = qt::quantize<qt::tensor<qt::mxfp4>>(2.f * A);
#endif
