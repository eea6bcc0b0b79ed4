// EXPECT: qtensor: batched products are of tensors of rank 2 or more
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/ops/batched.hpp>

namespace qt = qtensor;
#ifdef QTENSOR_VALID
void use(const float* x, const qt::tensor<qt::int8_per_tensor>& w, std::span<float> y) {
  qt::matmul_batches_into(qt::source(x, qt::extents(1, 4)), w, y);
}
#else
void use(const float* x, const qt::tensor<qt::int8_per_tensor>& w, std::span<float> y) {
  qt::matmul_batches_into(qt::source(x, qt::extents(4)), w, y);
}
#endif
