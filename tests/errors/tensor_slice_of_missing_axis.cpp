// EXPECT-FIRST: qtensor: slice<Axis> needs an axis of this tensor
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/types.hpp>

namespace qt = qtensor;

#ifdef QTENSOR_VALID
auto use(const qt::tensor<qt::int8_per_tensor>& t) { return t.view().slice<1>(0, 1); }
#else
auto use(const qt::tensor<qt::int8_per_tensor>& t) { return t.view().slice<2>(0, 1); }
#endif
