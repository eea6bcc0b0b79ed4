// EXPECT-FIRST: qtensor: this scheme has one level of scales
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/types.hpp>

namespace qt = qtensor;

#ifdef QTENSOR_VALID
void use(qt::tensor<qt::with<qt::nvfp4, qt::tensor_scale<qt::f32>>>& t) { t.set_tensor_scale(2.f); }
#else
void use(qt::tensor<qt::nvfp4>& t) { t.set_tensor_scale(2.f); }
#endif
