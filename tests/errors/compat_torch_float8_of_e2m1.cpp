// EXPECT: qtensor: torch has float8 types e4m3, e4m3fnuz, e5m2, e5m2fnuz and e8m0.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/compat/torch.hpp>

namespace qt = qtensor;
#ifdef QTENSOR_VALID
auto use(float x) { return qt::compat::torch::to_float8<qt::e4m3>(x); }
#else
auto use(float x) { return qt::compat::torch::to_float8<qt::e2m1>(x); }
#endif
