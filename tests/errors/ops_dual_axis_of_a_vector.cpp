// EXPECT-FIRST: qtensor: quantize_dual_axis quantizes along the last two axes
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/kernels.hpp>

namespace qt = qtensor;
const float* x = nullptr;
#ifdef QTENSOR_VALID
auto use() { return qt::quantize_dual_axis<qt::mxfp8_e4m3>(qt::source(x, qt::extents(1, 32))); }
#else
auto use() { return qt::quantize_dual_axis<qt::mxfp8_e4m3>(qt::source(x, qt::extents(32))); }
#endif
