// EXPECT-FIRST: qtensor: quantize_dual_axis reads its source once
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/kernels.hpp>

namespace qt = qtensor;
using two_levels = qt::with<qt::nvfp4, qt::tensor_scale<qt::f32>>;
const float* x = nullptr;
#ifdef QTENSOR_VALID
auto use() { return qt::quantize_dual_axis<qt::nvfp4>(qt::source(x, qt::extents(16, 32))); }
#else
auto use() { return qt::quantize_dual_axis<two_levels>(qt::source(x, qt::extents(16, 32))); }
#endif
