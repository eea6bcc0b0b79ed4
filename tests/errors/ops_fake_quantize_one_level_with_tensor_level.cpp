// EXPECT: qtensor: fake_quantize takes a tensor_level for dynamic schemes of two levels.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/ops/fake_quantize.hpp>
#include <qtensor/scheme/schemes.hpp>

namespace qt = qtensor;
const float* x = nullptr;
#ifdef QTENSOR_VALID
using choice = qt::with<qt::nvfp4, qt::tensor_scale<qt::f32>>;
#else
using choice = qt::nvfp4;
#endif
auto use() { return qt::fake_quantize<choice>(qt::source(x, qt::extents(4, 32)), qt::tensor_level::of_scale(0.5f)); }
