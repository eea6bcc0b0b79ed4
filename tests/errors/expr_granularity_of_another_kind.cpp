// EXPECT-FIRST: qtensor: the granularity given to quantize is not of the scheme's type
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/qtensor.hpp>

namespace qt = qtensor;
using groups = qt::scheme<qt::int8, qt::group<qt::dynamic>>;
const qt::group<qt::dynamic> g(32);
#ifdef QTENSOR_VALID
auto use(const Eigen::MatrixXf& a) { return qt::quantize<groups>(a, g); }
#else
auto use(const Eigen::MatrixXf& a) { return qt::quantize<groups>(a, qt::per_tensor{}); }
#endif
