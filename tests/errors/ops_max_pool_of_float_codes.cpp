// EXPECT: qtensor: pooling quantized numbers needs integer codes.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/ops/reduce_window.hpp>
#include <qtensor/scheme/schemes.hpp>

namespace qt = qtensor;
using u8 = qt::scheme<qt::uint8, qt::per_tensor, qt::zero_point<qt::uint8>, qt::static_only>;
qt::tensor<u8> x;
qt::tensor<qt::scheme<qt::e4m3, qt::per_tensor, qt::static_only>> z;
#ifdef QTENSOR_VALID
auto y = qt::max_pool(x, qt::window<2>{});
#else
auto y = qt::max_pool(z, qt::window<2>{});
#endif
