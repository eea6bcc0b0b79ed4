// EXPECT-FIRST: qtensor: an interleaved layout has no array of its own for this
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/types.hpp>

namespace qt = qtensor;
using scheme = qt::scheme<qt::int8, qt::group<32>, qt::interleaved<>>;
#ifdef QTENSOR_VALID
auto use(qt::tensor<qt::int8_group<32>>& t) { return t.scales(); }
#else
auto use(qt::tensor<scheme>& t) { return t.scales(); }
#endif
