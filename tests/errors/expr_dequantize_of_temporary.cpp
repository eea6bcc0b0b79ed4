// EXPECT-FIRST: deleted
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/qtensor.hpp>

namespace qt = qtensor;
using weights = qt::tensor<qt::int8_per_tensor>;
weights make();
#ifdef QTENSOR_VALID
Eigen::MatrixXf use() {
  const weights w = make();
  return qt::dequantize(w);
}
#else
auto use() { return qt::dequantize(make()).eval(); }
#endif
