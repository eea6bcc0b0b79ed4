// EXPECT: qtensor: CANN takes ranks 1 to 7
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/compat/cann.hpp>

namespace qt = qtensor;
namespace cann = qtensor::compat::cann;
const std::uint16_t* x = nullptr;
#ifdef QTENSOR_VALID
auto use() { return cann::dynamic_mx_quant<qt::e4m3>(qt::source<qt::bf16>(x, qt::extents(1, 1, 1, 1, 1, 2, 32))); }
#else
auto use() { return cann::dynamic_mx_quant<qt::e4m3>(qt::source<qt::bf16>(x, qt::extents(1, 1, 1, 1, 1, 1, 2, 32))); }
#endif
