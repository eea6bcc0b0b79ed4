// EXPECT: qtensor: rule_multiplier takes its multiplier from the data; with given scales use exact_division
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/reference/quantize.hpp>

namespace qt = qtensor;
using by_reciprocals = qt::scheme<qt::int8, qt::block<1, 128>, qt::reciprocal_amax<>, qt::rule_multiplier>;
#ifdef QTENSOR_VALID
using chosen = qt::with<by_reciprocals, qt::exact_division>;
#else
using chosen = by_reciprocals;
#endif
void use(const qt::tensor_span<chosen>& out) {
  qt::reference::quantize_static([](const auto&) { return 0.f; }, out);
}
