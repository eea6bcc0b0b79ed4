// EXPECT-FIRST: qtensor: the slot nonfinite_block takes block_propagates
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/scheme/scheme.hpp>

namespace qt = qtensor;
struct own {
  using slot = qt::slot::nonfinite_block;
  static constexpr qt::fixed_string name = "own";
};
#ifdef QTENSOR_VALID
using choice = qt::scheme<qt::e4m3, qt::group<32>, qt::block_ignores>;
#else
using choice = qt::scheme<qt::e4m3, qt::group<32>, own>;
#endif
constexpr choice* use = nullptr;
