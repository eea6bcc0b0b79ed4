// What this translation unit may execute: features, and the architectures kernels are written for.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <qtensor/simd/abi.hpp>
#include <qtensor/simd/ops_portable.hpp>

#include <xsimd/xsimd.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace qtensor::inline QTENSOR_ABI::simd {

/// Bytes of a line of the caches, on every CPU that kernels are written for.
inline constexpr std::ptrdiff_t cache_line = 64;

/// What the compiler was allowed to use here. `if constexpr (features::vbmi) ...` beside a fallback, never without one.
struct features {
  static constexpr bool sse42 = QTENSOR_LEVEL_X86 >= 2;
  static constexpr bool avx2 = QTENSOR_LEVEL_X86 >= 3;    ///< with FMA
  static constexpr bool avx512 = QTENSOR_LEVEL_X86 >= 4;  ///< F, CD, BW, DQ and VL
  static constexpr bool neon = QTENSOR_LEVEL_NEON != 0;
#if defined(__FMA__) || defined(__aarch64__)
  static constexpr bool fma = true;
#else
  static constexpr bool fma = false;
#endif
#if defined(__F16C__) || defined(__AVX512F__) || defined(__aarch64__)
  static constexpr bool f16c = true;
#else
  static constexpr bool f16c = false;
#endif
#if defined(__AVX512VBMI__)
  static constexpr bool vbmi = avx512;
#else
  static constexpr bool vbmi = false;
#endif
#if defined(__AVX512VBMI2__)
  static constexpr bool vbmi2 = avx512;
#else
  static constexpr bool vbmi2 = false;
#endif
#if defined(__AVX512VNNI__)
  static constexpr bool vnni = avx512;
#else
  static constexpr bool vnni = false;
#endif
  /// Of integers and bf16; ops_amx.hpp asks whether the system grants it.
  static constexpr bool amx = QTENSOR_HAS_AMX != 0;
#if defined(__AVXVNNI__)
  static constexpr bool avxvnni = true;  ///< the 256-bit dot product with its VEX encoding
#else
  static constexpr bool avxvnni = false;
#endif
#if defined(__AVX512BF16__) || defined(__ARM_FEATURE_BF16_VECTOR_ARITHMETIC)
  static constexpr bool bf16 = true;
#else
  static constexpr bool bf16 = false;
#endif
#if defined(__GFNI__)
  static constexpr bool gfni = true;
#else
  static constexpr bool gfni = false;
#endif
#if defined(__ARM_FEATURE_DOTPROD)
  static constexpr bool dotprod = true;
#else
  static constexpr bool dotprod = false;
#endif
#if defined(__ARM_FEATURE_DOTPROD) && defined(__ARM_FEATURE_MATMUL_INT8)
  static constexpr bool i8mm = true;  ///< with the dot product, as the ABI name has it
#else
  static constexpr bool i8mm = false;
#endif
};

using avx512_arch = xsimd::avx512bw;
using avx2_arch = xsimd::fma3<xsimd::avx2>;
using sse42_arch = xsimd::sse4_2;
using neon_arch = xsimd::neon64;

/// A list of architectures, best first.
template <class... Archs>
struct arch_list {
  static constexpr std::size_t size = sizeof...(Archs);

  template <class Arch>
  static constexpr bool contains = (std::same_as<Arch, Archs> || ...);

  /// Calls f(Arch{}) for each, best first.
  template <class F>
  static constexpr void for_each(F&& f) {
    (f(Archs{}), ...);
  }
};

/// The architectures whose kernels this translation unit can compile and run: all levels up to its own.
#if QTENSOR_LEVEL_X86 == 4
using archs = arch_list<avx512_arch, avx2_arch, sse42_arch, scalar_arch>;
#elif QTENSOR_LEVEL_X86 == 3
using archs = arch_list<avx2_arch, sse42_arch, scalar_arch>;
#elif QTENSOR_LEVEL_X86 == 2
using archs = arch_list<sse42_arch, scalar_arch>;
#elif QTENSOR_LEVEL_NEON
using archs = arch_list<neon_arch, scalar_arch>;
#else
using archs = arch_list<scalar_arch>;
#endif

namespace detail {

template <class Best, class... Rest>
Best first_of(arch_list<Best, Rest...>);

// Tags that choose the body of an operation: overloads on a tag beat those on any_isa.
struct any_isa {};
struct sse42_isa : any_isa {};
struct avx2_isa : any_isa {};
struct avx512_isa : any_isa {};
struct neon_isa : any_isa {};

template <class Arch>
struct isa_of;
template <>
struct isa_of<avx512_arch> {
  using type = avx512_isa;
  static constexpr std::string_view name = "avx512";
};
template <>
struct isa_of<avx2_arch> {
  using type = avx2_isa;
  static constexpr std::string_view name = "avx2";
};
template <>
struct isa_of<sse42_arch> {
  using type = sse42_isa;
  static constexpr std::string_view name = "sse4.2";
};
template <>
struct isa_of<neon_arch> {
  using type = neon_isa;
  static constexpr std::string_view name = "neon";
};
template <>
struct isa_of<scalar_arch> {
  using type = any_isa;
  static constexpr std::string_view name = "portable";
};

template <class Arch>
using isa = typename isa_of<Arch>::type;

}  // namespace detail

