// EXPECT-FIRST: qtensor: the slot overflow takes saturate or to_special
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/reference/codec.hpp>

namespace qt = qtensor;
struct own {
  using slot = qt::slot::overflow;
  static constexpr qt::fixed_string name = "own";
};
#ifdef QTENSOR_VALID
constexpr auto use = qt::encode<qt::e4m3, qt::to_special>(465.f);
#else
constexpr auto use = qt::encode<qt::e4m3, own>(465.f);
#endif
