// Version, the compilers and flags we accept, and the assertion hook.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#define QTENSOR_VERSION_MAJOR 0
#define QTENSOR_VERSION_MINOR 1
#define QTENSOR_VERSION_PATCH 0

#if __cplusplus < 202002L
#error "qtensor: C++20 is needed; compile with -std=c++20 or newer."
#endif

#if defined(__FAST_MATH__) || (defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__)
#error "qtensor: -ffast-math and -ffinite-math-only change the bits this library promises; compile without them."
#endif

/// Called with a sentence when a precondition of a kernel fails in a debug build, and by `qtensor::fail` when
/// exceptions are off. Define it before the first include to send the sentence elsewhere; it must not return.
#ifndef QTENSOR_ASSERTION_FAILED
#include <cstdio>
#include <cstdlib>
#define QTENSOR_ASSERTION_FAILED(sentence) (std::fprintf(stderr, "%s\n", (sentence)), std::abort())
#endif

/// Preconditions of kernels: checked in debug builds (no NDEBUG), free otherwise. Never has a side effect.
#ifdef NDEBUG
#define QTENSOR_ASSERT(condition, sentence) static_cast<void>(0)
#else
#define QTENSOR_ASSERT(condition, sentence) \
  ((condition) ? static_cast<void>(0) : static_cast<void>(QTENSOR_ASSERTION_FAILED("qtensor: " sentence)))
#endif
