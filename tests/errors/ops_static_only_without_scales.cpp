// EXPECT-FIRST: qtensor: this scheme has no rule that computes scales
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/kernels.hpp>

namespace qt = qtensor;
using given = qt::with<qt::int8_per_tensor, qt::static_only>;
const float* x = nullptr;
#ifdef QTENSOR_VALID
auto use() { return qt::quantize<given>(qt::source(x, qt::extents(2, 32)), 0.5f); }
#else
auto use() { return qt::quantize<given>(qt::source(x, qt::extents(2, 32))); }
#endif
