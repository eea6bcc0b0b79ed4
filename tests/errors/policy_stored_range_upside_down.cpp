// EXPECT-FIRST: qtensor: stored_range<low, high> needs low < high
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/policy/stored.hpp>

namespace qt = qtensor;
#ifdef QTENSOR_VALID
constexpr qt::stored_range<-127, 127> use{};
#else
constexpr qt::stored_range<127, -127> use{};
#endif
