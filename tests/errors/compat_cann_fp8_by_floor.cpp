// EXPECT: qtensor: CANN rounds to FP8 by rint (nearest_even) only
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/compat/cann.hpp>

namespace qt = qtensor;
namespace cann = qtensor::compat::cann;
const std::uint16_t* x = nullptr;
#ifdef QTENSOR_VALID
auto use() {
  return cann::dynamic_mx_quant<qt::e2m1, -1, qt::toward_negative>(qt::source<qt::bf16>(x, qt::extents(2, 32)));
}
#else
auto use() {
  return cann::dynamic_mx_quant<qt::e4m3, -1, qt::toward_negative>(qt::source<qt::bf16>(x, qt::extents(2, 32)));
}
#endif
