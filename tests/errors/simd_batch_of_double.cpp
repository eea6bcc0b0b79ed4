// EXPECT-FIRST: qtensor: batches have lanes of 8, 16 or 32 bits
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/simd/ops.hpp>

namespace qt = qtensor;
#ifdef QTENSOR_VALID
xsimd::batch<float, qt::simd::scalar_arch> use;
#else
xsimd::batch<double, qt::simd::scalar_arch> use;
#endif
