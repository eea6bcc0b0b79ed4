// EXPECT: qtensor: CANN's scaleAlg 1 (mx_rceil) is for FP8 only.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/compat/cann.hpp>

namespace qt = qtensor;
namespace cann = qtensor::compat::cann;
const std::uint16_t* x = nullptr;
#ifdef QTENSOR_VALID
auto use() {
  return cann::dynamic_mx_quant<qt::e4m3, -1, qt::nearest_even, qt::mx_rceil>(
      qt::source<qt::bf16>(x, qt::extents(2, 32)));
}
#else
auto use() {
  return cann::dynamic_mx_quant<qt::e2m1, -1, qt::nearest_even, qt::mx_rceil>(
      qt::source<qt::bf16>(x, qt::extents(2, 32)));
}
#endif
