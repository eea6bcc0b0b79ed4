// EXPECT-FIRST: qtensor: a division policy has quotient(x, scale, tensor_scale) -> float
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/scheme/scheme.hpp>

namespace qt = qtensor;
struct own {
  using slot = qt::slot::division;
  static constexpr qt::fixed_string name = "own";
#ifdef QTENSOR_VALID
  static constexpr float quotient(float x, float scale, float) { return x / scale / 2; }
#else
  static constexpr float quotient(float x, float scale) { return x / scale / 2; }
#endif
};
using choice = qt::scheme<qt::int8, qt::per_tensor, own>;
constexpr choice* use = nullptr;
