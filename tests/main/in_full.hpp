// What continuous integration leaves to `tests/run.sh --full`.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace check {

#ifdef QTENSOR_TEST_FEW_SCHEMES  // -Dall_schemes=false
inline constexpr bool all_schemes = false;
#else
inline constexpr bool all_schemes = true;
#endif

/// Calls test.operator()<S>() for schemes that others of the same test are much alike: each takes seconds to compile.
template <class... S, class F>
void in_full(const F& test) {
  if constexpr (all_schemes) (test.template operator()<S>(), ...);
}

}  // namespace check
