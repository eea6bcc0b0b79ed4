// Operations: floats to MX formats and NVFP4.
// SPDX-License-Identifier: BSD-3-Clause
#include "operation.hpp"

namespace bench {

void add_microscaling(operations& all) {
  using qt::f32;
  add_quantize<f32, qt::mxfp8_e4m3>(all, "mxfp8_e4m3");
  add_quantize<f32, qt::mxfp8_e5m2>(all, "mxfp8_e5m2");
  add_quantize<f32, qt::mxfp6_e2m3>(all, "mxfp6_e2m3");
  add_quantize<f32, qt::mxfp6_e3m2>(all, "mxfp6_e3m2");
  add_quantize<f32, qt::mxfp4>(all, "mxfp4");
  add_quantize<f32, qt::nvfp4>(all, "nvfp4");
}

}  // namespace bench
