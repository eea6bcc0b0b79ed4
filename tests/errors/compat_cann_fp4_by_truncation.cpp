// EXPECT: qtensor: CANN's round modes are rint
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/compat/cann.hpp>

namespace qt = qtensor;
namespace cann = qtensor::compat::cann;
const std::uint16_t* x = nullptr;
#ifdef QTENSOR_VALID
auto use() {
  return cann::dynamic_mx_quant<qt::e1m2, -1, qt::nearest_away>(qt::source<qt::bf16>(x, qt::extents(2, 32)));
}
#else
auto use() {
  return cann::dynamic_mx_quant<qt::e1m2, -1, qt::toward_zero>(qt::source<qt::bf16>(x, qt::extents(2, 32)));
}
#endif
