// EXPECT-FIRST: qtensor: this scheme is symmetric; kernels::dequantize takes no zero point
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/kernels.hpp>

namespace qt = qtensor;
#ifdef QTENSOR_VALID
void use(const std::uint8_t* x, float* to) { qt::kernels::dequantize<qt::uint8_per_tensor>(x, 32, 1.f, 3, to); }
#else
void use(const std::int8_t* x, float* to) { qt::kernels::dequantize<qt::int8_per_tensor>(x, 32, 1.f, 3, to); }
#endif
