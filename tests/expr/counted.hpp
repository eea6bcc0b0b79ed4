// Counts how often expressions reach our kernels. Include before any other header of the library.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace counted {
inline int products = 0, assignments = 0;
}
#define QTENSOR_COUNT_KERNELS(kind) (++counted::kind)
