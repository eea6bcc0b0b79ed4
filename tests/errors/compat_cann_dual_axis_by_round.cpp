// EXPECT: qtensor: CANN rounds to FP8 by rint (nearest_even) only
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/compat/cann.hpp>

namespace qt = qtensor;
namespace cann = qtensor::compat::cann;
const std::uint16_t* x = nullptr;
#ifdef QTENSOR_VALID
auto use() { return cann::dynamic_mx_quant_with_dual_axis<qt::e5m2>(qt::source<qt::bf16>(x, qt::extents(2, 32))); }
#else
auto use() {
  return cann::dynamic_mx_quant_with_dual_axis<qt::e5m2, qt::nearest_away>(qt::source<qt::bf16>(x, qt::extents(2, 32)));
}
#endif
