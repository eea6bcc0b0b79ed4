// EXPECT-FIRST: qtensor: this scheme stores zero points; pass them after the scales.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/types.hpp>

namespace qt = qtensor;
std::span<const std::uint8_t> codes, zeros;
std::span<const float> scales;
#ifdef QTENSOR_VALID
auto use = qt::view_of<qt::uint8_per_tensor>(codes, scales, zeros, qt::extents(2, 32));
#else
auto use = qt::view_of<qt::uint8_per_tensor>(codes, scales, qt::extents(2, 32));
#endif
