// EXPECT: qtensor: reduce, front to back: the body takes (element, accumulator)
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/ops/reduce_presets.hpp>
#include <qtensor/scheme/schemes.hpp>

namespace qt = qtensor;
using u8 = qt::scheme<qt::uint8, qt::per_tensor, qt::zero_point<qt::uint8>, qt::static_only>;
qt::tensor<u8> x;
#ifdef QTENSOR_VALID
auto y = qt::rfc::front_to_back(x, 0.f, qt::dimensions(0), [](auto e, float a) { return a + e.real(); });
#else
auto y = qt::rfc::front_to_back(x, 0.f, qt::dimensions(0), [](auto e, float) { return e; });
#endif
