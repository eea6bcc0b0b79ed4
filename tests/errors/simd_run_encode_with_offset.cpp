// EXPECT: qtensor: run kernels encode without offsets; quantize a tensor of a scheme that has one.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/simd/quantize.hpp>

using namespace qtensor;

#ifdef QTENSOR_VALID
using scale_only = scheme<uint8, per_tensor, static_only>;
#else
using scale_only = scheme<uint8, per_tensor, offset<f32>, static_only>;
#endif

void encode(const float* x, std::uint8_t* codes) {
  simd::encode_uniform<scale_only>(x, 4, element_scale{1.f}, 0, codes);
}
