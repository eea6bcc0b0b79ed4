// EXPECT-FIRST: qtensor: interleaved blocks run along the contiguous axis
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/types.hpp>

namespace qt = qtensor;
using scheme = qt::scheme<qt::int8, qt::group<32>, qt::interleaved<>>;
#ifdef QTENSOR_VALID
qt::tensor<scheme, qt::matrix_extents, qt::row_major> use;
#else
qt::tensor<scheme, qt::matrix_extents, qt::col_major> use;
#endif