/// The first of `archs`: what kernels use unless told otherwise.
using best_arch = decltype(detail::first_of(archs{}));

/// An architecture that this translation unit can run.
template <class Arch>
concept usable_arch = archs::contains<Arch>;

/// "avx512", "avx2", "sse4.2", "neon" or "portable".
template <usable_arch Arch>
inline constexpr std::string_view arch_name = detail::isa_of<Arch>::name;

template <class Arch>
using floats = xsimd::batch<float, Arch>;
template <class Arch>
using ints = xsimd::batch<std::int32_t, Arch>;
template <class Arch>
using words = xsimd::batch<std::uint32_t, Arch>;  ///< also the bits of floats
template <class Arch>
using halves = xsimd::batch<std::uint16_t, Arch>;  ///< 2 * lanes; bf16 and f16 as bits
template <class Arch>
using bytes = xsimd::batch<std::uint8_t, Arch>;  ///< 4 * lanes; codes

/// 32-bit lanes of a batch: avx512 16, avx2 8, the others 4.
template <usable_arch Arch>
inline constexpr std::ptrdiff_t lanes = std::same_as<Arch, avx512_arch> ? 16 : std::same_as<Arch, avx2_arch> ? 8 : 4;

/// True when the CPU we run on has every feature this translation unit was compiled with, but for AMX, whose kernels
/// ask for themselves. Ask before the first kernel (test programs, dispatchers); a few hundred cycles. Where the system
/// cannot be asked the answer is true.
inline bool machine_runs_this() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  bool runs = true;
  [[maybe_unused]] unsigned a = 0, b = 0, c = 0, d = 0;
#if defined(__SSE4_2__)
  runs = runs && __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("popcnt");
#endif
#if defined(__AVX__)
  runs = runs && __builtin_cpu_supports("avx");
#endif
#if defined(__AVX2__)
  runs = runs && __builtin_cpu_supports("avx2");
#endif
#if defined(__FMA__)
  runs = runs && __builtin_cpu_supports("fma");
#endif
#if defined(__BMI2__)
  runs = runs && __builtin_cpu_supports("bmi2");
#endif
#if defined(__F16C__)
  constexpr unsigned f16c_in_leaf_1_ecx = 1u << 29;
  runs = runs && __get_cpuid(1, &a, &b, &c, &d) && (c & f16c_in_leaf_1_ecx) != 0;
#endif
#if defined(__AVXVNNI__)
  constexpr unsigned avxvnni_in_leaf_7_1_eax = 1u << 4;
  runs = runs && __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a & avxvnni_in_leaf_7_1_eax) != 0;
#endif
#if defined(__AVX512F__)
  runs = runs && __builtin_cpu_supports("avx512f");
#endif
#if defined(__AVX512CD__)
  runs = runs && __builtin_cpu_supports("avx512cd");
#endif
#if defined(__AVX512BW__)
  runs = runs && __builtin_cpu_supports("avx512bw");
#endif
#if defined(__AVX512DQ__)
  runs = runs && __builtin_cpu_supports("avx512dq");
#endif
#if defined(__AVX512VL__)
  runs = runs && __builtin_cpu_supports("avx512vl");
#endif
#if defined(__AVX512VBMI__)
  runs = runs && __builtin_cpu_supports("avx512vbmi");
#endif
#if defined(__AVX512VBMI2__)
  runs = runs && __builtin_cpu_supports("avx512vbmi2");
#endif
#if defined(__AVX512VNNI__)
  runs = runs && __builtin_cpu_supports("avx512vnni");
#endif
#if defined(__AVX512BF16__)
  runs = runs && __builtin_cpu_supports("avx512bf16");
#endif
#if defined(__AVX512FP16__)
  constexpr unsigned avx512fp16_in_leaf_7_edx = 1u << 23;
  runs = runs && __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d & avx512fp16_in_leaf_7_edx) != 0;
#endif
#if defined(__GFNI__)
  runs = runs && __builtin_cpu_supports("gfni");
#endif
  return runs;
#elif defined(__aarch64__) && defined(__linux__)
  // Bit numbers of AT_HWCAP and AT_HWCAP2 in the Linux interface for 64-bit Arm.
  [[maybe_unused]] const unsigned long first = getauxval(AT_HWCAP), second = getauxval(AT_HWCAP2);
  bool runs = true;
#if defined(__ARM_FEATURE_DOTPROD)
  runs = runs && (first >> 20 & 1) != 0;
#endif
#if defined(__ARM_FEATURE_SVE)
  runs = runs && (first >> 22 & 1) != 0;
#endif
#if defined(__ARM_FEATURE_MATMUL_INT8)
  runs = runs && (second >> 13 & 1) != 0;
#endif
#if defined(__ARM_FEATURE_BF16_VECTOR_ARITHMETIC)
  runs = runs && (second >> 14 & 1) != 0;
#endif
  return runs;
#else
  return true;
#endif
}

}  // namespace qtensor::inline QTENSOR_ABI::simd
