// EXPECT-FIRST: qtensor: the slot zero_point_order takes zp_after_round
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/scheme/scheme.hpp>

namespace qt = qtensor;
struct own {
  using slot = qt::slot::zero_point_order;
  static constexpr qt::fixed_string name = "own";
};
#ifdef QTENSOR_VALID
using choice = qt::scheme<qt::e4m3, qt::group<32>, qt::zp_before_round>;
#else
using choice = qt::scheme<qt::e4m3, qt::group<32>, own>;
#endif
constexpr choice* use = nullptr;
