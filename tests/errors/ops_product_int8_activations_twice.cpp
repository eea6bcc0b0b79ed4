// EXPECT-FIRST: qtensor: int8_activations quantizes activations of floats
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/ops/multiply.hpp>

namespace qt = qtensor;
const qt::tensor<qt::int8_per_tensor> W(qt::matrix_extents(4, 64));
const auto sink = [](const qt::product_tile&) {};
void use() { qt::multiply_tiles(W, W, sink, qt::int8_activations); }
