// EXPECT-FIRST: qtensor: a scale is a real number
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/scheme/scheme.hpp>

namespace qt = qtensor;
#ifdef QTENSOR_VALID
using choice = qt::scheme<qt::int8, qt::per_tensor, qt::scale_as<qt::bf16>>;
#else
using choice = qt::scheme<qt::int8, qt::per_tensor, qt::scale_as<qt::int8>>;
#endif
constexpr choice* use = nullptr;
