// EXPECT-FIRST: qtensor: a policy that goes into with<Scheme, P...> names itself, too
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/scheme/scheme.hpp>

namespace qt = qtensor;
struct halves : qt::amax_scale {
#ifdef QTENSOR_VALID
  static constexpr qt::fixed_string name = "halves";
#else
  static constexpr int name = 0;
#endif
};
using choice = qt::with<qt::scheme<qt::int8, qt::per_tensor>, halves>;
constexpr choice* use = nullptr;
