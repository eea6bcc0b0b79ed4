// EXPECT-FIRST: qtensor: codes of 4 or 2 bits are turned, two or four to a byte
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/simd/nibbles.hpp>

namespace qt = qtensor;
using arch = qt::simd::best_arch;
#ifdef QTENSOR_VALID
void use(const std::uint8_t* codes, std::uint8_t* to) { qt::simd::turn_codes<arch, 4>(codes, 8, to); }
#else
void use(const std::uint8_t* codes, std::uint8_t* to) { qt::simd::turn_codes<arch, 6>(codes, 8, to); }
#endif
