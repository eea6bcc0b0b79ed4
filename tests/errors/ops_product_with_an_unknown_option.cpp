// EXPECT-FIRST: qtensor: a product takes bf16_math, f16_math, int8_activations
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/ops/product_options.hpp>

namespace qt = qtensor;
const auto options = qt::read_product_options(3);
