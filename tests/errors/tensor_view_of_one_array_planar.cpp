// EXPECT-FIRST: qtensor: view_of<S>(bytes, extents) is for interleaved layouts
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/types.hpp>

namespace qt = qtensor;
std::span<const std::int8_t> codes;
std::span<const std::uint8_t> bytes;
std::span<const float> scales;
using blocks = qt::scheme<qt::int8, qt::group<32>, qt::scale_as<qt::f16>, qt::interleaved<>>;
#ifdef QTENSOR_VALID
auto use = qt::view_of<blocks>(bytes, qt::extents(2, 32));
#else
auto use = qt::view_of<qt::int8_group<32>>(bytes, qt::extents(2, 32));
#endif
