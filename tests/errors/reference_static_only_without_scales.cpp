// EXPECT-FIRST: qtensor: this scheme has no rule that computes scales
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/reference/quantize.hpp>

namespace qt = qtensor;
using given = qt::with<qt::scheme<qt::int8, qt::per_tensor>, qt::static_only>;
constexpr auto ones = [](const auto&) { return 1.f; };
#ifdef QTENSOR_VALID
void use(qt::tensor<given>& t) { qt::reference::quantize_static(ones, t.span()); }
#else
void use(qt::tensor<given>& t) { qt::reference::quantize(ones, t.span()); }
#endif
