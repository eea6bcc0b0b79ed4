// EXPECT-FIRST: qtensor: this slice needs a matrix
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/types.hpp>

namespace qt = qtensor;
using cube = qt::tensor<qt::int8_per_tensor, qt::extents<2, 3, 4, 5>>;
#ifdef QTENSOR_VALID
auto use(const cube& t) { return t.view().slice<0>(0, 1); }
#else
auto use(const cube& t) { return t.view().middle_rows(0, 1); }
#endif
