// EXPECT-FIRST: qtensor: mx_dynamic_range<max> takes 0 or 6 to 12
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/policy/scale_rule.hpp>

namespace qt = qtensor;
#ifdef QTENSOR_VALID
constexpr qt::mx_dynamic_range<6> use{};
#else
constexpr qt::mx_dynamic_range<5> use{};
#endif
