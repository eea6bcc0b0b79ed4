// EXPECT-FIRST: qtensor: split_halves orders the codes of one block
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/scheme/scheme.hpp>

namespace qt = qtensor;
#ifdef QTENSOR_VALID
using choice = qt::scheme<qt::int4, qt::group<32>, qt::interleaved<qt::split_halves>>;
#else
using choice = qt::scheme<qt::int4, qt::group<32>, qt::planar<qt::split_halves>>;
#endif
constexpr choice* use = nullptr;
