// EXPECT: deleted
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/qtensor.hpp>

namespace qt = qtensor;

qt::tensor<qt::mxfp4> make() { return qt::tensor<qt::mxfp4>(qt::matrix_extents(4, 32)); }
#ifdef QTENSOR_VALID
const auto W = make();
const auto y = 2.f * W;
#else
const auto y = 2.f * make();
#endif
