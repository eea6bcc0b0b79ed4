// EXPECT-FIRST: qtensor: pack takes codes of at most 8 bits
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/ops/pack.hpp>
#include <qtensor/scheme/schemes.hpp>

namespace qt = qtensor;
#ifdef QTENSOR_VALID
void use(const qt::tensor<qt::scheme<qt::int8, qt::per_tensor>>& w) { qt::pack(w); }
#else
void use(const qt::tensor<qt::scheme<qt::int16, qt::per_tensor>>& w) { qt::pack(w); }
#endif
