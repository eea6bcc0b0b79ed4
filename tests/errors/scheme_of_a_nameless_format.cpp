// EXPECT-FIRST: qtensor: scheme<F, ...> begins with a format
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/scheme/scheme.hpp>

namespace qt = qtensor;
struct own : qt::minifloat<2, 2, 1, qt::specials::none> {
#ifdef QTENSOR_VALID
  static constexpr qt::fixed_string name = "e2m2";
#else
  static constexpr const char* name = "e2m2";
#endif
};
using choice = qt::scheme<own, qt::group<32>>;
constexpr choice* use = nullptr;
