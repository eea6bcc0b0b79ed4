// EXPECT-FIRST: qtensor: zero points are integers
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/kernels.hpp>

namespace qt = qtensor;
#ifdef QTENSOR_VALID
void use(qt::tensor<qt::uint8_per_tensor>& t) { qt::store_zero_points(t.span(), 3); }
#else
void use(qt::tensor<qt::uint8_per_tensor>& t) { qt::store_zero_points(t.span(), 3.f); }
#endif
