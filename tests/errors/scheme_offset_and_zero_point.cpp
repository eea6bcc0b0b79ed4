// EXPECT-FIRST: qtensor: a scheme stores an offset (value = code * scale + offset) or a zero point, not both
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/scheme/scheme.hpp>

namespace qt = qtensor;
#ifdef QTENSOR_VALID
using choice = qt::scheme<qt::uint4, qt::group<32>, qt::static_only, qt::offset<qt::f16>>;
#else
using choice = qt::scheme<qt::uint4, qt::group<32>, qt::static_only, qt::offset<qt::f16>, qt::zero_point<qt::uint4>>;
#endif
constexpr choice* use = nullptr;
