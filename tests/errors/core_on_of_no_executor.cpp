// EXPECT: qtensor: on(e) takes an executor
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/core/executor.hpp>

#ifdef QTENSOR_VALID
const auto option = qtensor::on(qtensor::serial());
#else
void use() { qtensor::on(2); }
#endif
