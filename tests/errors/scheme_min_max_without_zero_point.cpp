// EXPECT-FIRST: qtensor: min_max computes a zero point, and this scheme stores none
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/scheme/scheme.hpp>

namespace qt = qtensor;
#ifdef QTENSOR_VALID
using choice = qt::scheme<qt::uint8, qt::per_tensor, qt::min_max, qt::zero_point<qt::uint8>>;
#else
using choice = qt::scheme<qt::uint8, qt::per_tensor, qt::min_max>;
#endif
constexpr choice* use = nullptr;
