// EXPECT-FIRST: qtensor: bounded_amax<n, d> bounds 1 / scale by n / d
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/policy/scale_rule.hpp>

namespace qt = qtensor;
#ifdef QTENSOR_VALID
constexpr qt::bounded_amax<1, 4> use{};
#else
constexpr qt::bounded_amax<-1, 4> use{};
#endif
