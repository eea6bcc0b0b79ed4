// EXPECT-FIRST: qtensor: an Eigen expression is a matrix; quantize it into a span of rank 2
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/qtensor.hpp>

namespace qt = qtensor;
using cube = qt::tensor<qt::int8_per_tensor, qt::extents<2, 3, 4>>;
using weights = qt::tensor<qt::int8_per_tensor>;
#ifdef QTENSOR_VALID
void use(weights& w, const Eigen::MatrixXf& a) { qt::quantize_into(w, a); }
#else
void use(cube& w, const Eigen::MatrixXf& a) { qt::quantize_into(w, a); }
#endif
