// EXPECT: qtensor: an operation runs on one executor
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/qtensor.hpp>

namespace qt = qtensor;
#ifdef QTENSOR_VALID
auto use(const Eigen::MatrixXf& x) { return qt::quantize<qt::mxfp4>(x, qt::on(qt::serial())); }
#else
auto use(const Eigen::MatrixXf& x) { return qt::quantize<qt::mxfp4>(x, qt::on(qt::serial()), qt::on(qt::serial())); }
#endif
