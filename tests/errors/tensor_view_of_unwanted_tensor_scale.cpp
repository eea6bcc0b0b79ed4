// EXPECT-FIRST: qtensor: this scheme has one level of scales; it has none of the tensor to pass.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/types.hpp>

namespace qt = qtensor;
std::span<const std::uint8_t> codes, zeros;
float whole = 1.f;
#ifdef QTENSOR_VALID
auto use = qt::view_of<qt::nvfp4>(codes, zeros, qt::extents(2, 32));
#else
auto use = qt::view_of<qt::nvfp4>(codes, zeros, whole, qt::extents(2, 32));
#endif
