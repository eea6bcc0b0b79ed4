// EXPECT-FIRST: qtensor: 6-bit codes are stored low_first only
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/scheme/scheme.hpp>

namespace qt = qtensor;
#ifdef QTENSOR_VALID
using choice = qt::scheme<qt::e3m2, qt::group<32>, qt::planar<qt::low_first>>;
#else
using choice = qt::scheme<qt::e3m2, qt::group<32>, qt::planar<qt::high_first>>;
#endif
constexpr choice* use = nullptr;
