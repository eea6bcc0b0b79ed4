// EXPECT-FIRST: qtensor: mx_dynamic_range is a rule for e2m1 codes only
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/scheme/scheme.hpp>

namespace qt = qtensor;
#ifdef QTENSOR_VALID
using code = qt::e2m1;
#else
using code = qt::e4m3;
#endif
using choice = qt::scheme<code, qt::mx_group<>, qt::scale_as<qt::e8m0>, qt::mx_dynamic_range<6>>;
constexpr float use = choice::rule::scale<code, qt::e8m0>(1.f, choice::codes);
