// A rounding the compiler may not fuse away: keeps a * b + c two roundings where a rule says two.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <concepts>
#include <qtensor/core/config.hpp>
#include <type_traits>

namespace qtensor {

/// Returns x, and hides where it came from: g++ contracts `a * b + c` into one fma by default, also across functions,
/// and no pragma stops it. Write `rounded(a * b) + c`. Costs no instruction; free in constant evaluation.
template <std::floating_point T>
constexpr T rounded(T x) {
  if (!std::is_constant_evaluated()) {
#if defined(__SSE2__)
    asm("" : "+x"(x));
#elif defined(__aarch64__)
    asm("" : "+w"(x));
#elif defined(__GNUC__)
    asm("" : "+m"(x));
#endif
  }
  return x;
}

}  // namespace qtensor
