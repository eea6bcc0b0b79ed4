// EXPECT: qtensor: an operation runs on one executor
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/kernels.hpp>

namespace qt = qtensor;
#ifdef QTENSOR_VALID
auto use(const float* x) { return qt::quantize<qt::mxfp4>(qt::source(x, qt::extents(2, 32)), qt::on(qt::serial())); }
#else
auto use(const float* x) {
  return qt::quantize<qt::mxfp4>(qt::source(x, qt::extents(2, 32)), qt::on(qt::serial()), qt::on(qt::serial()));
}
#endif
