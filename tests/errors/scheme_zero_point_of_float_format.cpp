// EXPECT-FIRST: qtensor: a zero point is an integer
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/scheme/scheme.hpp>

namespace qt = qtensor;
#ifdef QTENSOR_VALID
using choice = qt::scheme<qt::uint8, qt::per_tensor, qt::zero_point<qt::int32>>;
#else
using choice = qt::scheme<qt::uint8, qt::per_tensor, qt::zero_point<qt::f16>>;
#endif
constexpr choice* use = nullptr;
