// EXPECT: qtensor: reciprocal_amax<n, d> bounds 1 / scale by n / d, which must not be negative.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/types.hpp>

namespace qt = qtensor;
#ifdef QTENSOR_VALID
using rule = qt::reciprocal_amax<1, 2>;
#else
using rule = qt::reciprocal_amax<-1, 2>;
#endif
qt::scheme<qt::int8, qt::block<1, 128>, rule> s;
