// EXPECT-FIRST: qtensor: the groups of a quantized operand lie across the sum
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/ops/multiply.hpp>

namespace qt = qtensor;
const qt::tensor<qt::int4_group<32>> W(qt::matrix_extents(4, 64));
const qt::tensor<qt::along<0, qt::mxfp8_e4m3>> X(qt::matrix_extents(4, 64));
const auto sink = [](const qt::product_tile&) {};
#ifdef QTENSOR_VALID
void use(const qt::tensor<qt::mxfp8_e4m3>& right) { qt::multiply_tiles(W, right, sink); }
#else
void use() { qt::multiply_tiles(W, X, sink); }
#endif
