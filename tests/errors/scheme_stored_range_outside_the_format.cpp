// EXPECT-FIRST: qtensor: stored_range<low, high> narrows integer codes
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/scheme/scheme.hpp>

namespace qt = qtensor;
#ifdef QTENSOR_VALID
using choice = qt::scheme<qt::int8, qt::per_tensor, qt::stored_range<-127, 127>>;
#else
using choice = qt::scheme<qt::int8, qt::per_tensor, qt::stored_range<-127, 128>>;
#endif
constexpr choice* use = nullptr;
