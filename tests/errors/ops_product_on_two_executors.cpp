// EXPECT-FIRST: qtensor: an operation runs on one executor
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/ops/product_options.hpp>

namespace qt = qtensor;
const auto options = qt::read_product_options(qt::on(qt::serial()), qt::on(qt::serial()));
