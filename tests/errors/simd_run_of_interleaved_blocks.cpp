// EXPECT-FIRST: qtensor: run kernels take planar layouts
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/scheme/schemes.hpp>
#include <qtensor/simd/quantize.hpp>

namespace qt = qtensor;
using blocks = qt::scheme<qt::int8, qt::group<32>, qt::interleaved<>>;
#ifdef QTENSOR_VALID
void use(const float* x, std::int8_t* to) { qt::simd::encode_uniform<qt::int8_group<32>>(x, 32, qt::element_scale{1.f}, 0, to); }
#else
void use(const float* x, std::uint8_t* to) { qt::simd::encode_uniform<blocks>(x, 32, qt::element_scale{1.f}, 0, to); }
#endif
