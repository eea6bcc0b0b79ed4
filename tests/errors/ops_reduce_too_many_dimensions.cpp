// EXPECT: qtensor: reduce (C4, C5): more dimensions are given than the inputs have.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/ops/reduce.hpp>
#include <qtensor/scheme/schemes.hpp>

namespace qt = qtensor;
using u8 = qt::scheme<qt::uint8, qt::per_tensor, qt::zero_point<qt::uint8>, qt::static_only>;
qt::tensor<u8> x;
#ifdef QTENSOR_VALID
auto y = qt::reduce(x, qt::number_like(x, 0.f), qt::dimensions(0, 1), qt::add);
#else
auto y = qt::reduce(x, qt::number_like(x, 0.f), qt::dimensions(0, 1, 2), qt::add);
#endif
