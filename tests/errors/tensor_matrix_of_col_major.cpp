// EXPECT-FIRST: qtensor: matrix(i, ...) needs a row_major tensor
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/types.hpp>

namespace qt = qtensor;
using box = qt::extents<2, 3, 4>;
#ifdef QTENSOR_VALID
auto use(const qt::tensor<qt::int8_per_tensor, box, qt::row_major>& t) { return t.view().matrix(0); }
#else
auto use(const qt::tensor<qt::int8_per_tensor, box, qt::col_major>& t) { return t.view().matrix(0); }
#endif
