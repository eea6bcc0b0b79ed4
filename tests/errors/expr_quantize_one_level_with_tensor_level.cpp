// EXPECT: qtensor: a tensor_level is for schemes of two levels, such as with<nvfp4, tensor_scale<f32>>.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/expr/quantize.hpp>
#include <qtensor/scheme/schemes.hpp>

using namespace qtensor;

#ifdef QTENSOR_VALID
using one_scheme = with<nvfp4, tensor_scale<f32>>;
#else
using one_scheme = nvfp4;
#endif

void run(const Eigen::MatrixXf& x) { quantize<one_scheme>(x, tensor_level::of_scale(3.f)); }
