// EXPECT-FIRST: qtensor: static quantization takes scales and zero points
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/kernels.hpp>

namespace qt = qtensor;
const float* x = nullptr;
#ifdef QTENSOR_VALID
auto use() { return qt::quantize<qt::uint8_per_tensor>(qt::source(x, qt::extents(1, 32)), 0.5f, 128); }
#else
auto use() { return qt::quantize<qt::uint8_per_tensor>(qt::source(x, qt::extents(1, 32)), 0.5f); }
#endif
