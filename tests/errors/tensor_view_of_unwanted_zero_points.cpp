// EXPECT-FIRST: qtensor: this scheme is symmetric; it has no zero points to pass
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/types.hpp>

namespace qt = qtensor;
std::span<const std::int8_t> codes;
std::span<const std::uint8_t> bytes;
std::span<const float> scales;
using blocks = qt::scheme<qt::int8, qt::group<32>, qt::scale_as<qt::f16>, qt::interleaved<>>;
#ifdef QTENSOR_VALID
auto use = qt::view_of<qt::int8_per_tensor>(codes, scales, qt::extents(2, 32));
#else
auto use = qt::view_of<qt::int8_per_tensor>(codes, scales, bytes, qt::extents(2, 32));
#endif
