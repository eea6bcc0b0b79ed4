// EXPECT-FIRST: qtensor: e8m0 is a format of scales, not of codes
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/scheme/scheme.hpp>

namespace qt = qtensor;
#ifdef QTENSOR_VALID
using choice = qt::scheme<qt::e4m3, qt::per_tensor>;
#else
using choice = qt::scheme<qt::e8m0, qt::per_tensor>;
#endif
constexpr choice* use = nullptr;
