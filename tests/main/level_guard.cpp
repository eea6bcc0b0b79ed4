// Ends a test program as "skipped" (exit status 77) on a machine that lacks the program's architecture level.
// SPDX-License-Identifier: BSD-3-Clause
//
// Compiled without -march, and run before every other initialiser of the program, so that no instruction of the level
// is executed before the check. QTENSOR_TEST_LEVEL is 2, 3 or 4, for x86-64-v2, -v3 and -v4.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace {

#define QTENSOR_NEED(feature) \
  if (!__builtin_cpu_supports(feature)) return feature

/// The first feature of the level that this machine lacks; null when it has them all.
const char* missing_feature() {
  __builtin_cpu_init();
  QTENSOR_NEED("sse3");
  QTENSOR_NEED("ssse3");
  QTENSOR_NEED("sse4.1");
  QTENSOR_NEED("sse4.2");
  QTENSOR_NEED("popcnt");
#if QTENSOR_TEST_LEVEL >= 3
  QTENSOR_NEED("avx");
  QTENSOR_NEED("avx2");
  QTENSOR_NEED("bmi");
  QTENSOR_NEED("bmi2");
  QTENSOR_NEED("fma");
#endif
#if QTENSOR_TEST_LEVEL >= 4
  QTENSOR_NEED("avx512f");
  QTENSOR_NEED("avx512bw");
  QTENSOR_NEED("avx512cd");
  QTENSOR_NEED("avx512dq");
  QTENSOR_NEED("avx512vl");
#endif
  return nullptr;
}

// 101 is the first priority that programs may use: everything else, doctest's registrations included, comes later.
__attribute__((constructor(101))) void require_level() {
  const char* lacks = missing_feature();
  if (lacks == nullptr) return;
  std::printf("skipped: built for x86-64-v%d, and this machine has no %s\n", QTENSOR_TEST_LEVEL, lacks);
  std::fflush(stdout);
  _exit(77);
}

}  // namespace
