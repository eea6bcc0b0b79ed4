// EXPECT-FIRST: qtensor: calibration gives one scale and zero point
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/kernels.hpp>

namespace qt = qtensor;
using two_levels = qt::with<qt::nvfp4, qt::tensor_scale<qt::f32>>;
#ifdef QTENSOR_VALID
auto use(const qt::range_calibrator& seen) { return seen.parameters<qt::int8_per_tensor>(); }
#else
auto use(const qt::range_calibrator& seen) { return seen.parameters<two_levels>(); }
#endif
