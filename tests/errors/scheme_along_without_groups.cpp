// EXPECT-FIRST: qtensor: along<Axis, S> turns schemes whose granularity is group<N>
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/scheme/scheme.hpp>

namespace qt = qtensor;
#ifdef QTENSOR_VALID
using choice = qt::along<0, qt::scheme<qt::int8, qt::group<32>>>;
#else
using choice = qt::along<0, qt::scheme<qt::int8, qt::per_tensor>>;
#endif
constexpr choice* use = nullptr;
