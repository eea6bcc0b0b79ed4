// EXPECT-FIRST: qtensor: this rule computes no offset, but the scheme stores one
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/scheme/scheme.hpp>

namespace qt = qtensor;
#ifdef QTENSOR_VALID
using choice = qt::scheme<qt::uint4, qt::group<32>, qt::offset<qt::f16>, qt::static_only>;
#else
using choice = qt::scheme<qt::uint4, qt::group<32>, qt::offset<qt::f16>>;
#endif
constexpr choice* use = nullptr;
