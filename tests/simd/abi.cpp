// Mirrors include/qtensor/simd/abi.hpp.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/simd/abi.hpp>

#include "check.hpp"

#include <string>
#include <type_traits>

namespace simd = qtensor::simd;

TEST_CASE("abi: the name starts with the level and names the features") {
  const std::string name(simd::abi_name);
  INFO(name);
  using f = simd::features;
  const std::string level = f::avx512  ? "x86_v4"
                            : f::avx2  ? "x86_v3"
                            : f::sse42 ? "x86_v2"
                            : f::neon  ? "neon"
                                       : "portable";
  CHECK(name.substr(0, level.size()) == level);
  const auto has = [&](const char* word) { return name.find(word) != std::string::npos; };
  CHECK(has("_vbmi") == (f::vbmi || f::vbmi2));
  CHECK(has("_vnni") == f::vnni);
  CHECK(has("_amx") == f::amx);
  CHECK(has("_avxvnni") == (f::avxvnni && !f::vnni));
  CHECK(has("_i8mm") == f::i8mm);
  CHECK(has("_bf16") == f::bf16);
  CHECK(has("_gfni") == f::gfni);
}

// A type of the inline namespace, found under the name without it and with it.
namespace qtensor::inline QTENSOR_ABI {
struct lives_here {};
}  // namespace qtensor::inline QTENSOR_ABI
static_assert(std::is_same_v<qtensor::lives_here, qtensor::QTENSOR_ABI::lives_here>);
