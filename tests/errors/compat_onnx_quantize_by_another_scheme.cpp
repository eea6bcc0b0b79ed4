// EXPECT: qtensor: onnx::quantize_linear needs a scheme made from onnx::linear
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/compat/onnx.hpp>

namespace qt = qtensor;
namespace onnx = qtensor::compat::onnx;
const float* x = nullptr;
#ifdef QTENSOR_VALID
auto use() { return onnx::quantize_linear<onnx::linear<qt::int8>>(qt::source(x, qt::extents(2, 3)), {x, 1}); }
#else
auto use() { return onnx::quantize_linear<qt::int8_per_tensor>(qt::source(x, qt::extents(2, 3)), {x, 1}); }
#endif
