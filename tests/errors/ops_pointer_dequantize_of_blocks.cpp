// EXPECT-FIRST: qtensor: an interleaved scheme stores scales between its codes; dequantize
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/kernels.hpp>

namespace qt = qtensor;
using blocks = qt::scheme<qt::int8, qt::group<32>, qt::interleaved<>>;
#ifdef QTENSOR_VALID
void use(const std::int8_t* x, float* to) { qt::kernels::dequantize<qt::int8_per_tensor>(x, 32, 1.f, to); }
#else
void use(const std::uint8_t* x, float* to) { qt::kernels::dequantize<blocks>(x, 32, 1.f, to); }
#endif
