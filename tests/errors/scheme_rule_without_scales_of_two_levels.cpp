// EXPECT-FIRST: qtensor: a scale rule has the function that its statistics ask for
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/scheme/scheme.hpp>

namespace qt = qtensor;
struct own {
  using slot = qt::slot::rule;
  using statistics = qt::absolute_maximum;
  static constexpr qt::fixed_string name = "own";
  template <class Code, class Scale>
  static constexpr float tensor_scale(float amax, qt::code_range codes) {
    return amax / codes.high;
  }
  template <class Code, class Scale>
#ifdef QTENSOR_VALID
  static constexpr float scale(float amax, qt::code_range codes, float tensor_scale) {
    return amax / codes.high / tensor_scale;
  }
#else
  static constexpr float scale(float amax, qt::code_range codes) {
    return amax / codes.high;
  }
#endif
};
using choice = qt::scheme<qt::e2m1, qt::group<16>, qt::scale_as<qt::e4m3>, qt::tensor_scale<qt::f32>, own>;
constexpr choice* use = nullptr;
