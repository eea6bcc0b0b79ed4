// EXPECT-FIRST: qtensor: the granularity names an axis that a tensor of this rank does not have
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/types.hpp>

namespace qt = qtensor;
using scheme = qt::int8_per_channel<2>;
#ifdef QTENSOR_VALID
qt::tensor<scheme, qt::extents<2, 3, 4>> use;
#else
qt::tensor<scheme> use(qt::extents(2, 3));
#endif
