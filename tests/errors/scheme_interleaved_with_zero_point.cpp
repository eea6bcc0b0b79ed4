// EXPECT-FIRST: qtensor: interleaved blocks hold a scale and an offset, no zero point
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/scheme/scheme.hpp>

namespace qt = qtensor;
#ifdef QTENSOR_VALID
using choice = qt::scheme<qt::uint4, qt::group<32>, qt::interleaved<>, qt::offset<qt::f16>, qt::static_only>;
#else
using choice = qt::scheme<qt::uint4, qt::group<32>, qt::interleaved<>, qt::zero_point<qt::uint4>>;
#endif
constexpr choice* use = nullptr;
