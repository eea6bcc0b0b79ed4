// EXPECT: qtensor: oneDNN rounds stochastically to bf16, f16, f8_e4m3 and f8_e5m2; `stochastic` takes any format.
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/compat/onednn_types.hpp>

namespace qt = qtensor;
namespace dnn = qtensor::compat::onednn;
#ifdef QTENSOR_VALID
constexpr float rounded = dnn::stochastically_rounded<qt::e5m2>(1.f, 0);
#else
constexpr float rounded = dnn::stochastically_rounded<qt::e2m1>(1.f, 0);
#endif
