// Operations: 8, 6 and 4 bits to floats, by casts.
// SPDX-License-Identifier: BSD-3-Clause
#include "operation.hpp"

namespace bench {

void add_minifloats_back(operations& all) {
  using qt::bf16, qt::f32;
  add_dequantize<qt::scheme<qt::e4m3, qt::per_tensor>, f32, scales::one>(all, "e4m3");
  add_dequantize<qt::scheme<qt::e4m3, qt::per_tensor>, bf16, scales::one>(all, "e4m3");
  add_dequantize<qt::scheme<qt::e5m2, qt::per_tensor>, f32, scales::one>(all, "e5m2");
  add_dequantize<qt::scheme<qt::e5m2, qt::per_tensor>, bf16, scales::one>(all, "e5m2");
  add_dequantize<qt::scheme<qt::hif8, qt::per_tensor>, f32, scales::one>(all, "hif8");
  add_dequantize<qt::scheme<qt::hif8, qt::per_tensor>, bf16, scales::one>(all, "hif8");
  add_dequantize<qt::scheme<qt::e3m2, qt::per_tensor>, f32, scales::one>(all, "e3m2");
  add_dequantize<qt::scheme<qt::e2m3, qt::per_tensor>, f32, scales::one>(all, "e2m3");
  add_dequantize<qt::scheme<qt::e2m1, qt::per_tensor>, f32, scales::one>(all, "e2m1");
  add_dequantize<qt::scheme<qt::e2m1, qt::per_tensor>, bf16, scales::one>(all, "e2m1");
}

}  // namespace bench
