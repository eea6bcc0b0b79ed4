// EXPECT-FIRST: qtensor: this scheme stores more than codes and scales; quantize into a tensor
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/kernels.hpp>

namespace qt = qtensor;
#ifdef QTENSOR_VALID
void use(const float* x, std::int8_t* to, float* s) { qt::kernels::quantize<qt::int8_per_channel<0>>(x, 2, 32, to, s); }
#else
void use(const float* x, std::uint8_t* to, float* s) { qt::kernels::quantize<qt::uint8_per_channel<0>>(x, 2, 32, to, s); }
#endif
