// EXPECT-FIRST: qtensor: a rule computes scale and zero point of the same block
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/kernels.hpp>

namespace qt = qtensor;
using own = qt::scheme<qt::uint4, qt::group<32>, qt::zero_point<qt::uint4, qt::per_channel<0>>>;
const float* x = nullptr;
#ifdef QTENSOR_VALID
auto use() { return qt::quantize<own>(qt::source(x, qt::extents(1, 32)), 0.5f, 3); }
#else
auto use() { return qt::quantize<own>(qt::source(x, qt::extents(1, 32))); }
#endif
