// Operations: 16-bit floats to 8, 6 and 4 bits, by casts.
// SPDX-License-Identifier: BSD-3-Clause
#include "operation.hpp"

namespace bench {

void add_minifloats_halves(operations& all) {
  using qt::bf16, qt::f16;
  add_quantize<bf16, qt::scheme<qt::e4m3, qt::per_tensor>, scales::one>(all, "e4m3");
  add_quantize<bf16, qt::scheme<qt::e5m2, qt::per_tensor>, scales::one>(all, "e5m2");
  add_quantize<bf16, qt::scheme<qt::hif8, qt::per_tensor>, scales::one>(all, "hif8");
  add_quantize<bf16, qt::scheme<qt::e2m1, qt::per_tensor>, scales::one>(all, "e2m1");
  add_quantize<f16, qt::scheme<qt::e4m3, qt::per_tensor>, scales::one>(all, "e4m3");
  add_quantize<f16, qt::scheme<qt::e5m2, qt::per_tensor>, scales::one>(all, "e5m2");
}

}  // namespace bench
