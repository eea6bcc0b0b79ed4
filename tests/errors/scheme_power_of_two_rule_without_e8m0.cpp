// EXPECT-FIRST: qtensor: the mx_* scale rules produce powers of two
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/scheme/scheme.hpp>

namespace qt = qtensor;
#ifdef QTENSOR_VALID
using choice = qt::scheme<qt::e4m3, qt::mx_group<>, qt::scale_as<qt::e8m0>, qt::mx_floor>;
#else
using choice = qt::scheme<qt::e4m3, qt::mx_group<>, qt::mx_floor>;
#endif
constexpr choice* use = nullptr;
