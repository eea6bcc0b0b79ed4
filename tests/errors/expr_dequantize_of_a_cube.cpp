// EXPECT-FIRST: qtensor: Eigen sees matrices; take one of this tensor with matrix(i, ...)
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/qtensor.hpp>

namespace qt = qtensor;
using cube = qt::tensor<qt::int8_per_tensor, qt::extents<2, 3, 4>>;
#ifdef QTENSOR_VALID
Eigen::MatrixXf use(const cube& w) { return qt::dequantize(w.view().matrix(0)); }
#else
Eigen::MatrixXf use(const cube& w) { return qt::dequantize(w); }
#endif
