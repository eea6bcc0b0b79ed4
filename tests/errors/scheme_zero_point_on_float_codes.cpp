// EXPECT-FIRST: qtensor: a zero point needs integer codes
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/scheme/scheme.hpp>
#ifdef QTENSOR_VALID
using code = qtensor::int8;
#else
using code = qtensor::e2m1;
#endif
using wrong = qtensor::scheme<code, qtensor::group<32>, qtensor::zero_point<qtensor::int8>>;
wrong* use;
