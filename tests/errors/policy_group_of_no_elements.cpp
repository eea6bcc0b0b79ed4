// EXPECT-FIRST: qtensor: group<N> needs a positive N
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/policy/granularity.hpp>

namespace qt = qtensor;
#ifdef QTENSOR_VALID
constexpr qt::group<32> use{};
#else
constexpr qt::group<0> use{};
#endif
