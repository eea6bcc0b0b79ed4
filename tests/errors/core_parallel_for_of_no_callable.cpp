// EXPECT: qtensor: parallel_for(threads, run) calls run(count, part)
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/core/executor.hpp>

namespace qt = qtensor;
#ifdef QTENSOR_VALID
const auto pool = qt::parallel_for(2, [](qt::index_t count, const auto& part) {
  for (qt::index_t i = 0; i < count; ++i) part(i);
});
#else
const auto pool = qt::parallel_for(2, [](qt::index_t count) { return count; });
#endif
