// EXPECT: qtensor: a convolution is quantized to codes of 8 bits.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/ops/convolution_sinks.hpp>
#include <qtensor/scheme/schemes.hpp>

using namespace qtensor;
#if defined(QTENSOR_VALID)
using codes = scheme<int8, per_tensor, static_only>;
#else
using codes = scheme<int4, per_tensor, static_only>;
#endif

void f(const packed_convolution<>& w, const convolution_input& x,
       const convolution_result<simd::code_unit_t<codes>>& y) {
  convolve_into<codes>(w, x, {}, 1.f, 0, y);
}
