// EXPECT-FIRST: qtensor: a policy names a slot that schemes do not have
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/scheme/scheme.hpp>

namespace qt = qtensor;
struct polished {
  struct slot {};
  static constexpr qt::fixed_string name = "polished";
};
#ifdef QTENSOR_VALID
using choice = qt::scheme<qt::int8, qt::per_tensor, qt::nearest_away>;
#else
using choice = qt::scheme<qt::int8, qt::per_tensor, polished>;
#endif
constexpr choice* use = nullptr;
