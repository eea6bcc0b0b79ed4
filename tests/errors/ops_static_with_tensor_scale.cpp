// EXPECT-FIRST: qtensor: this scheme stores more than scales and zero points; store them in a tensor
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/kernels.hpp>

namespace qt = qtensor;
using two_levels = qt::with<qt::nvfp4, qt::tensor_scale<qt::f32>>;
const float* x = nullptr;
#ifdef QTENSOR_VALID
auto use() { return qt::quantize<two_levels>(qt::source(x, qt::extents(1, 32))); }
#else
auto use() { return qt::quantize<two_levels>(qt::source(x, qt::extents(1, 32)), 0.5f); }
#endif
