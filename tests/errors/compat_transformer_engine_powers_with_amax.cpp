// EXPECT: qtensor: powers of two have one level of scales
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/compat/transformer_engine.hpp>

namespace qt = qtensor;
namespace te = qtensor::compat::transformer_engine;
#ifdef QTENSOR_VALID
using scheme = te::nvfp4_2d;
#else
using scheme = te::nvfp4_powers_2d;
#endif
auto use(const float* x) { return te::quantize<scheme>(qt::source(x, qt::extents(16, 16)), 1.f); }
