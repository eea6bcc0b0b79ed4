// EXPECT-FIRST: qtensor: nvfp4_scale keeps scales between the smallest normal
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/scheme/scheme.hpp>

namespace qt = qtensor;
#ifdef QTENSOR_VALID
using choice = qt::scheme<qt::e2m1, qt::group<16>, qt::nvfp4_scale, qt::scale_as<qt::e4m3>>;
#else
using choice = qt::scheme<qt::e2m1, qt::group<16>, qt::nvfp4_scale>;
#endif
constexpr choice* use = nullptr;
