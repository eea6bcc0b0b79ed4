// Runs the same unit built for x86-64-v2 and, where the machine can, for x86-64-v3: the bits must agree.
// SPDX-License-Identifier: BSD-3-Clause
#include <cstdint>
#include <cstdio>

std::uint64_t unit_v2();
std::uint64_t unit_v3();

int main() {
  const std::uint64_t v2 = unit_v2();
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") || !__builtin_cpu_supports("bmi2")) return 77;
  const std::uint64_t v3 = unit_v3();
  std::printf("v2 %016llx, v3 %016llx\n", static_cast<unsigned long long>(v2), static_cast<unsigned long long>(v3));
  return v2 == v3 ? 0 : 1;
}
