// EXPECT: qtensor: fake_quantize takes nothing, scales, or scales and zero points
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/ops/fake_quantize.hpp>

namespace qt = qtensor;
using scheme = qt::scheme<qt::int8, qt::per_tensor>;
const float* x = nullptr;
#ifdef QTENSOR_VALID
auto use() { return qt::fake_quantize<scheme>(qt::source(x, qt::extents(2, 32)), 1.f); }
#else
auto use() { return qt::fake_quantize<scheme>(qt::source(x, qt::extents(2, 32)), 1.f, 3); }
#endif
