// EXPECT: qtensor: onnx::from_arrays needs a scheme made from onnx::linear
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/compat/onnx.hpp>

namespace qt = qtensor;
namespace onnx = qtensor::compat::onnx;
const std::int8_t* x = nullptr;
const float* s = nullptr;
#ifdef QTENSOR_VALID
auto use() { return onnx::from_arrays<onnx::linear<qt::int8>>({x, 6}, {s, 1}, {}, qt::extents(2, 3)); }
#else
auto use() { return onnx::from_arrays<qt::int8_per_tensor>({x, 6}, {s, 1}, {}, qt::extents(2, 3)); }
#endif
