// EXPECT-FIRST: qtensor: a policy of the slot zero_point names the format
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/scheme/scheme.hpp>

namespace qt = qtensor;
struct own {
  using slot = qt::slot::zero_point;
  static constexpr qt::fixed_string name = "own";
};
#ifdef QTENSOR_VALID
using choice = qt::scheme<qt::uint8, qt::group<32>, qt::zero_point<qt::uint8>>;
#else
using choice = qt::scheme<qt::uint8, qt::group<32>, own>;
#endif
constexpr choice* use = nullptr;
