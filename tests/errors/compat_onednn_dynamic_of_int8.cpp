// EXPECT: qtensor: oneDNN quantizes dynamically to f8_e4m3, f8_e5m2 and f4_e2m1 (e4m3, e5m2, e2m1).
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/compat/onednn_schemes.hpp>

namespace qt = qtensor;
namespace dnn = qtensor::compat::onednn;
#ifdef QTENSOR_VALID
using scheme = dnn::dynamic_mx<qt::e5m2>;
#else
using scheme = dnn::dynamic_mx<qt::int8>;
#endif
constexpr auto name = qt::name<scheme>;
