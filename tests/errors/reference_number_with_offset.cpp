// EXPECT: qtensor: a quantized number by itself is a code, a scale and a zero point
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/ops/elements.hpp>
#include <qtensor/scheme/schemes.hpp>

namespace qt = qtensor;
using u8 = qt::scheme<qt::uint8, qt::per_tensor, qt::zero_point<qt::uint8>, qt::static_only>;
#ifdef QTENSOR_VALID
qt::quantized_number<u8> n;
#else
qt::quantized_number<qt::scheme<qt::uint4, qt::group<32>, qt::offset<qt::f32>, qt::offset_min_max>> n;
#endif
