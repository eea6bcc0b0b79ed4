// EXPECT-FIRST: qtensor: stages(...) takes what the functions of qtensor::stage return
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/ops/epilogue.hpp>

namespace qt = qtensor;
const auto all = qt::stages(qt::stage::relu(), 3);
