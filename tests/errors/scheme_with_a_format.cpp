// EXPECT-FIRST: qtensor: with<Scheme, P...> takes policies and granularities
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/scheme/scheme.hpp>

namespace qt = qtensor;
#ifdef QTENSOR_VALID
using choice = qt::with<qt::scheme<qt::int8, qt::per_tensor>, qt::scale_as<qt::bf16>>;
#else
using choice = qt::with<qt::scheme<qt::int8, qt::per_tensor>, qt::bf16>;
#endif
constexpr choice* use = nullptr;
