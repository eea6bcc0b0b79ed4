// EXPECT-FIRST: qtensor: code_sums takes integer codes.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/ops/code_sums.hpp>
#include <qtensor/scheme/schemes.hpp>

namespace qt = qtensor;
#ifdef QTENSOR_VALID
auto use(const qt::tensor<qt::int8_per_tensor>& x) { return qt::code_sums(x); }
#else
auto use(const qt::tensor<qt::mxfp8_e4m3>& x) { return qt::code_sums(x); }
#endif
