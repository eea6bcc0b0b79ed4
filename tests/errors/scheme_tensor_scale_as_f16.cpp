// EXPECT-FIRST: qtensor: a tensor_scale is stored as f32
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/scheme/scheme.hpp>

namespace qt = qtensor;
#ifdef QTENSOR_VALID
using choice = qt::scheme<qt::e2m1, qt::group<16>, qt::scale_as<qt::e4m3>, qt::tensor_scale<qt::f32>, qt::nvfp4_scale>;
#else
using choice = qt::scheme<qt::e2m1, qt::group<16>, qt::scale_as<qt::e4m3>, qt::tensor_scale<qt::f16>, qt::nvfp4_scale>;
#endif
constexpr choice* use = nullptr;
