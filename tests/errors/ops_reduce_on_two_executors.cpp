// EXPECT: qtensor: an operation runs on one executor
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/ops/reduce.hpp>

namespace qt = qtensor;
auto use(const qt::dense<float, 2>& x) {
#ifdef QTENSOR_VALID
  return qt::reduce(x, 0.f, qt::dimensions(1), qt::on(qt::serial()), qt::add);
#else
  return qt::reduce(x, 0.f, qt::dimensions(1), qt::on(qt::serial()), qt::add, qt::on(qt::serial()));
#endif
}
