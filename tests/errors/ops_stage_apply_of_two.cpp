// EXPECT-FIRST: qtensor: stage::apply takes a function of one float
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/ops/epilogue.hpp>

namespace qt = qtensor;
const auto stage = qt::stage::apply([](float a, float b) { return a + b; });
