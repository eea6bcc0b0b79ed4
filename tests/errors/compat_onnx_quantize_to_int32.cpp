// EXPECT: qtensor: QuantizeLinear has no int32 codes.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/compat/onnx.hpp>

namespace qt = qtensor;
namespace onnx = qtensor::compat::onnx;
const float* x = nullptr;
#ifdef QTENSOR_VALID
auto use() { return onnx::quantize_linear<onnx::linear<qt::int16>>(qt::source(x, qt::extents(2, 3)), {x, 1}); }
#else
auto use() { return onnx::quantize_linear<onnx::linear<qt::int32>>(qt::source(x, qt::extents(2, 3)), {x, 1}); }
#endif
