// EXPECT: qtensor: memory is quantized into a tensor of the same rank.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/ops/quantize.hpp>
#include <qtensor/scheme/schemes.hpp>

namespace qt = qtensor;
const float* x = nullptr;
#ifdef QTENSOR_VALID
void use(qt::tensor<qt::int8_per_tensor>& t) { qt::quantize_into(t, qt::source(x, qt::extents(4, 6))); }
#else
void use(qt::tensor<qt::int8_per_tensor>& t) { qt::quantize_into(t, qt::source(x, qt::extents(2, 2, 6))); }
#endif
