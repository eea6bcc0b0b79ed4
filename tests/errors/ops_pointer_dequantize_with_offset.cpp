// EXPECT-FIRST: qtensor: this scheme stores more than a scale and a zero point; use a tensor or a view of it.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/ops/kernels.hpp>
#include <qtensor/scheme/schemes.hpp>

namespace qt = qtensor;
#ifdef QTENSOR_VALID
using S = qt::scheme<qt::uint8, qt::per_tensor, qt::static_only>;
#else
using S = qt::scheme<qt::uint8, qt::per_tensor, qt::offset<qt::f32>, qt::static_only>;
#endif
void use(const std::uint8_t* codes, float* out) { qt::kernels::dequantize<S>(codes, 32, 0.5f, out); }
