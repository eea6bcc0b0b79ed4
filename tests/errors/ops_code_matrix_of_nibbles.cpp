// EXPECT-FIRST: qtensor: a code_matrix holds int8 or uint8 codes
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/ops/code_matrix.hpp>

namespace qt = qtensor;
#ifdef QTENSOR_VALID
qt::code_matrix<qt::uint8> use(const std::uint8_t* codes) { return {codes, 4, 4, 4, 1}; }
#else
qt::code_matrix<qt::uint4> use(const std::uint8_t* codes) { return {codes, 4, 4, 4, 1}; }
#endif
