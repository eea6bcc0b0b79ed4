// EXPECT-FIRST: qtensor: a rounding policy needs up(negative, odd, remainder)
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/reference/codec.hpp>

namespace qt = qtensor;
struct undecided {
  using slot = qt::slot::rounding;
  static constexpr qt::fixed_string name = "undecided";
};
#ifdef QTENSOR_VALID
constexpr auto use = qt::encode<qt::e4m3, qt::nearest_away>(1.f);
#else
constexpr auto use = qt::encode<qt::e4m3, undecided>(1.f);
#endif
