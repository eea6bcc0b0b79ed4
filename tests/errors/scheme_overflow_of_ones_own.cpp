// EXPECT-FIRST: qtensor: the slot overflow takes saturate or to_special
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/scheme/scheme.hpp>

namespace qt = qtensor;
struct own {
  using slot = qt::slot::overflow;
  static constexpr qt::fixed_string name = "own";
};
#ifdef QTENSOR_VALID
using choice = qt::scheme<qt::e4m3, qt::group<32>, qt::to_special>;
#else
using choice = qt::scheme<qt::e4m3, qt::group<32>, own>;
#endif
constexpr choice* use = nullptr;
