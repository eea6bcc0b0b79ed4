// EXPECT-FIRST: qtensor: stage::round_trip<S> takes schemes with one level of scales
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/ops/epilogue.hpp>
#include <qtensor/scheme/schemes.hpp>

namespace qt = qtensor;
const auto stage = qt::stage::round_trip<qt::with<qt::nvfp4, qt::tensor_scale<qt::f32>>>(1.f);
