// EXPECT: deleted
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/expr/with_options.hpp>

namespace qt = qtensor;
const qt::tensor<qt::int8_per_tensor> W(qt::matrix_extents(4, 64));
const auto P = qt::pack(W);
qt::tensor<qt::int8_per_tensor> make() { return W; }
const auto options = make().with(qt::bf16_math);
