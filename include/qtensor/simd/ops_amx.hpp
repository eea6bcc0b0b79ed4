// Matrix registers: a square of 16 x 16 sums takes 16 rows of 64 units times 64 codes of 16 columns in one instruction.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <cstring>
#include <qtensor/simd/ops_dot.hpp>

#if QTENSOR_HAS_AMX
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace qtensor::inline QTENSOR_ABI::simd {

/// False keeps every product on vectors from then on: tests compare both ways. Bits of integer products
/// do not depend on it, those of bf16 products do.
inline std::atomic<bool> squares_allowed{true};

/// Rows and columns of a square of sums, and words of a row of any register.
inline constexpr index_t square_edge = 16;

/// Whether F may be called between instructions on matrix registers, because it uses none: it says so. What users' own
/// functions call in their turn is not known.
template <class F>
inline constexpr bool runs_beside = requires {
  requires F::runs_beside;
};

/// The matrix registers of an architecture that has some, numbered 0 to 7. Each holds 16 rows of 64 bytes: a square of
/// 32-bit sums, 16 rows' units of 16 quads, or 16 quads of 16 columns.
///   is_granted()                  whether this process may use them: asks the system, once
///   session(quads = 16)           while one lives, its thread may call the following; nothing beside may use these
///                                 registers. Of fewer quads to a step, 4 and 5 hold rows' units and 6 and 7 quads
///   session.resume()              after others used them, or may have: they hold nothing then, and may be used again
///   load<T>(from, stride)         row r from `from + r * stride` bytes; 64 bytes on cache lines are fastest
///   stream<T>(from, stride)       the same of what is not to stay in the first cache
///   store<T>(to, stride)
///   zero<T>()
///   settle()                      what was written before may be loaded: loads are not ordered with other code
///   dot<T, X, W>()                sums T += units X times quads W, modulo 2^32
///   dot_signed<T, X, W>()         the same of signed units
///   dot_bf16<T, X, W>()           f32 sums T += 16 pairs of bf16 of X's rows times 16 pairs of W's columns; subnormal
///                                 numbers count as 0, the sums of first and of second numbers meet in the end
template <usable_arch A>
struct square_unit {
  static constexpr bool exists = false;
};

#if QTENSOR_HAS_AMX
template <>
struct square_unit<avx512_arch> {
  static constexpr bool exists = true;

  static bool is_granted() {
    static const bool granted = [] {
      constexpr long request_permission = 0x1023, tile_data = 18;  // of arch_prctl
      constexpr unsigned all = 3u << 24 | 1u << 22;                // tiles, int8, bf16 in leaf 7, edx
      unsigned a = 0, b = 0, c = 0, d = 0;
      if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || (d & all) != all) return false;
      return syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
    }();
    return granted;
  }

  class session {
    struct alignas(64) shapes {
      std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
      std::uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
      std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
    };

   public:
    explicit session(index_t quads = square_edge) {
      for (const std::size_t units : {4, 5}) all_.row_bytes[units] = static_cast<std::uint16_t>(4 * quads);
      for (const std::size_t columns : {6, 7}) all_.rows[columns] = static_cast<std::uint8_t>(quads);
      begin();
    }
    ~session() { asm volatile("tilerelease" : : : "memory"); }
    session(const session&) = delete;
    session& operator=(const session&) = delete;
    void resume() {
      shapes now;
      asm volatile("sttilecfg %0" : "=m"(now) : : "memory");
      if (std::memcmp(&now, &all_, sizeof now) != 0) begin();
    }

   private:
    void begin() { asm volatile("ldtilecfg %0" : : "m"(all_) : "memory"); }
    shapes all_;
  };

  // g++ 12 takes numbers of registers only as text: its intrinsics cannot be called with a template's parameter.
  template <int T>
  static QTENSOR_INLINE void load(const void* from, index_t stride) {
    asm volatile("{tileloadd (%0,%1,1), %%tmm%c2|tileloadd tmm%c2, [%0+%1*1]}" : : "r"(from), "r"(stride), "i"(T));
  }
  template <int T>
  static QTENSOR_INLINE void stream(const void* from, index_t stride) {
    asm volatile("{tileloaddt1 (%0,%1,1), %%tmm%c2|tileloaddt1 tmm%c2, [%0+%1*1]}" : : "r"(from), "r"(stride), "i"(T));
  }
  template <int T>
  static QTENSOR_INLINE void store(void* to, index_t stride) {
    asm volatile("{tilestored %%tmm%c2, (%0,%1,1)|tilestored [%0+%1*1], tmm%c2}"
                 :
                 : "r"(to), "r"(stride), "i"(T)
                 : "memory");
  }
  template <int T>
  static QTENSOR_INLINE void zero() {
    asm volatile("{tilezero %%tmm%c0|tilezero tmm%c0}" : : "i"(T));
  }
  static QTENSOR_INLINE void settle() { asm volatile("" : : : "memory"); }
  template <int T, int X, int W>
  static QTENSOR_INLINE void dot() {
    asm volatile("{tdpbusd %%tmm%c2, %%tmm%c1, %%tmm%c0|tdpbusd tmm%c0, tmm%c1, tmm%c2}" : : "i"(T), "i"(X), "i"(W));
  }
  template <int T, int X, int W>
  static QTENSOR_INLINE void dot_signed() {
    asm volatile("{tdpbssd %%tmm%c2, %%tmm%c1, %%tmm%c0|tdpbssd tmm%c0, tmm%c1, tmm%c2}" : : "i"(T), "i"(X), "i"(W));
  }
  template <int T, int X, int W>
  static QTENSOR_INLINE void dot_bf16() {
    asm volatile("{tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0|tdpbf16ps tmm%c0, tmm%c1, tmm%c2}"
                 :
                 : "i"(T), "i"(X), "i"(W));
  }
};
#endif

/// Whether products use the matrix registers here and now.
template <usable_arch A>
bool uses_squares() {
  if constexpr (square_unit<A>::exists)
    return squares_allowed.load(std::memory_order_relaxed) && square_unit<A>::is_granted();
  else
    return false;
}

}  // namespace qtensor::inline QTENSOR_ABI::simd
