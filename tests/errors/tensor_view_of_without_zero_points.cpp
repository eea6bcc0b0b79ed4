// EXPECT-FIRST: qtensor: this scheme stores more than codes and scales
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/types.hpp>

namespace qt = qtensor;
std::span<const std::int8_t> codes;
std::span<const std::uint8_t> bytes;
std::span<const float> scales;
using blocks = qt::scheme<qt::int8, qt::group<32>, qt::scale_as<qt::f16>, qt::interleaved<>>;
#ifdef QTENSOR_VALID
auto use = qt::view_of<qt::uint8_per_tensor>(bytes, scales, bytes, qt::extents(2, 32));
#else
auto use = qt::view_of<qt::uint8_per_tensor>(bytes, scales, qt::extents(2, 32));
#endif
