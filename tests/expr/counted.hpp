// Counts how often expressions reach our kernels. Include before any other header of the library.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace counted {
inline int products = 0, assignments = 0;
}
#define QTENSOR_COUNT_KERNELS(kind) (++counted::kind)

// Runs a statement, requires that it called a kernel of this kind once, and compares the result bit for bit
// (by check.hpp).
#define REACHES_KERNEL(kind, statement, result, want) \
  do {                                                \
    CAPTURE(#statement);                              \
    counted::products = counted::assignments = 0;     \
    statement;                                        \
    CHECK(counted::kind == 1);                        \
    CHECK(check::same(result, want));                 \
  } while (0)
