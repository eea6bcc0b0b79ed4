// EXPECT-FIRST: qtensor: only matrices change their storage order here
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/kernels.hpp>

namespace qt = qtensor;
using cube = qt::tensor<qt::int8_per_tensor, qt::extents<2, 3, 4>>;
#ifdef QTENSOR_VALID
auto use(const cube& w) { return qt::requantize<qt::mxfp4, qt::row_major>(w); }
#else
auto use(const cube& w) { return qt::requantize<qt::mxfp4, qt::col_major>(w); }
#endif
