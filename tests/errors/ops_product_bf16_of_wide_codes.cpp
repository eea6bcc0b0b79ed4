// EXPECT-FIRST: qtensor: bf16_math and f16_math take weights of at most 8 bits
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/ops/multiply.hpp>

namespace qt = qtensor;
const qt::tensor<qt::scheme<qt::int16, qt::per_tensor>> W(qt::matrix_extents(4, 64));
const float numbers[256] = {};
const qt::matrix_ref<const float> X{numbers, 4, 64, 64, 1};
const auto sink = [](const qt::product_tile&) {};
void use() { qt::multiply_tiles(W, X, sink, qt::bf16_math); }
