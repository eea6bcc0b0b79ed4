// EXPECT: qtensor: blocks and planar tensor must share scales in the same groups
// SPDX-License-Identifier: BSD-3-Clause
#include <qtensor/compat/ggml_rows.hpp>
#include <qtensor/scheme/schemes.hpp>

namespace qt = qtensor;
namespace ggml = qtensor::compat::ggml;
#ifdef QTENSOR_VALID
using from = qt::scheme<qt::int8, qt::group<32>>;
#else
using from = qt::scheme<qt::int8, qt::group<16>>;
#endif
auto use(const qt::tensor<from>& t) { return ggml::to_blocks<ggml::q8_0>(t); }
