// EXPECT-FIRST: qtensor: matrix(i, ...) takes one index for every axis but the last two
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/types.hpp>

namespace qt = qtensor;
using cube = qt::tensor<qt::int8_per_tensor, qt::extents<2, 3, 4, 5>>;
#ifdef QTENSOR_VALID
auto use(const cube& t) { return t.view().matrix(0, 1); }
#else
auto use(const cube& t) { return t.view().matrix(0); }
#endif
