// EXPECT-FIRST: qtensor: least_square_clip clips magnitudes
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/kernels.hpp>

namespace qt = qtensor;
#ifdef QTENSOR_VALID
float use(const qt::magnitude_histogram& seen) { return seen.least_square_clip<qt::int8_per_tensor>(); }
#else
float use(const qt::magnitude_histogram& seen) { return seen.least_square_clip<qt::uint8_per_tensor>(); }
#endif
