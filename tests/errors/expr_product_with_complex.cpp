// EXPECT-FIRST: qtensor: products with quantized matrices are of float
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/qtensor.hpp>

namespace qt = qtensor;
using weights = qt::tensor<qt::int8_per_tensor>;
#ifdef QTENSOR_VALID
void use(const weights& w, const Eigen::VectorXcf& x, Eigen::VectorXf& y) { y.noalias() = qt::dequantize(w) * x.real(); }
#else
void use(const weights& w, const Eigen::VectorXcf& x, Eigen::VectorXcf& y) { y.noalias() = qt::dequantize(w) * x; }
#endif
