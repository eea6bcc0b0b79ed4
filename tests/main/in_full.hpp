// What continuous integration leaves to `tests/run.sh --full`.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace check {

#ifdef QTENSOR_TEST_IN_PART  // -Din_full=false
inline constexpr bool full = false;
#else
inline constexpr bool full = true;
#endif

/// Calls test.operator()<S>() for schemes that others of the same test are much alike: each takes seconds to compile.
template <class... S, class F>
void in_full(const F& test) {
  if constexpr (full) (test.template operator()<S>(), ...);
}

}  // namespace check
