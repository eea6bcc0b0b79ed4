// EXPECT: qtensor: CANN's MX operators make e5m2, e4m3, e2m1 and e1m2 codes only.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/compat/cann.hpp>

namespace qt = qtensor;
namespace cann = qtensor::compat::cann;
const std::uint16_t* x = nullptr;
#ifdef QTENSOR_VALID
auto use() { return cann::dynamic_mx_quant<qt::e1m2>(qt::source<qt::f16>(x, qt::extents(2, 32))); }
#else
auto use() { return cann::dynamic_mx_quant<qt::e2m3>(qt::source<qt::f16>(x, qt::extents(2, 32))); }
#endif
