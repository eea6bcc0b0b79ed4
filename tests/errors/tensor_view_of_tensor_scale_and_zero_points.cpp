// EXPECT-FIRST: qtensor: this scheme stores more than codes and scales of two levels; fill a tensor of it.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/types.hpp>

namespace qt = qtensor;
std::span<const std::uint8_t> codes, zeros;
std::span<const float> scales;
float whole = 1.f;
#ifdef QTENSOR_VALID
using S = qt::scheme<qt::uint8, qt::per_tensor, qt::tensor_scale<qt::f32>, qt::static_only>;
#else
using S = qt::scheme<qt::uint8, qt::per_tensor, qt::zero_point<qt::uint8>, qt::tensor_scale<qt::f32>, qt::static_only>;
#endif
auto use = qt::view_of<S>(codes, scales, whole, qt::extents(2, 32));
