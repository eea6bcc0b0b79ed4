// EXPECT-FIRST: qtensor: sources are f32, bf16 or f16
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/kernels.hpp>

namespace qt = qtensor;
#ifdef QTENSOR_VALID
void use(const float* x) { qt::source(x, qt::extents(2, 32)); }
#else
void use(const double* x) { qt::source(x, qt::extents(2, 32)); }
#endif
