// EXPECT-FIRST: qtensor: this scheme has two levels; pass the scale of the tensor after the scales.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/types.hpp>

namespace qt = qtensor;
std::span<const std::uint8_t> codes, zeros;
float whole = 1.f;
using S = qt::with<qt::nvfp4, qt::tensor_scale<qt::f32>>;
#ifdef QTENSOR_VALID
auto use = qt::view_of<S>(codes, zeros, whole, qt::extents(2, 32));
#else
auto use = qt::view_of<S>(codes, zeros, qt::extents(2, 32));
#endif
