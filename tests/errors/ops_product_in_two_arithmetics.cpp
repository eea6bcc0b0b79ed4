// EXPECT-FIRST: qtensor: a product computes in one arithmetic
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/ops/product_options.hpp>

namespace qt = qtensor;
const auto options = qt::read_product_options(qt::bf16_math, qt::int8_activations);
