// EXPECT-FIRST: qtensor: an extent is at least 0
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/tensor/extents.hpp>

namespace qt = qtensor;

#ifdef QTENSOR_VALID
constexpr qt::extents<4, 2> use;
#else
constexpr qt::extents<4, -2> use;
#endif
