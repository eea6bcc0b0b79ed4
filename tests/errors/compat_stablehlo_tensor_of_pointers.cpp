// EXPECT: qtensor: a StableHLO tensor copies an array of numbers.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/compat/stablehlo.hpp>

namespace shlo = qtensor::compat::stablehlo;
#ifdef QTENSOR_VALID
auto use(std::span<const float> x) { return shlo::tensor(shlo::basic_type::f32, {2}, x); }
#else
auto use(std::span<const float* const> x) { return shlo::tensor(shlo::basic_type::f32, {2}, x); }
#endif
