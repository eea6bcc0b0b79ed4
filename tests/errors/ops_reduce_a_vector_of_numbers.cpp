// EXPECT: qtensor: reductions take quantized tensors and views
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/ops/reduce.hpp>
#include <qtensor/scheme/schemes.hpp>

namespace qt = qtensor;
using u8 = qt::scheme<qt::uint8, qt::per_tensor, qt::zero_point<qt::uint8>, qt::static_only>;
#include <vector>
std::vector<float> v(2);
#ifdef QTENSOR_VALID
auto y = qt::reduce(qt::source(v.data(), qt::extents(2)), 0.f, qt::dimensions(0), qt::add);
#else
auto y = qt::reduce(v, 0.f, qt::dimensions(0), qt::add);
#endif
