// EXPECT: qtensor: select_and_scatter (C1): element_type(operand) = element_type(source).
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/ops/select_and_scatter.hpp>
#include <qtensor/scheme/schemes.hpp>

namespace qt = qtensor;
using u8 = qt::scheme<qt::uint8, qt::per_tensor, qt::zero_point<qt::uint8>, qt::static_only>;
qt::tensor<u8> x;
qt::tensor<qt::int8_per_tensor> z;
auto zero = qt::number_like(x, 0.f);
auto ge = [](const auto& a, const auto& b) { return a.real() >= b.real(); };
#ifdef QTENSOR_VALID
auto y = qt::select_and_scatter(x, x, zero, qt::window<2>{}, ge, qt::add);
#else
auto y = qt::select_and_scatter(x, z, zero, qt::window<2>{}, ge, qt::add);
#endif
