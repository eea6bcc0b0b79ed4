// EXPECT-FIRST: qtensor: codes are packed with 2 to 8 bits
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/simd/nibbles.hpp>

namespace qt = qtensor;
using arch = qt::simd::best_arch;
#ifdef QTENSOR_VALID
void use(const std::uint8_t* from, std::uint8_t* codes) { qt::simd::unpack_codes<arch, 2>(from, 8, codes); }
#else
void use(const std::uint8_t* from, std::uint8_t* codes) { qt::simd::unpack_codes<arch, 9>(from, 8, codes); }
#endif
