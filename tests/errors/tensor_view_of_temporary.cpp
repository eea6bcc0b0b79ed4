// EXPECT-FIRST: deleted
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/types.hpp>

namespace qt = qtensor;
using weights = qt::tensor<qt::int8_per_tensor>;
weights make();
#ifdef QTENSOR_VALID
auto use(const weights& w) { return w.view(); }
#else
auto use() { return make().view(); }
#endif
