// Operations: the blocks of ggml.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/compat/ggml.hpp>

#include "operation.hpp"

namespace bench {

void add_ggml_blocks(operations& all) {
  using qt::f32;
  namespace ggml = qt::compat::ggml;
  add_quantize<f32, ggml::q8_0>(all, "ggml q8_0");
  add_quantize<f32, ggml::q4_0>(all, "ggml q4_0");
  add_quantize<f32, ggml::mxfp4>(all, "ggml mxfp4");
  add_quantize<f32, ggml::nvfp4>(all, "ggml nvfp4");
  add_dequantize<ggml::q8_0, f32>(all, "ggml q8_0");
  add_dequantize<ggml::q4_0, f32>(all, "ggml q4_0");
  add_dequantize<ggml::mxfp4, f32>(all, "ggml mxfp4");
  add_dequantize<ggml::nvfp4, f32>(all, "ggml nvfp4");
}

}  // namespace bench
