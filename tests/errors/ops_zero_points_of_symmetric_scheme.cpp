// EXPECT-FIRST: qtensor: this scheme is symmetric; it takes no zero points
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/kernels.hpp>

namespace qt = qtensor;
#ifdef QTENSOR_VALID
void use(qt::tensor<qt::uint8_per_tensor>& t) { qt::store_zero_points(t.span(), 3); }
#else
void use(qt::tensor<qt::int8_per_tensor>& t) { qt::store_zero_points(t.span(), 3); }
#endif
