// EXPECT: qtensor: ONNX tensors are row-major.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/compat/onnx.hpp>

namespace qt = qtensor;
namespace onnx = qtensor::compat::onnx;
using scheme = onnx::linear<qt::int8>;
template <class Order>
using matrix = qt::tensor<scheme, qt::matrix_extents, Order>;
#ifdef QTENSOR_VALID
void use(const matrix<qt::row_major>& t, std::vector<float>& y) { onnx::dequantize_linear(t, y); }
#else
void use(const matrix<qt::col_major>& t, std::vector<float>& y) { onnx::dequantize_linear(t, y); }
#endif
