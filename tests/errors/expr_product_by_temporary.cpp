// EXPECT: deleted
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/qtensor.hpp>

namespace qt = qtensor;

qt::tensor<qt::mxfp4> make() { return qt::tensor<qt::mxfp4>(qt::matrix_extents(4, 32)); }
const Eigen::MatrixXf X(3, 4);
#ifdef QTENSOR_VALID
const auto W = make();
const auto y = X * W;
#else
const auto y = X * make();
#endif
