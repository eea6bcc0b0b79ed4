// EXPECT: qtensor: a body's two numbers have one type
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/ops/elements.hpp>
#include <qtensor/scheme/schemes.hpp>

namespace qt = qtensor;
using u8 = qt::scheme<qt::uint8, qt::per_tensor, qt::zero_point<qt::uint8>, qt::static_only>;
#ifdef QTENSOR_VALID
auto y = qt::add(1.f, 2.f);
#else
auto y = qt::add(1.f, 2.0);
#endif
