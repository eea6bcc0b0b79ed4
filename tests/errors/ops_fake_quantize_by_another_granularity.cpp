// EXPECT: qtensor: the granularity given to quantize is not of the scheme's type.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/ops/fake_quantize.hpp>

namespace qt = qtensor;
using scheme = qt::scheme<qt::int8, qt::group<qt::dynamic>>;
const float* x = nullptr;
#ifdef QTENSOR_VALID
auto use() { return qt::fake_quantize<scheme>(qt::source(x, qt::extents(2, 32)), qt::group<qt::dynamic>(8)); }
#else
auto use() { return qt::fake_quantize<scheme>(qt::source(x, qt::extents(2, 32)), qt::group<8>()); }
#endif
