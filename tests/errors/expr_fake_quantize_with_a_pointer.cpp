// EXPECT: qtensor: fake_quantize<S>(x, how...) takes scales, zero points
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/expr/fake_quantize.hpp>

namespace qt = qtensor;
const float* scales = nullptr;
#ifdef QTENSOR_VALID
auto use(const Eigen::MatrixXf& x) { return qt::fake_quantize<qt::scheme<qt::int8, qt::per_channel<0>>>(x, *scales); }
#else
auto use(const Eigen::MatrixXf& x) { return qt::fake_quantize<qt::scheme<qt::int8, qt::per_channel<0>>>(x, scales); }
#endif
