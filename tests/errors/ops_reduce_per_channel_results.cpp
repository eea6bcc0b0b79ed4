// EXPECT: qtensor: a reduction gives per-tensor quantized results
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/ops/reduce.hpp>
#include <qtensor/scheme/schemes.hpp>

namespace qt = qtensor;
using u8 = qt::scheme<qt::uint8, qt::per_tensor, qt::zero_point<qt::uint8>, qt::static_only>;
using channels = qt::scheme<qt::int8, qt::per_channel<0>, qt::static_only>;
qt::tensor<channels> x;
auto init = qt::number_type<channels>{}(0.f);
#ifdef QTENSOR_VALID
auto y = qt::reduce(x, init, qt::dimensions(0), qt::add, qt::convert_to<qt::f32>{});
#else
auto y = qt::reduce(x, init, qt::dimensions(0), qt::add);
#endif
