// EXPECT: qtensor: reduce (C3): there are as many init values as inputs.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/ops/reduce_presets.hpp>
#include <qtensor/scheme/schemes.hpp>

namespace qt = qtensor;
using u8 = qt::scheme<qt::uint8, qt::per_tensor, qt::zero_point<qt::uint8>, qt::static_only>;
qt::tensor<u8> x;
auto body = [](auto, auto, auto a) { return a; };
auto body2 = [](auto, auto, auto a, auto b) { return std::tuple(a, b); };
auto zero = qt::number_like(x, 0.f);
#ifdef QTENSOR_VALID
auto y = qt::rfc::front_to_back(std::tie(x, x), std::tuple(zero, zero), qt::dimensions(0), body2);
#else
auto y = qt::rfc::front_to_back(std::tie(x, x), zero, qt::dimensions(0), body);
#endif
