// EXPECT-FIRST: qtensor: with_scales takes scales, or scales and zero points
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/ops/product_options.hpp>

namespace qt = qtensor;
const auto scales = qt::with_scales(1.f, 2, 3);
