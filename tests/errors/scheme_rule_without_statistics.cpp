// EXPECT-FIRST: qtensor: a scale rule names its statistics
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/scheme/scheme.hpp>

namespace qt = qtensor;
struct own {
  using slot = qt::slot::rule;
  static constexpr qt::fixed_string name = "own";
  template <class Code, class Scale>
  static constexpr float scale(float amax, qt::code_range) {
    return amax;
  }
};
#ifdef QTENSOR_VALID
using choice = qt::scheme<qt::e4m3, qt::group<32>, qt::amax_scale>;
#else
using choice = qt::scheme<qt::e4m3, qt::group<32>, own>;
#endif
constexpr choice* use = nullptr;
