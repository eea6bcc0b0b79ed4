// EXPECT-FIRST: qtensor: e8m0 scales need a power-of-two rule: mx_floor, mx_even, mx_ceil or mx_rceil
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/scheme/scheme.hpp>
#ifdef QTENSOR_VALID
using rule = qtensor::mx_even;
#else
using rule = qtensor::amax_scale;
#endif
using wrong = qtensor::scheme<qtensor::e4m3, qtensor::mx_group<>, qtensor::scale_as<qtensor::e8m0>, rule>;
wrong* use;
