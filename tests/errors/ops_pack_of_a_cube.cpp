// EXPECT-FIRST: qtensor: products are of matrices; take one with matrix(i, ...)
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/ops/pack.hpp>
#include <qtensor/scheme/schemes.hpp>

namespace qt = qtensor;
using cube = qt::tensor<qt::int8_per_tensor, qt::extents<qt::dynamic, qt::dynamic, qt::dynamic>>;
#ifdef QTENSOR_VALID
void use(const cube& w) { qt::pack(w.view().matrix(0)); }
#else
void use(const cube& w) { qt::pack(w); }
#endif
