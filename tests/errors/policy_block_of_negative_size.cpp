// EXPECT-FIRST: qtensor: block<...> takes positive sizes
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/policy/granularity.hpp>

namespace qt = qtensor;
#ifdef QTENSOR_VALID
constexpr qt::block<128, qt::whole> use{};
#else
constexpr qt::block<128, -2> use{};
#endif
