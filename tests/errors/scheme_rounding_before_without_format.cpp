// EXPECT-FIRST: qtensor: the `before` of a rounding policy is a template over the format
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/scheme/scheme.hpp>

namespace qt = qtensor;
struct own {
  using slot = qt::slot::rounding;
  static constexpr qt::fixed_string name = "own";
  static constexpr bool up(bool, bool, qt::remainder r) { return r > qt::remainder::half; }
#ifdef QTENSOR_VALID
  template <class F>
#endif
  static constexpr float before(float x) {
    return x + 1;
  }
};
using choice = qt::scheme<qt::int8, qt::per_tensor, own>;
constexpr choice* use = nullptr;
