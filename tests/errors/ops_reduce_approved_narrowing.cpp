// EXPECT: qtensor: reduce (C6): is_promotable(element_type(inputs), E)
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/ops/reduce_presets.hpp>
#include <qtensor/scheme/schemes.hpp>

namespace qt = qtensor;
using u8 = qt::scheme<qt::uint8, qt::per_tensor, qt::zero_point<qt::uint8>, qt::static_only>;
qt::tensor<u8> x;
#ifdef QTENSOR_VALID
auto y = qt::rfc::shipped(x, qt::number_like(x, 0.f), qt::dimensions(0), qt::requantize_to<u8>(1.f), qt::add);
#else
auto y = qt::rfc::shipped(x, qt::number_like(x, 0.f), qt::dimensions(0), qt::convert_to<qt::f32>{}, qt::add);
#endif
