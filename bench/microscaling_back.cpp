// Operations: MX formats and NVFP4 to floats.
// SPDX-License-Identifier: BSD-3-Clause
#include "operation.hpp"

namespace bench {

void add_microscaling_back(operations& all) {
  using qt::bf16, qt::f32;
  add_dequantize<qt::mxfp8_e4m3, f32>(all, "mxfp8_e4m3");
  add_dequantize<qt::mxfp8_e4m3, bf16>(all, "mxfp8_e4m3");
  add_dequantize<qt::mxfp8_e5m2, f32>(all, "mxfp8_e5m2");
  add_dequantize<qt::mxfp6_e2m3, f32>(all, "mxfp6_e2m3");
  add_dequantize<qt::mxfp4, f32>(all, "mxfp4");
  add_dequantize<qt::mxfp4, bf16>(all, "mxfp4");
  add_dequantize<qt::nvfp4, f32>(all, "nvfp4");
  add_dequantize<qt::nvfp4, bf16>(all, "nvfp4");
}

}  // namespace bench
