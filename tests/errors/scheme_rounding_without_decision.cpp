// EXPECT-FIRST: qtensor: a rounding policy needs up(negative, odd, remainder)
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/scheme/scheme.hpp>

namespace qt = qtensor;
struct undecided {
  using slot = qt::slot::rounding;
  static constexpr qt::fixed_string name = "undecided";
};
struct upward : undecided {
  static constexpr qt::fixed_string name = "upward";
  static constexpr bool up(bool, bool, qt::remainder r) { return r != qt::remainder::zero; }
};
#ifdef QTENSOR_VALID
using choice = qt::scheme<qt::int8, qt::per_tensor, upward>;
#else
using choice = qt::scheme<qt::int8, qt::per_tensor, undecided>;
#endif
constexpr choice* use = nullptr;
