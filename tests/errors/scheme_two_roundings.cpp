// EXPECT-FIRST: qtensor: two policies fill the same slot of this scheme
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/scheme/scheme.hpp>

namespace qt = qtensor;
#ifdef QTENSOR_VALID
using choice = qt::scheme<qt::int8, qt::per_tensor, qt::nearest_away>;
#else
using choice = qt::scheme<qt::int8, qt::per_tensor, qt::nearest_even, qt::nearest_away>;
#endif
constexpr choice* use = nullptr;
