// EXPECT-FIRST: qtensor: a product of two float tensors is no business
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/ops/batched.hpp>

namespace qt = qtensor;
using cube = qt::extents<qt::dynamic, qt::dynamic, qt::dynamic>;
#ifdef QTENSOR_VALID
void use(const float* x, const qt::tensor<qt::int8_per_tensor, cube>& w, std::span<float> y) {
  qt::matmul_batches_into(qt::source(x, qt::extents(2, 3, 4)), w, y);
}
#else
void use(const float* x, std::span<float> y) {
  qt::matmul_batches_into(qt::source(x, qt::extents(2, 3, 4)), qt::source(x, qt::extents(2, 4, 3)), y);
}
#endif
