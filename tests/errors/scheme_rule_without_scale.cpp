// EXPECT-FIRST: qtensor: a scale rule has the function that its statistics ask for
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/scheme/scheme.hpp>

namespace qt = qtensor;
struct own {
  using slot = qt::slot::rule;
  using statistics = qt::absolute_maximum;
  static constexpr qt::fixed_string name = "own";
#ifdef QTENSOR_VALID
  template <class Code, class Scale>
#endif
  static constexpr float scale(float amax, qt::code_range codes) {
    return amax / codes.high;
  }
};
using choice = qt::scheme<qt::e4m3, qt::group<32>, own>;
constexpr choice* use = nullptr;
