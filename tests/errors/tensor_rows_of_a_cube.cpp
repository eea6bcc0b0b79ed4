// EXPECT-FIRST: qtensor: rows and cols are those of a matrix
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/types.hpp>

namespace qt = qtensor;
using cube = qt::tensor<qt::int8_per_tensor, qt::extents<2, 3, 4, 5>>;
#ifdef QTENSOR_VALID
auto use(const cube& t) { return t.extent(0); }
#else
auto use(const cube& t) { return t.rows(); }
#endif
