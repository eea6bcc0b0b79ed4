// EXPECT: qtensor: rule_multiplier takes a multiplier from the rule, and this one gives none
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/types.hpp>

namespace qt = qtensor;
#ifdef QTENSOR_VALID
using rule = qt::reciprocal_amax<>;
#else
using rule = qt::bounded_amax<>;
#endif
qt::scheme<qt::int8, qt::block<1, 128>, rule, qt::rule_multiplier> s;
