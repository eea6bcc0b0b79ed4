// EXPECT-FIRST: deleted
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/qtensor.hpp>

namespace qt = qtensor;
using weights = qt::tensor<qt::int8_per_tensor>;
weights make();
#ifdef QTENSOR_VALID
Eigen::VectorXf use(const Eigen::VectorXf& x) {
  const weights w = make();
  return w * x;
}
#else
auto use(const Eigen::VectorXf& x) { return (make() * x).eval(); }
#endif
