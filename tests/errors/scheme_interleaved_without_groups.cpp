// EXPECT-FIRST: qtensor: interleaved layouts store groups along one axis
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/scheme/scheme.hpp>

namespace qt = qtensor;
#ifdef QTENSOR_VALID
using choice = qt::scheme<qt::int8, qt::group<32>, qt::interleaved<>>;
#else
using choice = qt::scheme<qt::int8, qt::per_tensor, qt::interleaved<>>;
#endif
constexpr choice* use = nullptr;
