// EXPECT-FIRST: qtensor: narrow_range takes away the most negative code
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/format/integer.hpp>

#ifdef QTENSOR_VALID
using code = qtensor::int8;
#else
using code = qtensor::uint8;
#endif
constexpr auto lowest = qtensor::narrow_range<code>::min;
