// EXPECT-FIRST: qtensor: scheme<F, ...> begins with a format
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/scheme/scheme.hpp>

namespace qt = qtensor;
#ifdef QTENSOR_VALID
using choice = qt::scheme<qt::e2m1, qt::group<32>>;
#else
using choice = qt::scheme<qt::group<32>, qt::e2m1>;
#endif
constexpr choice* use = nullptr;
