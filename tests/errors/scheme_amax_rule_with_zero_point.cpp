// EXPECT-FIRST: qtensor: this rule computes no zero point, but the scheme stores one
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/scheme/scheme.hpp>

namespace qt = qtensor;
#ifdef QTENSOR_VALID
using choice = qt::scheme<qt::uint8, qt::per_tensor, qt::static_only, qt::zero_point<qt::uint8>>;
#else
using choice = qt::scheme<qt::uint8, qt::per_tensor, qt::amax_scale, qt::zero_point<qt::uint8>>;
#endif
constexpr choice* use = nullptr;
