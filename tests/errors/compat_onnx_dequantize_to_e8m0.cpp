// EXPECT: qtensor: DequantizeLinear gives f32, f16 or bf16
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/compat/onnx.hpp>

namespace qt = qtensor;
namespace onnx = qtensor::compat::onnx;
using scheme = onnx::linear<qt::int8, qt::e8m0>;
#ifdef QTENSOR_VALID
void use(const qt::tensor<scheme>& t, std::vector<float>& y) { onnx::dequantize_linear<qt::f32>(t, y); }
#else
void use(const qt::tensor<scheme>& t, std::vector<std::uint8_t>& y) { onnx::dequantize_linear(t, y); }
#endif
