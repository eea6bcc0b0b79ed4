// EXPECT-FIRST: qtensor: a rule computes scale and zero point of the same block
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/reference/quantize.hpp>

namespace qt = qtensor;
using own = qt::scheme<qt::uint4, qt::group<32>, qt::zero_point<qt::uint4, qt::per_channel<0>>>;
constexpr auto ones = [](const auto&) { return 1.f; };
#ifdef QTENSOR_VALID
void use(qt::tensor<own>& t) { qt::reference::quantize_static(ones, t.span()); }
#else
void use(qt::tensor<own>& t) { qt::reference::quantize(ones, t.span()); }
#endif
