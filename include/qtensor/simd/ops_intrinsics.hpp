// The compiler's intrinsics, without what g++ 12 says of them.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Those of AVX-512 begin with registers that hold anything, which g++ 12 takes for mistakes wherever it inlines them.
// It forgives what it is told before it first sees the header: this one is included before xsimd and Eigen are.
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ < 13
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#define QTENSOR_INTRINSICS_ARE_FORGIVEN
#endif

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#if defined(__linux__)
#include <sys/auxv.h>
#endif
#endif

#ifdef QTENSOR_INTRINSICS_ARE_FORGIVEN
#pragma GCC diagnostic pop
#undef QTENSOR_INTRINSICS_ARE_FORGIVEN
#endif
