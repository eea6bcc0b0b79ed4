// The name of the instruction set a translation unit is compiled for: the inline namespace of all that depends on it.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <qtensor/core/config.hpp>

#include <string_view>

// ---- The level: which registers exist. ----
#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__) && \
    defined(__AVX512CD__) && defined(__AVX2__) && defined(__FMA__)
#define QTENSOR_LEVEL_X86 4
#elif defined(__AVX2__) && defined(__FMA__)
#define QTENSOR_LEVEL_X86 3
#elif defined(__x86_64__) && defined(__SSE4_2__)
#define QTENSOR_LEVEL_X86 2
#else
#define QTENSOR_LEVEL_X86 0
#endif
#if defined(__aarch64__) && defined(__ARM_NEON) && !defined(__AARCH64EB__)
#define QTENSOR_LEVEL_NEON 1
#else
#define QTENSOR_LEVEL_NEON 0
#endif

// ---- The name: the level and every feature beyond it that code may depend on. Translation units compiled for
// different machines then share no symbol: the linker cannot replace a function by one that the machine does not run.
#if QTENSOR_LEVEL_X86 == 4
#define QTENSOR_ABI_LEVEL x86_v4
#elif QTENSOR_LEVEL_X86 == 3 && defined(__F16C__)
#define QTENSOR_ABI_LEVEL x86_v3
#elif QTENSOR_LEVEL_X86 == 3
#define QTENSOR_ABI_LEVEL x86_v3_without_f16c
#elif QTENSOR_LEVEL_X86 == 2 && defined(__AVX__)
#define QTENSOR_ABI_LEVEL x86_v2_avx
#elif QTENSOR_LEVEL_X86 == 2
#define QTENSOR_ABI_LEVEL x86_v2
#elif QTENSOR_LEVEL_NEON
#define QTENSOR_ABI_LEVEL neon
#else
#define QTENSOR_ABI_LEVEL portable
#endif

#if defined(__AVX512VBMI__) && defined(__AVX512VBMI2__)
#define QTENSOR_ABI_VBMI _vbmi
#elif defined(__AVX512VBMI__)
#define QTENSOR_ABI_VBMI _vbmi1
#elif defined(__AVX512VBMI2__)
#define QTENSOR_ABI_VBMI _vbmi2
#else
#define QTENSOR_ABI_VBMI
#endif

#if defined(__AVX512VNNI__)
#define QTENSOR_ABI_DOT _vnni
#elif defined(__AVXVNNI__)
#define QTENSOR_ABI_DOT _avxvnni
#elif defined(__ARM_FEATURE_DOTPROD) && defined(__ARM_FEATURE_MATMUL_INT8)
#define QTENSOR_ABI_DOT _i8mm
#elif defined(__ARM_FEATURE_DOTPROD)
#define QTENSOR_ABI_DOT _dotprod
#else
#define QTENSOR_ABI_DOT
#endif

// Clang 14 writes the names of these features in one word.
#if defined(__linux__) && defined(__AVX512VNNI__) && defined(__AVX512BF16__) && QTENSOR_LEVEL_X86 == 4 && \
    ((defined(__AMX_TILE__) && defined(__AMX_INT8__) && defined(__AMX_BF16__)) || \
     (defined(__AMXTILE__) && defined(__AMXINT8__) && defined(__AMXBF16__)))
#define QTENSOR_HAS_AMX 1
#define QTENSOR_ABI_AMX _amx
#else
#define QTENSOR_HAS_AMX 0
#define QTENSOR_ABI_AMX
#endif

#if defined(__AVX512BF16__) || defined(__ARM_FEATURE_BF16_VECTOR_ARITHMETIC)
#define QTENSOR_ABI_BF16 _bf16
#else
#define QTENSOR_ABI_BF16
#endif

#if defined(__AVX512FP16__)
#define QTENSOR_ABI_FP16 _fp16
#else
#define QTENSOR_ABI_FP16
#endif

#if defined(__GFNI__)
#define QTENSOR_ABI_MORE _gfni
#elif defined(__ARM_FEATURE_SVE)
#define QTENSOR_ABI_MORE _sve
#else
#define QTENSOR_ABI_MORE
#endif

#define QTENSOR_ABI_GLUE(level, vbmi, dot, amx, bf16, fp16, more) level##vbmi##dot##amx##bf16##fp16##more
#define QTENSOR_ABI_NAME(level, vbmi, dot, amx, bf16, fp16, more) \
  QTENSOR_ABI_GLUE(level, vbmi, dot, amx, bf16, fp16, more)

/// The inline namespace of everything that depends on the instruction set: x86_v2, x86_v3, x86_v4_vbmi_vnni_bf16_gfni,
/// neon, neon_i8mm, portable, ... Write `namespace qtensor::inline QTENSOR_ABI { ... }`.
#define QTENSOR_ABI                                                                                    \
  QTENSOR_ABI_NAME(QTENSOR_ABI_LEVEL, QTENSOR_ABI_VBMI, QTENSOR_ABI_DOT, QTENSOR_ABI_AMX, QTENSOR_ABI_BF16, \
                   QTENSOR_ABI_FP16, QTENSOR_ABI_MORE)

#define QTENSOR_TEXT_OF(name) #name
#define QTENSOR_TEXT(name) QTENSOR_TEXT_OF(name)

/// For the small functions that kernels are made of: a call would pass registers through memory. Where the compiler is
/// told not to inline, as without optimization, or a program that would rather compile soon says so in all its units,
/// the choice is the compiler's: forced copies cost compile time and memory, and without optimization gain nothing.
#if defined(__NO_INLINE__) || defined(QTENSOR_NO_FORCED_INLINE)
#define QTENSOR_INLINE inline
#define QTENSOR_INLINE_LAMBDA
#else
#define QTENSOR_INLINE __attribute__((always_inline)) inline

/// The same for a lambda, after its parameters: `[&](index_t i) QTENSOR_INLINE_LAMBDA { ... }`. g++ -O2 needs it where
/// a lambda is called more than once.
#define QTENSOR_INLINE_LAMBDA __attribute__((always_inline))
#endif

/// For functions that loop over numbers of somebody's own making, one by one: g++ -O2 takes them for vectors there as
/// -O3 and clang++ do. With [[gnu::flatten]], as g++ hardly inlines what is not compiled alike.
#if defined(__GNUC__) && !defined(__clang__)
#define QTENSOR_VECTOR_LOOPS __attribute__((optimize("tree-vectorize", "vect-cost-model=dynamic")))
#else
#define QTENSOR_VECTOR_LOOPS
#endif

/// Before a loop over short records, which clang would turn into gathers and scatters.
#if defined(__clang__)
#define QTENSOR_KEEP_LOOP _Pragma("clang loop vectorize(disable)")
#else
#define QTENSOR_KEEP_LOOP
#endif

namespace qtensor::inline QTENSOR_ABI::simd {

/// Text of QTENSOR_ABI.
inline constexpr std::string_view abi_name = QTENSOR_TEXT(QTENSOR_ABI);

}  // namespace qtensor::inline QTENSOR_ABI::simd
