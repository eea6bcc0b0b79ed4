// EXPECT-FIRST: qtensor: interleaved_groups<N> needs at least one group
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/policy/layout.hpp>

namespace qt = qtensor;
#ifdef QTENSOR_VALID
using choice = qt::interleaved_groups<4>;
#else
using choice = qt::interleaved_groups<0>;
#endif
constexpr auto use = choice::groups;
