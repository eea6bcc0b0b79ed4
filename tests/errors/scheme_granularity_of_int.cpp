// EXPECT-FIRST: qtensor: the second argument of scheme<F, G, ...> is a granularity
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/scheme/scheme.hpp>

namespace qt = qtensor;
#ifdef QTENSOR_VALID
using extent = qt::index_t;
#else
using extent = int;
#endif
struct two_rows {
  static constexpr qt::fixed_string name = "two_rows";
  static constexpr extent block_extent(int, int axis, qt::index_t) { return axis == 0 ? 2 : 1; }
};
using choice = qt::scheme<qt::e2m1, two_rows>;
constexpr choice* use = nullptr;
