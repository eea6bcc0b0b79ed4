// EXPECT-FIRST: qtensor: this scheme is symmetric; it stores no zero points
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/types.hpp>

namespace qt = qtensor;

#ifdef QTENSOR_VALID
auto use(qt::tensor<qt::uint8_per_tensor>& t) { return t.zero_points(); }
#else
auto use(qt::tensor<qt::int8_per_tensor>& t) { return t.zero_points(); }
#endif
