// EXPECT-FIRST: qtensor: scheme<F, G, P...> ends with policies
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/scheme/scheme.hpp>

namespace qt = qtensor;
struct upward {
  using slot = qt::slot::rounding;
#ifdef QTENSOR_VALID
  static constexpr qt::fixed_string name = "upward";
#endif
  static constexpr bool up(bool, bool, qt::remainder r) { return r != qt::remainder::zero; }
};
using choice = qt::scheme<qt::e2m1, qt::group<32>, upward>;
constexpr choice* use = nullptr;
