// EXPECT-FIRST: qtensor: codes are packed with 2 to 8 bits
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/simd/nibbles.hpp>

namespace qt = qtensor;
using arch = qt::simd::best_arch;
#ifdef QTENSOR_VALID
void use(const std::uint8_t* codes, std::uint8_t* to) { qt::simd::pack_codes<arch, 6>(codes, 8, to); }
#else
void use(const std::uint8_t* codes, std::uint8_t* to) { qt::simd::pack_codes<arch, 9>(codes, 8, to); }
#endif
