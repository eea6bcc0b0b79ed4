// EXPECT: qtensor: reduce (C1): all inputs have one shape, hence one rank.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/ops/reduce.hpp>
#include <qtensor/scheme/schemes.hpp>

namespace qt = qtensor;
using u8 = qt::scheme<qt::uint8, qt::per_tensor, qt::zero_point<qt::uint8>, qt::static_only>;
qt::tensor<u8> x;
qt::tensor<u8, qt::extents<3>> vector;
auto both = [](auto a, auto b, auto, auto) { return std::tuple(a, b); };
auto zero = qt::number_like(x, 0.f);
#ifdef QTENSOR_VALID
auto y = qt::reduce(std::tie(x, x), std::tuple(zero, zero), qt::dimensions(0), both);
#else
auto y = qt::reduce(std::tie(x, vector), std::tuple(zero, zero), qt::dimensions(0), both);
#endif
