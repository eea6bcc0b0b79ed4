// EXPECT-FIRST: qtensor: no kernel for this operation, not even for scalar_arch
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/simd/quantize.hpp>

namespace qt = qtensor;
using scheme = qt::scheme<qt::int8, qt::per_tensor>;
struct sorting {};
#ifdef QTENSOR_VALID
constexpr auto use = qt::simd::kernel_name<qt::simd::op::encode, scheme>();
#else
constexpr auto use = qt::simd::kernel_name<sorting, scheme>();
#endif
