// EXPECT-FIRST: qtensor: quantize<S>(x, scales) or quantize<S>(x, scales, zero_points)
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/kernels.hpp>

namespace qt = qtensor;
using groups = qt::scheme<qt::int8, qt::group<qt::dynamic>>;
const float* x = nullptr;
#ifdef QTENSOR_VALID
auto use() { return qt::quantize<groups>(qt::source(x, qt::extents(1, 32)), qt::group<qt::dynamic>(32)); }
#else
auto use() { return qt::quantize<groups>(qt::source(x, qt::extents(1, 32)), qt::group<qt::dynamic>(32), 0.5f); }
#endif
