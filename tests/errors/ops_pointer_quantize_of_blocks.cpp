// EXPECT-FIRST: qtensor: an interleaved scheme stores scales between its codes; quantize
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/kernels.hpp>

namespace qt = qtensor;
using blocks = qt::scheme<qt::int8, qt::group<32>, qt::interleaved<>>;
#ifdef QTENSOR_VALID
void use(const float* x, std::int8_t* to) { qt::kernels::quantize<qt::int8_per_tensor>(x, 32, 1.f, to); }
#else
void use(const float* x, std::uint8_t* to) { qt::kernels::quantize<blocks>(x, 32, 1.f, to); }
#endif
