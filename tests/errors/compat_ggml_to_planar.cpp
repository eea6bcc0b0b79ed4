// EXPECT: qtensor: to_blocks<B> makes blocks
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/compat/ggml_rows.hpp>
#include <qtensor/scheme/schemes.hpp>

namespace qt = qtensor;
namespace ggml = qtensor::compat::ggml;
#ifdef QTENSOR_VALID
using to = ggml::q8_0;
#else
using to = qt::scheme<qt::int8, qt::group<32>, qt::scale_as<qt::f16>>;
#endif
auto use(const qt::tensor<qt::scheme<qt::int8, qt::group<32>>>& t) { return ggml::to_blocks<to>(t); }
