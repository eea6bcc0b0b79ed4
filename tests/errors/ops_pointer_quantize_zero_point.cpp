// EXPECT-FIRST: qtensor: this scheme is symmetric; kernels::quantize takes no zero point
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/kernels.hpp>

namespace qt = qtensor;
#ifdef QTENSOR_VALID
void use(const float* x, std::uint8_t* to) { qt::kernels::quantize<qt::uint8_per_tensor>(x, 32, 1.f, 3, to); }
#else
void use(const float* x, std::int8_t* to) { qt::kernels::quantize<qt::int8_per_tensor>(x, 32, 1.f, 3, to); }
#endif
