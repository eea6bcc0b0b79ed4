// EXPECT-FIRST: qtensor: this scheme stores more than codes and scales; dequantize a view
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/kernels.hpp>

namespace qt = qtensor;
#ifdef QTENSOR_VALID
void use(const std::int8_t* x, const float* s, float* to) { qt::kernels::dequantize<qt::int8_per_channel<0>>(x, s, 2, 32, to); }
#else
void use(const std::uint8_t* x, const float* s, float* to) { qt::kernels::dequantize<qt::uint8_per_channel<0>>(x, s, 2, 32, to); }
#endif
