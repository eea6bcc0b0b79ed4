// EXPECT-FIRST: qtensor: this rule computes an offset, and the scheme stores none
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/scheme/scheme.hpp>

namespace qt = qtensor;
#ifdef QTENSOR_VALID
using choice = qt::scheme<qt::uint4, qt::group<32>, qt::offset_min_max, qt::offset<qt::f16>>;
#else
using choice = qt::scheme<qt::uint4, qt::group<32>, qt::offset_min_max>;
#endif
constexpr choice* use = nullptr;
