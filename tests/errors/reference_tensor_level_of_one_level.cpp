// EXPECT: qtensor: this scheme has one level of scales; the largest magnitude of a tensor does not matter.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/reference/tensor_level.hpp>
#include <qtensor/scheme/schemes.hpp>

using namespace qtensor;

#ifdef QTENSOR_VALID
using one_scheme = with<nvfp4, tensor_scale<f32>>;
#else
using one_scheme = nvfp4;
#endif

float scale() {
  const auto level = tensor_level::of<one_scheme>(3.f);
  return level.scale;
}
