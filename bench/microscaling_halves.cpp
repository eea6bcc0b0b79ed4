// Operations: 16-bit floats to MX formats and NVFP4.
// SPDX-License-Identifier: BSD-3-Clause
#include "operation.hpp"

namespace bench {

void add_microscaling_halves(operations& all) {
  using qt::bf16, qt::f16;
  add_quantize<bf16, qt::mxfp8_e4m3>(all, "mxfp8_e4m3");
  add_quantize<bf16, qt::mxfp6_e2m3>(all, "mxfp6_e2m3");
  add_quantize<bf16, qt::mxfp4>(all, "mxfp4");
  add_quantize<bf16, qt::nvfp4>(all, "nvfp4");
  add_quantize<f16, qt::mxfp8_e4m3>(all, "mxfp8_e4m3");
}

}  // namespace bench
