// Mirrors include/qtensor/simd/ops_intrinsics.hpp. That it keeps g++ quiet is tests/consumers' to see.
// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <cstdint>
#include <qtensor/simd/ops_intrinsics.hpp>

TEST_CASE("the intrinsics of the level are there") {
  std::int32_t seen[16] = {};
#if defined(__AVX512F__)
  _mm512_storeu_si512(seen, _mm512_srli_epi32(_mm512_set1_epi32(28), 2));
#elif defined(__x86_64__)
  _mm_storeu_si128(reinterpret_cast<__m128i*>(seen), _mm_srli_epi32(_mm_set1_epi32(28), 2));
#elif defined(__aarch64__)
  vst1q_s32(seen, vshrq_n_s32(vdupq_n_s32(28), 2));
#else
  seen[3] = 7;
#endif
  CHECK(seen[3] == 7);
}
