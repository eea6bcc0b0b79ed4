// EXPECT-FIRST: qtensor: stochastic rounding needs the index of each element
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/scheme/schemes.hpp>
#include <qtensor/simd/quantize.hpp>

namespace qt = qtensor;
using noisy = qt::with<qt::int8_per_tensor, qt::stochastic<>>;
#ifdef QTENSOR_VALID
void use(const float* x, std::int8_t* to) { qt::simd::encode_uniform<qt::int8_per_tensor>(x, 32, qt::element_scale{1.f}, 0, to); }
#else
void use(const float* x, std::int8_t* to) { qt::simd::encode_uniform<noisy>(x, 32, qt::element_scale{1.f}, 0, to); }
#endif
