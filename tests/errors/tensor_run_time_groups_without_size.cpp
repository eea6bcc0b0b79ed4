// EXPECT-FIRST: qtensor: this scheme's block sizes are known at run time only
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/tensor/tensor.hpp>

namespace qt = qtensor;
using groups = qt::scheme<qt::int8, qt::group<qt::dynamic>>;
#ifdef QTENSOR_VALID
const qt::tensor<groups, qt::extents<qt::dynamic>> w(qt::extents(32), qt::group<qt::dynamic>(8));
#else
const qt::tensor<groups, qt::extents<qt::dynamic>> w(qt::extents(32));
#endif
