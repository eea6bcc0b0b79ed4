// EXPECT-FIRST: qtensor: a layout names the order of its codes
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/scheme/scheme.hpp>

namespace qt = qtensor;
struct own {
  using slot = qt::slot::layout;
  static constexpr qt::fixed_string name = "own";
};
#ifdef QTENSOR_VALID
using choice = qt::scheme<qt::e4m3, qt::group<32>, qt::planar<>>;
#else
using choice = qt::scheme<qt::e4m3, qt::group<32>, own>;
#endif
constexpr choice* use = nullptr;
